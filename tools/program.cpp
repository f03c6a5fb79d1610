#include "tools/program.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
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

// Words that people know from examples and other programs.
struct Renamed {
  std::string_view command, word, now;
};
constexpr std::array renamed{
    Renamed{"rubato pipeline", "plan", "rubato explore"},
    Renamed{"rubato explore", "--ranks", "rubato explore rank0.json.gz rank1.json.gz"},
    Renamed{"rubato explore", "--profile", "rubato explore stages.csv"},
    Renamed{"rubato explore", "--model", "rubato explore gpt3-xl --stages N"},
    Renamed{"rubato explore", "--power-budget", "--budget 280W"},
    Renamed{"rubato explore", "--energy-budget", "--budget 1500J"},
    Renamed{"rubato explore", "--price-per-kwh", "--prices kwh=0.12"},
    Renamed{"rubato explore", "--price-per-gpu-hour", "--prices kwh=0.12,gpu-hour=2"},
    Renamed{"rubato explore", "--straggler", "--disturb 3:kernels*1.2"},
    Renamed{"rubato explore", "--throttle", "--disturb 3:1110MHz"},
    Renamed{"rubato explore", "--slow-link", "--disturb 3:network*1.5"},
    Renamed{"rubato explore", "--jitter", "--disturb jitter=0.02"},
    Renamed{"rubato explore", "--switch-latency-us", "--switching latency=22ms"},
    Renamed{"rubato explore", "--per-kernel", "--list kernels"},
    Renamed{"rubato explore", "--per-pass", "--list passes"},
    Renamed{"rubato explore", "--per-segment", "--list segments"},
    Renamed{"rubato explore", "--gantt", "--timeline plan.svg"},
    Renamed{"rubato explore", "--page", "--timeline plan.html"},
    Renamed{"rubato explore", "--zeus", "--plan-file FOLDER"},
    Renamed{"rubato explore", "--clock-per", "--granularity launch"},
    Renamed{"rubato explore", "--column", "--table DESCRIPTION.toml"},
    Renamed{"rubato explore", "--where", "--table DESCRIPTION.toml"},
    Renamed{"rubato explore", "--missing", "--table DESCRIPTION.toml"}};

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
  std::string command = "rubato";
  std::string names;
  for (const CLI::App* at = &app; at != nullptr && at != &root; at = at->get_parent()) {
    names.insert(0, " " + at->get_name());
  }
  command += names;
  const std::string hint = fmt::format("see '{} --help'", command);
  if (const std::string word = unexpected_word(root, error); !word.empty()) {
    const bool option = word.starts_with("-");
    const std::string name = word.substr(0, word.find('='));
    for (const Renamed& old : renamed) {
      if (command == old.command && name == old.word)
        throw UsageError(fmt::format("{}: unknown {} '{}'; did you mean '{}'?", command,
                                     option ? "option" : "word", printable(word), old.now),
                         {.in = {}, .hint = hint});
    }
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

// "help explore" as "explore --help".
std::vector<char*> arguments_of(int argc, char** argv, std::string& help) {
  std::vector<char*> words(argv, argv + argc);
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
  app.add_flag("--quiet", quiet, "No notes and no progress on standard error; errors stay");
  app.add_flag_callback("--wide", show_tables_wide,
                        "Tables with all columns, whatever the width of the terminal");
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

// Help shows types with their ranges. It leaves out what excludes or needs what: an error says
// that.
class HelpFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    for (const char* relation : {" Needs:", " Excludes:"})
      text.resize(std::min(text.find(relation), text.size()));
    using Words = std::pair<std::string_view, std::string_view>;
    for (const auto& [checked, shown] :
         {Words{":FLOAT in", " in"}, Words{":INT in", " in"}, Words{":POSITIVE", " > 0"}}) {
      if (const std::size_t at = text.find(checked); at != std::string::npos)
        text.replace(at, checked.size(), shown);
    }
    return text;
  }
};

}  // namespace

ExitStatus run_program(int argc, char** argv) {
  CLI::App app{
      "Rubato: which clocks should a GPU run each kernel of a training step at?\n"
      "Simulates kernel traces under a time and power model and finds the clocks\n"
      "that use the least energy within a time budget.",
      "rubato"};
  app.set_version_flag("--version", fmt::format("rubato {} ({}; {})", program_version(),
                                                source_revision(), build_info()));
  app.formatter(std::make_shared<HelpFormatter>());  // before commands, which take it over
  CommandLine root(app);
  const std::vector<std::string> given(argv, argv + argc);
  root.expect(given);
  const Action action = one_of(root, commands());
  bool quiet = false;
  add_terminal_options(app, quiet);
  // Behind the commands, or those without a footer would take it over.
  app.footer(
      "\nEvery command has its own --help, also as: rubato help COMMAND. Start with:\n"
      "  rubato reproduce spaan2026\n\n"
      "Exit status: 0 done, 1 no plan meets the budget, 2 wrong usage, 3 bad input, 4 reading or\n"
      "writing failed, 70 a bug of rubato's, 130 interrupted.");
  if (given.size() > 1 && given[1] == "complete") {
    print(completions(app, std::span(given).subspan(2)));
    return ExitStatus::done;
  }
  std::string help = "--help";
  try {
    std::vector<char*> words = arguments_of(argc, argv, help);
    if (words.size() > 1 && is_python_command(words[1]))
      run_python_command(std::vector<std::string>(words.begin() + 1, words.end()));
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& success) {  // --help, --version
    if (!app.remaining(true).empty()) throw_usage_error(app, CLI::ExtrasError({}));
    std::ostringstream text;
    const auto status = static_cast<ExitStatus>(app.exit(success, text, text));
    print(wrapped_help(text.str(), line_width()));
    return status;
  } catch (const CLI::ParseError& error) {
    throw_usage_error(app, error);
  }
  const Quiet hush(quiet);
  ProgressLine line;
  const RunContext context{.progress = [&line](const ProgressUpdate& update) { line.show(update); },
                           .cancelled = &stop_asked(),
                           .command_line = command_line(argc, argv)};
  const ExitStatus status = action(context);
  refuse_if_interrupted();
  end_output();
  return is_part() ? ExitStatus::interrupted : status;
}

}  // namespace rubato
