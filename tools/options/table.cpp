#include "tools/options/table.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/measured/measured_table.hpp"
#include "tools/command_line.hpp"
#include "tools/options/kernel_fits.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

void add_table_option(CommandLine& app, std::string& table) {
  app.add_option(
      "--table FILE", table,
      "Use measured times and energies instead of the model: a CSV, a Kernel Tuner cache, or a "
      "description of a table (TOML; docs/add-a-gpu.md)");
}

namespace {

// What a table knows of a run's kernels, in words.
void tell_known(const std::string& file, std::size_t known, std::size_t kernels,
                std::string_view others) {
  if (known == 0) {
    throw DataError(
        fmt::format("{}: none of the run's {} kernels was measured", printable(file), kernels),
        {.in = {}, .hint = "the table's column 'kernel' holds the names or labels of the run"});
  }
  if (known < kernels)
    tell("note: {} of {} kernels are in {}; {}\n", known, kernels, printable(file), others);
}

}  // namespace

std::shared_ptr<const NamedCells> cells_of_table(const std::string& table, const GpuSpec& spec,
                                                 std::span<const Kernel> kernels) {
  if (table.empty()) return {};
  const SweepOptions options = table_of(table);
  std::vector<std::string> notes;
  auto cells = named_cells(load_sweep(options, spec), spec, notes);
  for (const std::string& note : notes) tell("note: {}\n", note);
  tell_known(options.file,
             static_cast<std::size_t>(std::ranges::count_if(
                 kernels, [&](const Kernel& kernel) { return cells->find(kernel).has_value(); })),
             kernels.size(), "the others are the built-in model's");
  return cells;
}

GpuSpec with_kernels_of_table(GpuSpec spec, const std::string& table,
                              std::span<const Capture> captures, const RunContext& context) {
  if (table.empty()) return spec;
  const SweepOptions options = table_of(table);
  Sweep sweep = load_sweep(options, spec);
  std::set<std::string> names;
  for (const Capture& capture : captures) {
    for (const Kernel& kernel : capture.kernels) names.insert(kernel.name);
  }
  std::erase_if(sweep.kernels,
                [&](const SweepKernel& kernel) { return !names.contains(kernel.name); });
  tell_known(options.file, sweep.kernels.size(), names.size(),
             "what clocks change of the others is modelled");
  return fit_kernels_only(spec, sweep, {}, true, context).spec;
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
    tell("note: repeated points differ by {:.2f} % in time and {:.2f} % in energy\n",
         percent * table.noise->time, percent * table.noise->energy);
  } else {
    input.measured_noise = usual;
    tell(
        "note: no point was measured twice: intervals assume errors of {:.1f} % in time and "
        "{:.1f} % in energy\n",
        percent * usual.time, percent * usual.energy);
  }
  input.trace = std::move(table.trace);
  input.spec = std::move(table.spec);
  input.measured = std::move(table.cells);
  input.measured_clocks = std::move(table.clocks);
}

}  // namespace rubato
