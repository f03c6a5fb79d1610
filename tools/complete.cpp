#include "tools/complete.hpp"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>

#include "explorer/goal.hpp"
#include "explorer/graph/questions.hpp"
#include "models/gpu/spec.hpp"
#include "models/network/cluster.hpp"
#include "tools/options/questions.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

struct Values {
  std::vector<std::string> words;
  bool or_file = true;
};

// CLI11 writes a fixed list of values behind the type: "TEXT:{none,spec}".
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// What an option or a positional argument takes. Some lists are not CLI11's: a command checks them
// where it reads them, since what else it accepts may depend on other options.
Values values_of(const CLI::Option& option) {
  const std::string name = option.get_name(option.get_positional());
  const auto is = [&](std::string_view other) { return name == other; };
  if (is("--per")) return {granularity_names(), false};
  if (is("--goal")) return {goal_names(), false};
  if (is("--gpu")) return {shipped_gpu_specs()};
  if (is("--cluster")) return {shipped_clusters()};
  if (is("WORK") || is("TRACE") || is("--trace")) return {shipped_traces()};
  const std::vector<std::string> choices = choices_of(option.get_type_name());
  return {choices, choices.empty()};
}

// Lines of the words that begin as the last one does.
class Offer {
 public:
  explicit Offer(const std::string& typed) : typed_(typed) {}

  void add(const std::string& word, const std::string& help = "") {
    if (!word.starts_with(typed_)) return;
    lines_ += word;
    if (!help.empty()) lines_ += '\t' + help.substr(0, help.find('\n'));
    lines_ += '\n';
  }
  void add(const CLI::Option& option) {
    if (option.get_group().empty()) return;  // hidden
    for (const std::string& name : option.get_snames()) add("-" + name, option.get_description());
    for (const std::string& name : option.get_lnames()) add("--" + name, option.get_description());
  }
  // Of a list in one word, its last value.
  void add_values(const CLI::Option& option) {
    const Values values = values_of(option);
    const std::size_t last =
        option.get_delimiter() == '\0' ? std::string::npos : typed_.rfind(option.get_delimiter());
    const std::string before = last == std::string::npos ? "" : typed_.substr(0, last + 1);
    for (const std::string& word : values.words) add(before + word);
    if (values.or_file) lines_ += ":files\n";
  }

  [[nodiscard]] const std::string& lines() const { return lines_; }

 private:
  const std::string& typed_;
  std::string lines_;
};

}  // namespace

std::string completions(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return "";
  const CLI::App* command = &app;
  const CLI::Option* before = nullptr;
  for (const std::string& word : words.first(words.size() - 1)) {
    const auto below =
        command->get_subcommands([&](const CLI::App* sub) { return sub->check_name(word); });
    if (!below.empty()) command = below.front();
    before = word.starts_with('-') ? command->get_option_no_throw(word) : nullptr;
  }

  Offer offer(words.back());
  if (before != nullptr && before->get_type_size() != 0) {
    offer.add_values(*before);
  } else if (words.back().starts_with('-')) {
    for (const CLI::Option* option : command->get_options()) offer.add(*option);
  } else {
    for (const CLI::App* sub : command->get_subcommands([](const CLI::App*) { return true; }))
      offer.add(sub->get_name(), sub->get_description());
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) offer.add_values(*option);
    }
  }
  return offer.lines();
}

}  // namespace rubato
