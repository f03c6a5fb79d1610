#pragma once
// Options of commands that plan on measured tables instead of a model.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "explorer/exploration.hpp"
#include "models/measured/named_cells.hpp"
#include "tools/options/sweep.hpp"

namespace rubato {

struct TableOptions {
  SweepOptions sweep;  ///< file empty: plan on the model
  std::string missing = "leave-out";

  [[nodiscard]] bool given() const noexcept { return !sweep.file.empty(); }
};

/// Adds --table, --column, --where and --keep-implausible. `options` must outlive parsing.
void add_table_options(CommandLine& app, TableOptions& options);

/// Adds --missing.
void add_missing_option(CommandLine& app, TableOptions& options);

/// Cells of the table for those of `kernels` that it knows by name. Nothing without a table.
/// Standard error says how many of them it knows.
/// @throws DataError if it knows none; what read_sweep and named_cells throw
[[nodiscard]] std::shared_ptr<const NamedCells> cells_of_table(const TableOptions& options,
                                                               const GpuSpec& spec,
                                                               std::span<const Kernel> kernels);

/// Reads the table and puts its cells into `input`, to be planned on. Standard error says what was
/// left out or is modelled.
/// @param trace  how often each kernel runs; nothing: the table says so
/// @throws what read_sweep and measured_table throw
void plan_on_table(const TableOptions& options, std::optional<Trace> trace,
                   ExplorationInput& input);

}  // namespace rubato
