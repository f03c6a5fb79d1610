// rubato completion: words for the shell to complete.

#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "common/suggest.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

namespace {

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(sub->get_name());
  return words;
}

std::string bash(const CLI::App& root) {
  std::string cases;
  for (const CLI::App* sub : root.get_subcommands([](const CLI::App*) { return true; })) {
    std::vector<std::string> words = options_of(*sub);
    for (const CLI::App* inner : sub->get_subcommands([](const CLI::App*) { return true; })) {
      for (std::string& word : options_of(*inner)) words.push_back(std::move(word));
    }
    cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), fmt::join(words, " "));
  }
  return fmt::format(
      "_rubato() {{\n"
      "  local words current=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}"
      "  esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then words=\"{}\"; fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -F _rubato rubato\n",
      cases, fmt::join(options_of(root), " "));
}

}  // namespace

Action setup_completion(CommandLine& app) {
  auto shell = std::make_shared<std::string>("bash");
  app.add_option("SHELL", *shell, "bash or zsh")->capture_default_str();
  app.footer(
      "\nExample:\n  rubato completion bash > ~/.local/share/bash-completion/completions/rubato");
  return [shell, &app](const RunContext&) {
    const std::vector<std::string> known{"bash", "zsh"};
    if (*shell != "bash" && *shell != "zsh") {
      throw UsageError(
          fmt::format("no completion for shell '{}'{}", *shell, did_you_mean(*shell, known)));
    }
    // zsh understands bash's completion functions once told to.
    const std::string prefix =
        *shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "";
    print(prefix + bash(*app.app().get_parent()));
    return ExitStatus::done;
  };
}

}  // namespace rubato
