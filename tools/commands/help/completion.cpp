// rubato completion: a script for a shell to complete the command line.

#include <array>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/file.hpp"
#include "common/suggest.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/help/completion_scripts.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

namespace {

struct Shell {
  std::string_view name;
  std::string (*script)(const CommandHelp& root);
};

constexpr std::array shells{Shell{"bash", &bash_completion}, Shell{"zsh", &zsh_completion},
                            Shell{"fish", &fish_completion}};

std::string script_for(const std::string& name, const CommandHelp& root) {
  std::vector<std::string> known;
  for (const Shell& shell : shells) {
    if (name == shell.name) return shell.script(root);
    known.emplace_back(shell.name);
  }
  throw UsageError(fmt::format("no completion for shell '{}'{}", name, did_you_mean(name, known)));
}

}  // namespace

Action setup_completion(CommandLine& app) {
  struct Options {
    std::string shell = "bash";
    std::string out = "-";
  };
  auto o = std::make_shared<Options>();
  app.add_option("SHELL", o->shell, "bash, zsh or fish")->capture_default_str();
  app.add_option("-o,--output", o->out, "File; - is standard output")->capture_default_str();
  app.footer(
      "\nInstalled packages bring the scripts along; this is for a program that was not "
      "installed.\n"
      "Examples:\n"
      "  source <(rubato completion bash)\n"
      "  rubato completion fish -o ~/.config/fish/completions/rubato.fish");
  return [o, &app](const RunContext&) {
    write_output(o->out, script_for(o->shell, describe(*app.app().get_parent(), "rubato")));
    return ExitStatus::done;
  };
}

}  // namespace rubato
