#include "tools/program.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "common/process/interruption.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/complete.hpp"
#include "tools/help.hpp"
#include "tools/options/file_kinds.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/python_commands.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress_line.hpp"
#include "tools/terminal/terminal.hpp"

namespace rubato {

namespace {

// The innermost subcommand on the command line: its options are the ones meant.
const CLI::App& selected(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : selected(*chosen.front());
}

// " trace gen"
std::string names_of(const CLI::App& root, const CLI::App& app) {
  std::string names;
  for (const CLI::App* at = &app; at != nullptr && at != &root; at = at->get_parent())
    names.insert(0, " " + at->get_name());
  return names;
}

std::vector<std::string> known_words(const CLI::App& app, bool options) {
  std::vector<std::string> words;
  if (options) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
  } else {
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      words.push_back(sub->get_name());
    }
  }
  return words;
}

// The first word the parser could not place, if that is what went wrong.
std::string unexpected_word(const CLI::App& root, const CLI::ParseError& error) {
  const std::vector<std::string> left = root.remaining(true);
  if (!left.empty()) return left.front();
  if (error.get_name() != "ExtrasError") return "";
  const std::string message = error.what();  // "... not expected: WORD WORD"
  const std::size_t colon = message.rfind(": ");
  if (colon == std::string::npos) return "";
  return message.substr(colon + 2, message.find(' ', colon + 2) - colon - 2);
}

[[noreturn]] void throw_usage_error(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = selected(root);
  const std::string command = "rubato" + names_of(root, app);
  const std::string hint = fmt::format("see '{} --help'", command);
  if (const std::string word = unexpected_word(root, error); !word.empty()) {
    const bool option = word.starts_with("-");
    const std::vector<std::string> known = known_words(app, option);
    const auto near = nearest(option ? word.substr(0, word.find('=')) : word, known);
    throw UsageError(
        fmt::format("{}: unknown {} '{}'{}", command, option ? "option" : "word", printable(word),
                    near ? fmt::format("; did you mean '{}'?", *near) : ""),
        {.in = {}, .hint = hint});
  }
  if (const std::vector<std::string> below = known_words(app, false);
      error.get_name() == "RequiredError" && !below.empty()) {
    if (&app == &root)
      throw UsageError("rubato: which command?",
                       {.in = {}, .hint = hint + ", or start with 'rubato explore gpt3-xl'"});
    throw UsageError(fmt::format("{}: which of {}?", command, fmt::join(below, ", ")),
                     {.in = {}, .hint = hint});
  }
  // "--batch: is 0; expected ...": the parser's colon between an option and what is wrong with it.
  std::string message = error.what();
  if (const std::size_t colon = message.find(": is "); colon != std::string::npos)
    message.erase(colon, 1);
  throw UsageError(fmt::format("{}: {}", command, printable(message)), {.in = {}, .hint = hint});
}

std::string command_line(int argc, char** argv) {
  std::string text = "rubato";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain = !word.empty() && word.find_first_of(" \"'$`\\*;&|<>()") == std::string::npos;
    text += plain ? ' ' + word : fmt::format(" '{}'", word);
  }
  return text;
}

// "help explore" as "explore --help", "version" as "--version".
std::vector<char*> arguments_of(int argc, char** argv, std::string& help, std::string& version) {
  std::vector<char*> words(argv, argv + argc);
  if (words.size() == 2 && std::string_view(words[1]) == "version") words[1] = version.data();
  if (words.size() < 2 || std::string_view(words[1]) != "help") return words;
  words.erase(words.begin() + 1);
  if (words.size() == 2 && std::string_view(words[1]) == "help") words.pop_back();
  words.push_back(help.data());
  return words;
}

// --quiet and --wide: of every command that does something, and of the program before the command.
void add_terminal_options(CLI::App& app, bool& quiet) {
  const auto below = app.get_subcommands([](const CLI::App*) { return true; });
  for (CLI::App* sub : below) add_terminal_options(*sub, quiet);
  if (!below.empty() && app.get_parent() != nullptr) return;
  app.get_help_ptr()->description("Print this help");
  app.get_help_ptr()->group(general_group);
  app.add_flag("--quiet", quiet, "Print no notes and no progress; errors stay")
      ->group(general_group);
  app.add_flag_callback("--wide", show_tables_wide, "Print all columns, however wide")
      ->group(general_group);
}

// --db of the user's defaults, where the command that `words` name has one that they do not give.
void take_default_db(CLI::App& root, std::span<const std::string> words) {
  CLI::App* command = &root;
  for (const std::string& word : words.subspan(1)) {
    const auto below =
        command->get_subcommands([&](const CLI::App* sub) { return sub->check_name(word); });
    if (below.empty()) break;
    command = below.front();
  }
  CLI::Option* option = command->get_option_no_throw("--db");
  const auto given = [](std::string_view word) {
    return word == "--db" || word.starts_with("--db=") || word == "--help" || word == "-h" ||
           word == "--help-all";
  };
  if (option == nullptr || std::ranges::any_of(words, given)) return;
  const std::optional<std::string> db = user_default("db");
  if (db) option->required(false)->default_val(*db);
}

