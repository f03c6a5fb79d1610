#pragma once
// The subcommands of the program: one file each, all listed in commands.cpp.

#include <functional>
#include <span>
#include <string_view>

#include "common/error.hpp"
#include "common/run_context.hpp"

namespace CLI {
class App;
}

namespace rubato {

/// What a subcommand does once its options are parsed.
using Action = std::function<ExitStatus(const RunContext&)>;

/// A subcommand. `setup` adds options to `app` and returns the action; option
/// values live in the action's captures.
struct Command {
  std::string_view name;
  std::string_view help;  ///< one line
  Action (*setup)(CLI::App& app);
};

/// All subcommands in the order of `rubato --help`.
[[nodiscard]] std::span<const Command> commands();

// Defined in cmd_<name>.cpp.
Action setup_calibrate(CLI::App& app);
Action setup_compare(CLI::App& app);
Action setup_completion(CLI::App& app);
Action setup_explore(CLI::App& app);
Action setup_export(CLI::App& app);
Action setup_gpus(CLI::App& app);
Action setup_impact(CLI::App& app);
Action setup_merge(CLI::App& app);
Action setup_pipeline(CLI::App& app);
Action setup_query(CLI::App& app);
Action setup_remeasure(CLI::App& app);
Action setup_replay(CLI::App& app);
Action setup_report(CLI::App& app);
Action setup_reproduce(CLI::App& app);
Action setup_show(CLI::App& app);
Action setup_sweep(CLI::App& app);
Action setup_suggest(CLI::App& app);
Action setup_sweep_latency(CLI::App& app);
Action setup_top(CLI::App& app);
Action setup_trace(CLI::App& app);
Action setup_transfer(CLI::App& app);
Action setup_validate(CLI::App& app);

}  // namespace rubato
