#pragma once
// Options of commands that plan on measured tables instead of a model.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "explorer/exploration.hpp"
#include "models/measured/named_cells.hpp"
#include "tools/options/sweep.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// Adds --table. `table` must outlive parsing.
void add_table_option(CommandLine& app, std::string& table);

class CommandLine;

/// Cells of the table for those of `kernels` that it knows by name. Nothing without a table.
/// Standard error says how many of them it knows.
/// @throws DataError if it knows none; what read_sweep and named_cells throw
[[nodiscard]] std::shared_ptr<const NamedCells> cells_of_table(const std::string& table,
                                                               const GpuSpec& spec,
                                                               std::span<const Kernel> kernels);

/// The spec with the kernels of a capture that the table knows by name, fitted to their points:
/// what the clocks change of them is then measured. The others stay the spec's. Standard error says
/// how many there are. Without a table the spec as it is.
/// @throws DataError if it knows none; what read_sweep and fit_kernels_only throw
[[nodiscard]] GpuSpec with_kernels_of_table(GpuSpec spec, const std::string& table,
                                            std::span<const Capture> captures,
                                            const RunContext& context);

/// Reads the table and puts its cells into `input`, to be planned on. Standard error says what was
/// left out or is modelled.
/// @param trace  how often each kernel runs; nothing: the table says so
/// @throws what read_sweep and measured_table throw
void plan_on_table(const SweepOptions& table, std::optional<Trace> trace, ExplorationInput& input);

}  // namespace rubato
