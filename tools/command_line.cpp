#include "tools/command_line.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "common/error.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "tools/options/files.hpp"

namespace rubato {

namespace {

// The type of one value of an option: T itself, or what an optional or a vector holds.
template <class T>
struct OfOne {
  using type = T;
};
template <class T>
struct OfOne<std::optional<T>> {
  using type = T;
};
template <class T>
struct OfOne<std::vector<T>> {
  using type = T;
};

// What is wrong with a word that should be a number; empty: nothing.
template <class T>
std::string problem_of_number(const std::string& word) {
  T value{};
  errno = 0;
  // The parser takes -3 for 2^64 - 3.
  const bool below_zero = std::is_unsigned_v<T> && word.starts_with('-');
  if (below_zero || !CLI::detail::lexical_cast(word, value)) {
    return fmt::format("is '{}'; expected a {}", printable(word),
                       std::is_floating_point_v<T> ? "number"
                       : std::is_unsigned_v<T>     ? "whole number >= 0"
                                                   : "whole number");
  }
  if constexpr (std::is_integral_v<T>) {  // the parser takes the nearest it can hold
    if (errno == ERANGE) {
      return fmt::format("is {}; expected a whole number from {} to {}", printable(word),
                         std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return fmt::format("is {}; expected a finite number", value);
  }
  return "";
}

// The unit stands in the help of an option, and may be typed behind its number.
bool is_percentage(const std::string& help) { return help.find('%') != std::string::npos; }

template <class T>
void check_number(CLI::Option& option, const std::string& help) {
  using Number = typename OfOne<T>::type;
  if constexpr (std::is_arithmetic_v<Number>) {
    if (is_percentage(help)) {
      option.transform(CLI::Validator(
          [](std::string& word) {
            if (word.size() > 1 && word.back() == '%') word.pop_back();
            word.erase(word.find_last_not_of(' ') + 1);
            word.erase(0, word.find_first_not_of(' '));
            return std::string();
          },
          ""));
    }
    option.check(CLI::Validator(
        [](const std::string& word) { return problem_of_number<Number>(word); }, ""));
  }
}

// What --help calls a value: what stands behind a blank in `names`, else by its kind.
template <class T>
std::string value_word(std::string& names, const std::string& help) {
  if (const std::size_t blank = names.find(' '); blank != std::string::npos) {
    std::string word = names.substr(blank + 1);
    names.resize(blank);
    return word;
  }
  if constexpr (std::is_arithmetic_v<typename OfOne<T>::type>) {
    return is_percentage(help) ? "PCT" : help.find(", W") != std::string::npos ? "W" : "N";
  } else {
    static const std::set<std::string> files{"db",   "page",     "plot",   "output",   "power",
                                             "log",  "perfetto", "report", "measured", "profile",
                                             "file", "timeline", "idle",   "ops",      "edges"};
    std::string word = names.substr(names.find_last_of("-, ") + 1);
    if (files.contains(word)) return "FILE";
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::toupper(c); });
    return word;
  }
}

template <class T>
std::string problem_of_range(const std::string& word, T least, T most) {
  T value{};
  if (CLI::detail::lexical_cast(word, value) && value >= least && value <= most) return "";
  return fmt::format("is {}; expected a number from {} to {}", printable(word), least, most);
}

template <class T>
void check_range(CLI::Option& option, T least, T most) {
  option.check(
      [least, most](const std::string& word) { return problem_of_range(word, least, most); },
      fmt::format("{} in [{} - {}]", std::is_integral_v<T> ? "INT" : "FLOAT", least, most));
}

}  // namespace

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}

Option* Option::delimiter(char between) {
  option_->delimiter(between);
  return this;
}

