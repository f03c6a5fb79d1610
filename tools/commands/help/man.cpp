// rubato man: the manual pages.

#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/file.hpp"
#include "common/suggest.hpp"
#include "common/version.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/help/manual_page.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

namespace {

const CommandHelp& command_named(const CommandHelp& root, const std::string& name) {
  if (name.empty()) return root;
  std::vector<std::string> known;
  for (const CommandHelp& command : root.commands) {
    if (command.name == name) return command;
    known.push_back(command.name);
  }
  throw UsageError(fmt::format("no command '{}'{}", name, did_you_mean(name, known)));
}

void write_page(const CommandHelp& root, const CommandHelp& command, const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder) / (manual_name(command) + ".1");
  write_file(file.string(), manual_page(root, command, std::string(program_version())));
}

}  // namespace

Action setup_man(CommandLine& app) {
  struct Options {
    std::string command;
    std::string all;
  };
  auto o = std::make_shared<Options>();
  auto* command = app.add_option("COMMAND", o->command, "Without it the page of the program");
  app.add_option("--all", o->all, "Write every page into this folder, as rubato-COMMAND.1")
      ->excludes(command);
  app.footer(
      "\nMade from the same texts as --help, in the form of man(7).\n"
      "Example:\n  rubato man explore | man -l -");
  return [o, &app](const RunContext&) {
    const CommandHelp root = describe(*app.app().get_parent(), "rubato");
    if (o->all.empty()) {
      print(manual_page(root, command_named(root, o->command), std::string(program_version())));
    } else {
      write_page(root, root, o->all);
      for (const CommandHelp& each : root.commands) write_page(root, each, o->all);
    }
    return ExitStatus::done;
  };
}

}  // namespace rubato
