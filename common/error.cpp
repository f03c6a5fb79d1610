#include "common/error.hpp"

#include <fmt/format.h>

namespace rubato {

std::string Error::report() const {
  std::string text = fmt::format("error: {}\n", what());
  if (!detail_.in.empty()) text += fmt::format("  in: {}\n", detail_.in);
  if (!detail_.hint.empty()) text += fmt::format("  hint: {}\n", detail_.hint);
  return text;
}

void ErrorList::add(std::string message) {
  ++count_;
  if (kept_.size() < max_kept) kept_.push_back(std::move(message));
}

void ErrorList::throw_if_any(ErrorDetail detail) const {
  if (empty()) return;
  std::string text = kept_.front();
  for (std::size_t i = 1; i < kept_.size(); ++i) text += "\nerror: " + kept_[i];
  if (count_ > kept_.size()) text += fmt::format("\nerror: and {} more", count_ - kept_.size());
  throw DataError(text, std::move(detail));
}

}  // namespace rubato
