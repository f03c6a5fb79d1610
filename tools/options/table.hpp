#pragma once
// Options of commands that plan on measured tables instead of a model.

#include <optional>
#include <string>

#include "explorer/exploration.hpp"
#include "tools/options/sweep.hpp"

namespace rubato {

struct TableOptions {
  SweepOptions sweep;  ///< file empty: plan on the model
  std::string missing = "leave-out";

  [[nodiscard]] bool given() const noexcept { return !sweep.file.empty(); }
};

/// Adds --table, --missing, --column, --where and --keep-implausible. `options` must outlive
/// parsing.
void add_table_options(CommandLine& app, TableOptions& options);

/// Reads the table and makes it what is planned on; standard error says what was left out or is
/// modelled.
/// @param trace  how often each kernel runs; nothing: the table says so
/// @throws what read_sweep and measured_table throw
void plan_on_table(const TableOptions& options, std::optional<Trace> trace,
                   ExplorationInput& input);

}  // namespace rubato