// Standard error goes nowhere as long as this lives.
class Quiet {
 public:
  explicit Quiet(bool wanted) {
    if (!wanted) return;
    std::fflush(stderr);
    kept_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) ::close(nowhere);
  }
  ~Quiet() {
    if (kept_ < 0) return;
    std::fflush(stderr);
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int kept_ = -1;
};

// Errors that do not say what to do next do so here.
ExitStatus with_hints(const CLI::App& app, const std::vector<std::string>& words,
                      const std::function<ExitStatus()>& action) {
  const auto help = [&] { return fmt::format("rubato{} --help", names_of(app, selected(app))); };
  // Readers of tables name options of calibrate, which other commands have in a description.
  const auto as_described = [&](const Error& error) {
    const std::string said = error.what() + error.detail().hint;
    for (const char* option : {"--column", "--where"}) {
      if (said.find(option) == std::string::npos ||
          selected(app).get_option_no_throw(option) != nullptr)
        continue;
      return fmt::format(
          "{}{}{} goes into a description of the table, --table FILE.toml "
          "(docs/add-a-gpu.md)",
          error.detail().hint, error.detail().hint.empty() ? "" : "; ", option);
    }
    return std::string();
  };
  try {
    return action();
  } catch (const UsageError& error) {
    if (const std::string hint = as_described(error); !hint.empty())
      throw UsageError(error.what(), {.in = error.detail().in, .hint = hint});
    if (!error.detail().hint.empty()) throw;
    throw UsageError(error.what(), {.in = error.detail().in, .hint = "see '" + help() + "'"});
  } catch (const Error& error) {
    if (error.status() != ExitStatus::input && error.status() != ExitStatus::io) throw;
    if (const OtherKind other = other_kind(words, error.what()); !other.what.empty())
      throw DataError(other.what, {.in = {}, .hint = other.hint});
    if (const std::string hint = as_described(error); !hint.empty())
      throw DataError(error.what(), {.in = error.detail().in, .hint = hint});
    if (!error.detail().hint.empty() || error.status() == ExitStatus::io) throw;
    throw DataError(error.what(), {.in = error.detail().in,
                                   .hint = fmt::format("'{}' says what it reads", help())});
  }
}

}  // namespace

ExitStatus run_program(int argc, char** argv) {
  CLI::App app("", "rubato");
  app.set_version_flag("-V,--version", fmt::format("rubato {} ({}; {})", program_version(),
                                                   source_revision(), build_info()))
      ->description("Print the version")
      ->group(general_group);
  app.formatter(std::make_shared<HelpFormatter>());  // before commands, which take it over
  CommandLine root(app);
  const std::vector<std::string> given(argv, argv + argc);
  root.expect(given);
  const Action action = one_of(root, commands());
  bool quiet = false;
  add_terminal_options(app, quiet);
  // Behind the commands, or those without a footer would take it over.
  app.footer(
      "Exit status: 0 done, 1 no plan meets the limit, 2 wrong usage, 3 bad input, 4 cannot read "
      "or write, 70 a bug, 130 interrupted.\n"
      "rubato help terms explains words and signs in tables.");
  if (given.size() < 2) {
    print(first_words());
    return ExitStatus::done;
  }
  if (given.size() > 2 && given[1] == "help" && given[2] == "terms") {
    if (given.back() == "--wide") show_tables_wide();
    print(terms_text());
    return ExitStatus::done;
  }
  if (given[1] == "complete") {
    print(completions(app, std::span(given).subspan(2)));
    return ExitStatus::done;
  }
  std::string help = "--help", version = "--version";
  try {
    std::vector<char*> words = arguments_of(argc, argv, help, version);
    if (words.size() > 1 && is_python_command(words[1]))
      run_python_command(std::vector<std::string>(words.begin() + 1, words.end()));
    (void)with_hints(app, given, [&] {
      take_default_db(app, given);
      app.parse(static_cast<int>(words.size()), words.data());
      return ExitStatus::done;
    });
  } catch (const CLI::Success& success) {  // --help, --version
    if (!app.remaining(true).empty()) throw_usage_error(app, CLI::ExtrasError({}));
    std::ostringstream text;
    const auto status = static_cast<ExitStatus>(app.exit(success, text, text));
    print(text.str());
    return status;
  } catch (const CLI::ParseError& error) {
    throw_usage_error(app, error);
  }
  const Quiet hush(quiet);
  ProgressLine line;
  const RunContext context{.progress = [&line](const ProgressUpdate& update) { line.show(update); },
                           .cancelled = &stop_asked(),
                           .command_line = command_line(argc, argv)};
  const ExitStatus status = with_hints(app, given, [&] { return action(context); });
  refuse_if_interrupted();
  end_output();
  return is_part() ? ExitStatus::interrupted : status;
}

}  // namespace rubato
