#include "tools/options/table.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/calibration/measured_table.hpp"
#include "tools/command_line.hpp"

namespace rubato {

void add_table_options(CommandLine& app, TableOptions& options) {
  app.add_option("--table", options.sweep.file,
                 "Plan on measured cells: CSV with kernel, core_mhz, mem_mhz, time_s, and power_w "
                 "or energy_j; "
                 "without TRACE each kernel runs as often as column count says");
  app.add_option("--missing", options.missing,
                 "--table: clocks at which some kernel was not measured are left out (leave-out), "
                 "or the model, "
                 "fitted to the same kernel, fills the cells (model)")
      ->one_of({"leave-out", "model"})
      ->capture_default_str();
  add_column_options(app, options.sweep);
}

void plan_on_table(const TableOptions& options, std::optional<Trace> trace,
                   ExplorationInput& input) {
  // As `remeasure`: what a single measurement is trusted to, if no cell was measured twice.
  constexpr RelativeErrors usual{.time = 0.005, .energy = 0.01};
  const Sweep sweep = load_sweep(options.sweep, input.spec);
  MeasuredTable table =
      measured_table(sweep, input.spec, trace,
                     options.missing == "model" ? MissingCells::model : MissingCells::leave_out);
  for (const std::string& line : table.notes) fmt::print(stderr, "note: {}\n", printable(line));
  if (table.noise) {
    input.measured_noise = {table.noise->time, table.noise->energy};
    fmt::print(stderr, "note: repeated cells differ by {:.2f} % in time and {:.2f} % in energy\n",
               percent * table.noise->time, percent * table.noise->energy);
  } else {
    input.measured_noise = usual;
    fmt::print(stderr,
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
