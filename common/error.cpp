#include "common/error.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"

namespace rubato {

namespace {

// Made safe to show, line by line: a message may hold several.
std::string shown(std::string_view text) {
  constexpr std::size_t longest_line = 2000;
  std::string safe;
  for (const std::string_view line : split(text, '\n')) {
    if (line.data() != text.data()) safe += '\n';
    safe += printable(utf8_prefix(line, longest_line));
    if (line.size() > longest_line) safe += "...";
  }
  return safe;
}

}  // namespace

Error::Error(ExitStatus status, const std::string& what, ErrorDetail detail)
    : std::runtime_error(shown(what)),
      status_(status),
      detail_{.in = shown(detail.in), .hint = shown(detail.hint)} {}

std::string Error::report() const {
  std::string text = fmt::format("error: {}\n", what());
  if (!detail_.in.empty()) text += fmt::format("  in: {}\n", detail_.in);
  if (!detail_.hint.empty()) text += fmt::format("  hint: {}\n", detail_.hint);
  return text;
}

UsageError::UsageError(const std::string& what, ErrorDetail detail)
    : Error(ExitStatus::usage, what, std::move(detail)) {}

DataError::DataError(const std::string& what, ErrorDetail detail)
    : Error(ExitStatus::input, what, std::move(detail)) {}

IoError::IoError(const std::string& what, ErrorDetail detail)
    : Error(ExitStatus::io, what, std::move(detail)) {}

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
