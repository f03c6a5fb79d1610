#include "tools/commands/help/command_help.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "explorer/graph/questions.hpp"
#include "models/gpu/spec.hpp"
#include "models/network/cluster.hpp"
#include "tools/options/questions.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

bool is_called(const OptionHelp& option, const char* name) {
  return std::ranges::find(option.names, name) != option.names.end();
}

std::vector<std::string> grains() {
  std::vector<std::string> names;
  for (const GraphGrain grain : {GraphGrain::iteration, GraphGrain::gpu, GraphGrain::pass,
                                 GraphGrain::kernel, GraphGrain::launch, GraphGrain::automatic})
    names.emplace_back(name_of(grain));
  return names;
}

// Adds the values of options that mean the same in every command. A command checks them where it
// reads them, since what else it accepts may depend on other options.
void add_known_values(OptionHelp& help) {
  if (is_called(help, "--granularity")) help.choices = grains();
  if (is_called(help, "--goal")) help.choices = goal_names();
  if (is_called(help, "--gpu")) help.shipped = shipped_gpu_specs();
  if (is_called(help, "--cluster")) help.shipped = shipped_clusters();
  if (is_called(help, "TRACE") || is_called(help, "--trace")) help.shipped = shipped_traces();
}

// CLI11 writes a fixed list of values behind the type: "TEXT:{none,spec}".
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t open = type.find('{');
  const std::size_t close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

OptionHelp describe(const CLI::Option& option, bool positional) {
  OptionHelp help;
  help.positional = positional;
  if (help.positional) {
    help.names.push_back(option.get_name(true, false));
  } else {
    for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  }
  if (option.get_type_size() != 0) {
    const std::string type = option.get_type_name();
    help.choices = choices_of(type);
    // "FLOAT:POSITIVE" and the like: what was checked is not part of the type's name.
    help.value = type.substr(0, type.find_first_of(":{ "));
    help.default_value = option.get_default_str();
    if (option.get_delimiter() != '\0') help.between = option.get_delimiter();
    add_known_values(help);
  }
  help.text = option.get_description();
  help.group = option.get_group();
  help.repeated = option.get_expected_max() == CLI::detail::expected_max_vector_size;
  help.required = option.get_required();
  return help;
}

}  // namespace

CommandHelp describe(const CLI::App& app, const std::string& path) {
  CommandHelp help{.name = app.get_name(),
                   .path = path,
                   .text = app.get_description(),
                   .footer = app.get_footer(),
                   .options = {},
                   .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    // Some may be given by position and by name.
    if (option->get_positional()) help.options.push_back(describe(*option, true));
    if (option->nonpositional()) help.options.push_back(describe(*option, false));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    help.commands.push_back(describe(*sub, path + " " + sub->get_name()));
  return help;
}

}  // namespace rubato
