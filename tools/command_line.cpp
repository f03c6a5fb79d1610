#include "tools/command_line.hpp"

#include <utility>

#include <CLI/CLI.hpp>

namespace rubato {

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

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::group(const std::string& title) {
  option_->group(title);
  return this;
}

Option* Option::positive() {
  option_->check(CLI::PositiveNumber);
  return this;
}

Option* Option::in_range(int least, int most) {
  option_->check(CLI::Range(least, most));
  return this;
}

Option* Option::in_range(double least, double most) {
  option_->check(CLI::Range(least, most));
  return this;
}

Option* Option::one_of(std::initializer_list<const char*> words) {
  option_->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())));
  return this;
}

CommandLine::CommandLine(CLI::App& app) : app_(&app) {}
CommandLine::~CommandLine() = default;

Option* CommandLine::keep(CLI::Option* option) {
  return options_.emplace_back(std::make_unique<Option>(*option)).get();
}

template <OptionValue T>
Option* CommandLine::add_option(const std::string& names, T& value, const std::string& help) {
  return keep(app_->add_option(names, value, help));
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

CommandLine* CommandLine::add_subcommand(const std::string& name, const std::string& help) {
  CLI::App& sub = *app_->add_subcommand(name, help);
  return subcommands_.emplace_back(std::make_unique<CommandLine>(sub)).get();
}

void CommandLine::require_subcommand(int count) { app_->require_subcommand(count); }

void CommandLine::footer(const std::string& text) { app_->footer(text); }

bool CommandLine::has(const std::string& option) const { return app_->count(option) > 0; }

void CommandLine::final_callback(std::function<void()> action) {
  app_->final_callback(std::move(action));
}

}  // namespace rubato
