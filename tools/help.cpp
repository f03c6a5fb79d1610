#include "tools/help.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"
#include "common/version.hpp"
#include "tools/command_line.hpp"
#include "tools/terminal/terminal.hpp"

namespace rubato {

namespace {

constexpr std::size_t narrowest = 60;  // columns that leave room for words
constexpr std::size_t texts_at = 26;   // where texts of options begin

void add_entry(std::string& text, const std::string& name, std::string_view words,
               std::size_t columns, std::size_t at) {
  std::string begin = "  " + name;
  if (begin.size() + 2 > at) text += std::exchange(begin, "") + '\n';
  begin.resize(at, ' ');
  text += begin;
  add_wrapped(text, words, columns, std::string(at, ' '), at);
}

// "trace gen"; empty for the program itself.
std::string command_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string above = command_of(*app.get_parent());
  return above.empty() ? app.get_name() : above + " " + app.get_name();
}

std::vector<const CLI::App*> commands_below(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "WORK...", or what stands behind its name where it is added: "DATABASE RUN".
std::string positional_name(const CLI::Option& option) {
  const std::string name = option.get_name(true), type = option.get_type_name();
  const std::string word = type.substr(0, type.find(':'));
  return word + (word == name && option.get_expected_max() > 1 ? "..." : "");
}

// Paragraphs, one a line.
void add_paragraphs(std::string& text, const std::string& paragraphs, std::size_t columns) {
  if (paragraphs.empty()) return;
  text += '\n';
  for (const std::string_view line : split(paragraphs, '\n')) add_wrapped(text, line, columns, "");
}

// "-o, --output FILE"
std::string option_name(const CLI::Option& option, bool with_value = true) {
  std::string name;
  for (const std::string& one : option.get_snames()) name += "-" + one + ", ";
  for (const std::string& one : option.get_lnames()) name += "--" + one + ", ";
  name.resize(name.size() - 2);
  if (option.get_expected_max() == 0 || !with_value) return name;
  const std::string type = option.get_type_name();
  return name + " " + type.substr(0, type.find(':'));
}

// The description, the words that there are unless it has them, and what holds where none is given.
std::string option_words(const CLI::Option& option) {
  std::string words = option.get_description();
  const std::string type = option.get_type_name();
  if (const std::size_t open = type.find('{'); open != std::string::npos) {
    const std::string choices = type.substr(open + 1, type.find('}') - open - 1);
    const auto said = [&](std::string_view one) { return words.find(one) != std::string::npos; };
    if (!std::ranges::all_of(split(choices, ','), said)) words += fmt::format(" {{{}}}", choices);
  }
  std::string value = option.get_default_str();
  if (value.starts_with('[')) value = value.substr(1, value.size() - 2);  // of a list
  if (!value.empty()) words += fmt::format(" [{}]", value);
  if (option.get_required() && !option.get_positional()) words += " (required)";
  return words;
}

std::string usage(const CLI::App& app) {
  std::string line = "Usage: rubato";
  if (const std::string command = command_of(app); !command.empty()) line += " " + command;
  if (!commands_below(app).empty()) line += " COMMAND";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = positional_name(*option);
    line += option->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  return line + " [OPTIONS]\n";
}

// Groups in the order of their first members, but for those that stand last.
std::vector<std::string> groups_of(const CLI::App& app, bool rare) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    const bool known = std::ranges::find(groups, group) != groups.end();
    if (!option->get_positional() && !group.empty() && !known && (rare || group != rare_group))
      groups.push_back(group);
  }
  std::ranges::stable_sort(groups, {}, [](const std::string& group) {
    return group == general_group  ? 4
           : group == rare_group   ? 3
           : group == output_group ? 2
           : group == "Options"    ? 0
                                   : 1;
  });
  return groups;
}

void add_commands(std::string& text, const CLI::App& app, std::size_t columns) {
  std::size_t longest = 0;
  std::string heading;
  for (const CLI::App* sub : commands_below(app))
    longest = std::max(longest, sub->get_name().size());
  for (const CLI::App* sub : commands_below(app)) {
    if (sub->get_group() != heading) text += fmt::format("\n{}\n", heading = sub->get_group());
    add_entry(text, sub->get_name(), sub->get_description(), columns, longest + 4);
  }
}

void add_options(std::string& text, const CLI::App& app, bool rare, std::size_t columns) {
  for (const std::string& group : groups_of(app, rare)) {
    text += fmt::format("\n{}\n", group);
    for (const CLI::Option* option : app.get_options())
      if (!option->get_positional() && option->get_group() == group)
        add_entry(text, option_name(*option), option_words(*option), columns, texts_at);
  }
}

}  // namespace

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode mode) const {
  const std::size_t columns = std::max(line_width(), narrowest);
  std::string text = usage(*app);
  add_paragraphs(text, app->get_description(), columns);
  bool first = true;
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    if (std::exchange(first, false)) text += '\n';
    const std::string name = positional_name(*option);
    add_entry(text, option->nonpositional() ? name + ", " + option_name(*option, false) : name,
              option_words(*option), columns, texts_at);
  }
  add_commands(text, *app, columns);
  add_options(text, *app, mode == CLI::AppFormatMode::All, columns);
  add_paragraphs(text, app->get_footer(), columns);
  const std::vector<std::string_view> examples = examples_of(command_of(*app));
  if (!examples.empty()) text += "\nExamples\n";
  for (const std::string_view line : examples) text += fmt::format("  {}\n", line);
  return text;
}

std::string first_words() {
  return fmt::format(
      "Rubato {} finds GPU clocks that save energy in training, before you set them.\n\n"
      "What do you have?\n"
      "  a profile of your training   rubato explore run.pt.trace.json.gz\n"
      "  profiles of several ranks    rubato explore rank*.pt.trace.json.gz\n"
      "  a model, but no profile      rubato explore gpt3-xl --gpu a100-sxm4-80gb\n"
      "  times of pipeline stages     rubato explore stages.csv --microbatches 8\n"
      "  measurements of a GPU        rubato calibrate sweep.csv\n"
      "  a database of results        rubato show results.db\n\n"
      "  rubato doctor       what this machine can measure and set\n"
      "  rubato help terms   what words and signs in tables mean\n"
      "  rubato --help       all commands\n",
      program_version());
}

}  // namespace rubato