Option* Option::one_word() {
  option_->allow_extra_args(false);
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::needs(Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::group(const std::string& title) {
  option_->group(title);
  return this;
}

Option* Option::reads_file() {
  option_->transform(CLI::Validator(
      [](std::string& word) {
        word = input_file(word);
        return std::string();
      },
      ""));
  return this;
}

Option* Option::positive() {
  option_->check(
      [](const std::string& word) {
        double value = 0.0;
        if (CLI::detail::lexical_cast(word, value) && value > 0.0) return std::string();
        return fmt::format("is {}; expected a number > 0", printable(word));
      },
      "POSITIVE");
  return this;
}

Option* Option::in_range(int least, int most) {
  check_range(*option_, least, most);
  return this;
}

Option* Option::in_range(double least, double most) {
  check_range(*option_, least, most);
  return this;
}

Option* Option::one_of(std::initializer_list<const char*> words) {
  const std::vector<std::string> known(words.begin(), words.end());
  option_->check(
      [known](const std::string& word) {
        if (std::ranges::find(known, word) != known.end()) return std::string();
        return fmt::format("is '{}'{}", printable(word), did_you_mean(word, known));
      },
      fmt::format("{{{}}}", fmt::join(known, ",")));
  return this;
}

Option* Option::ends_in(std::initializer_list<const char*> extensions) {
  const std::vector<std::string> known(extensions.begin(), extensions.end());
  option_->check(CLI::Validator(
      [known](const std::string& word) {
        const auto ends = [&](const std::string& extension) { return word.ends_with(extension); };
        if (word == "-" || std::ranges::any_of(known, ends)) return std::string();
        return fmt::format("is '{}'; expected a name that ends in {}", printable(word),
                           fmt::join(known, ", "));
      },
      ""));
  return this;
}

CommandLine::CommandLine(CLI::App& app) : app_(&app) {}
CommandLine::~CommandLine() = default;

Option* CommandLine::keep(CLI::Option* option) {
  return options_.emplace_back(std::make_unique<Option>(*option)).get();
}

template <OptionValue T>
Option* CommandLine::add_option(const std::string& names, T& value, const std::string& help) {
  std::string named = names;
  const std::string word = value_word<T>(named, help);
  CLI::Option& option = *app_->add_option(named, value, help);
  option.type_name(word);
  static const std::set<std::string> written{"output",   "page",   "plot",    "plan-file",
                                             "perfetto", "report", "timeline"};
  if (!option.get_lnames().empty() && written.contains(option.get_lnames().front()))
    option.group(output_group);
  check_number<T>(option, help);
  return keep(&option);
}

#define RUBATO_OPTION_VALUE(...) \
  template Option* CommandLine::add_option(const std::string&, __VA_ARGS__&, const std::string&)
RUBATO_OPTION_VALUE(std::string);
RUBATO_OPTION_VALUE(double);
RUBATO_OPTION_VALUE(int);
RUBATO_OPTION_VALUE(unsigned);
RUBATO_OPTION_VALUE(std::int64_t);
RUBATO_OPTION_VALUE(std::uint64_t);
RUBATO_OPTION_VALUE(std::optional<std::string>);
RUBATO_OPTION_VALUE(std::optional<double>);
RUBATO_OPTION_VALUE(std::optional<unsigned>);
RUBATO_OPTION_VALUE(std::optional<std::int64_t>);
RUBATO_OPTION_VALUE(std::optional<std::uint64_t>);
RUBATO_OPTION_VALUE(std::vector<std::string>);
RUBATO_OPTION_VALUE(std::vector<double>);
RUBATO_OPTION_VALUE(std::vector<unsigned>);
RUBATO_OPTION_VALUE(std::vector<std::uint64_t>);
#undef RUBATO_OPTION_VALUE

Option* CommandLine::add_flag(const std::string& names, bool& value, const std::string& help) {
  return keep(app_->add_flag(names, value, help));
}

Option* CommandLine::add_flag_callback(const std::string& names, std::function<void()> action,
                                       const std::string& help) {
  return keep(app_->add_flag_callback(names, std::move(action), help));
}

Option* CommandLine::add_word_callback(const std::string& names,
                                       const std::function<void(const std::string&)>& action,
                                       const std::string& help) {
  std::string named = names;
  const std::string word = value_word<std::string>(named, help);
  return keep(app_->add_option_function<std::string>(named, action, help)->type_name(word));
}

CommandLine* CommandLine::add_subcommand(const std::string& name, const std::string& help) {
  CLI::App& sub = *app_->add_subcommand(name, help);
  CommandLine* line = subcommands_.emplace_back(std::make_unique<CommandLine>(sub)).get();
  line->expected_ = expected_;
  return line;
}

void CommandLine::headed(const std::string& title) { app_->group(title); }

void CommandLine::group(const std::string& title, std::initializer_list<const char*> options) {
  for (const char* option : options) app_->get_option(option)->group(title);
}

void CommandLine::rare(std::initializer_list<const char*> options) {
  group(rare_group, options);
  app_->set_help_all_flag("--help-all", "Print rare options too")->group(general_group);
}

void CommandLine::require_subcommand(int count) { app_->require_subcommand(count); }

void CommandLine::footer(const std::string& text) { app_->footer(text); }

bool CommandLine::may_hold(std::string_view name) const {
  return !expected_ || std::ranges::find(*expected_, name) != expected_->end();
}

bool CommandLine::knows(const std::string& option) const {
  return app_->get_option_no_throw(option) != nullptr;
}

bool CommandLine::has(const std::string& option) const { return app_->count(option) > 0; }

std::vector<std::pair<std::string, std::string>> CommandLine::given() const {
  std::vector<std::pair<std::string, std::string>> given;
  for (const CLI::Option* option : std::as_const(*app_).get_options())
    if (option->count() > 0 && !option->get_lnames().empty())
      given.emplace_back(option->get_lnames().front(),
                         fmt::format("{}", fmt::join(option->results(), ",")));
  return given;
}

std::vector<std::string> CommandLine::given_of(const std::string& group) const {
  std::vector<std::string> given;
  for (const CLI::Option* option : std::as_const(*app_).get_options())
    if (option->get_group() == group && option->count() > 0)
      given.push_back("--" + option->get_lnames().front());
  return given;
}

void CommandLine::final_callback(std::function<void()> action) {
  app_->final_callback(std::move(action));
}

void parse_words(const std::string& file, std::vector<std::string> words,
                 const std::function<void(CommandLine&)>& setup) {
  CLI::App app;
  CommandLine line(app);
  setup(line);
  std::ranges::reverse(words);  // as the parser takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw DataError(fmt::format("{}: {}", printable(file), printable(error.what())));
  }
}

void refuse(const CommandLine& line, std::initializer_list<const char*> options,
            std::string_view why, const std::string& hint) {
  for (const char* option : options) {
    if (line.has(option))
      throw UsageError(fmt::format("{} {}", option, why), {.in = {}, .hint = hint});
  }
}

}  // namespace rubato
