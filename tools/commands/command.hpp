#pragma once
// The subcommands of the program: one file each, all listed in commands.cpp.

#include <functional>
#include <span>
#include <string_view>

#include "common/error.hpp"
#include "common/run_context.hpp"

namespace rubato {

class CommandLine;

/// What a subcommand does once its options are parsed.
using Action = std::function<ExitStatus(const RunContext&)>;

/// A subcommand. `setup` adds options to `app` and returns the action; option
/// values live in the action's captures.
struct Command {
  std::string_view name;
  std::string_view help;  ///< one line
  Action (*setup)(CommandLine& app);
  std::string_view heading = {};  ///< over it and its neighbours in --help
};

/// All subcommands in the order of `rubato --help`.
[[nodiscard]] std::span<const Command> commands();

/// Adds these commands to `app`, of which the line must hold one, and returns the action that runs
/// it. Commands that the line does not hold get no options.
[[nodiscard]] Action one_of(CommandLine& app, std::span<const Command> choices);

// Defined in the file of their name.
Action setup_budget(CommandLine& app);
Action setup_calibrate(CommandLine& app);
Action setup_compare(CommandLine& app);
Action setup_explore(CommandLine& app);
Action setup_export(CommandLine& app);
Action setup_gpus(CommandLine& app);
Action setup_impact(CommandLine& app);
Action setup_merge(CommandLine& app);
Action setup_network(CommandLine& app);
Action setup_pipeline(CommandLine& app);
Action setup_python(CommandLine& app);  ///< of each command that the Python package runs
Action setup_query(CommandLine& app);
Action setup_remeasure(CommandLine& app);
Action setup_replay(CommandLine& app);
Action setup_report(CommandLine& app);
Action setup_reproduce(CommandLine& app);
Action setup_show(CommandLine& app);
Action setup_experiment(CommandLine& app);
Action setup_suggest(CommandLine& app);
Action setup_latency_scan(CommandLine& app);
Action setup_top(CommandLine& app);
Action setup_trace(CommandLine& app);
Action setup_transfer(CommandLine& app);
Action setup_validate(CommandLine& app);
Action setup_verify(CommandLine& app);

}  // namespace rubato
