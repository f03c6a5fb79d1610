#include "tools/options/table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/measured/measured_table.hpp"
#include "tools/command_line.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

void add_table_option(CommandLine& app, std::string& table) {
  app.add_option(
      "--table", table,
      "Measured times and energies instead of the model's: a CSV with kernel, core_mhz, mem_mhz, "
      "time_s, and power_w or energy_j, a cache of Kernel Tuner, or a description, TOML: file, "
      "columns, where, keep_implausible, missing (docs/add-a-gpu.md)");
}

std::shared_ptr<const NamedCells> cells_of_table(const std::string& table, const GpuSpec& spec,
                                                 std::span<const Kernel> kernels) {
  if (table.empty()) return {};
  const SweepOptions options = table_of(table);
  std::vector<std::string> notes;
  auto cells = named_cells(load_sweep(options, spec), spec, notes);
  for (const std::string& note : notes) tell("note: {}\n", note);
  const std::string file = printable(options.file);
  const auto known = static_cast<std::size_t>(std::ranges::count_if(
      kernels, [&](const Kernel& kernel) { return cells->find(kernel).has_value(); }));
  if (known == 0) {
    throw DataError(
        fmt::format("{}: none of the run's {} kernels was measured", file, kernels.size()),
        {.in = {}, .hint = "the table's column 'kernel' holds the names or labels of the run"});
  }
  if (known < kernels.size()) {
    tell("note: {} of {} kernels are in {}; the others are the built-in model's\n", known,
         kernels.size(), file);
  }
  return cells;
}

void plan_on_table(const SweepOptions& options, std::optional<Trace> trace,
                   ExplorationInput& input) {
  // How far a single measurement is trusted, as in `remeasure`, if no cell was measured twice.
  constexpr RelativeErrors usual{.time = 0.005, .energy = 0.01};
  MeasuredTable table =
      measured_table(load_sweep(options, input.spec), input.spec, trace,
                     options.missing == "model" ? MissingCells::model : MissingCells::leave_out);
  for (const std::string& line : table.notes) tell("note: {}\n", printable(line));
  if (table.noise) {
    input.measured_noise = {table.noise->time, table.noise->energy};
    tell("note: repeated cells differ by {:.2f} % in time and {:.2f} % in energy\n",
         percent * table.noise->time, percent * table.noise->energy);
  } else {
    input.measured_noise = usual;
    tell(
        "note: no cell was measured twice: intervals take errors of {:.1f} % in time and "
        "{:.1f} % in energy, a guess\n",
        percent * usual.time, percent * usual.energy);
  }
  input.trace = std::move(table.trace);
  input.spec = std::move(table.spec);
  input.measured = std::move(table.cells);
  input.measured_clocks = std::move(table.clocks);
}

}  // namespace rubato
