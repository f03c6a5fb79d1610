#include "tools/options/table.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/alternatives/modelled_table.hpp"
#include "tools/command_line.hpp"
#include "tools/options/model.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

void plan_on_cells(MeasuredTable table, ExplorationInput& input) {
  input.trace = std::move(table.trace);
  input.spec = std::move(table.spec);
  input.measured = std::move(table.cells);
  input.measured_clocks = std::move(table.clocks);
}

// Plans on a model fitted to the table's cells. Intervals are as wide as the errors that the fit
// leaves, and at least as wide as `least`.
void plan_on_model(const CellModelKind& kind, const Sweep& sweep, MeasuredTable table,
                   const RelativeErrors& least, ExplorationInput& input) {
  const ModelledTable modelled = modelled_table(kind, table, sweep);
  const ModelFit& fit = modelled.fit;
  for (const std::string& line : table.notes) tell("note: {}\n", printable(line));
  tell(
      "note: cells are what model '{}' says, {} numbers per kernel{} fitted to {} points of "
      "each; {}\n",
      kind.name, fit.own, fit.shared > 0 ? fmt::format(" and {} for all", fit.shared) : "",
      fit.least_points == fit.most_points
          ? fmt::format("{}", fit.most_points)
          : fmt::format("{} to {}", fit.least_points, fit.most_points),
      fit.assumed);
  tell(
      "note: it misses those points by {:.2f} % in time and {:.2f} % in energy, which "
      "intervals take as errors, {:.1f} and {:.1f} % at least\n",
      percent * modelled.missed_time, percent * modelled.missed_energy, percent * least.time,
      percent * least.energy);
  input.measured_noise = {.time = std::max(least.time, modelled.missed_time),
                          .energy = std::max(least.energy, modelled.missed_energy)};
  table.cells = modelled.cells;
  plan_on_cells(std::move(table), input);
}

}  // namespace

void add_table_options(CommandLine& app, TableOptions& options) {
  app.add_option(
      "--table", options.sweep.file,
      "Measured cells instead of a model: CSV with kernel, core_mhz, mem_mhz, time_s, and "
      "power_w or energy_j, or a cache of Kernel Tuner; planned without TRACE each kernel "
      "runs as often as column count says");
  app.add_option("--model", options.model,
                 "Who says what a kernel takes at a clock: builtin [without --table], measured "
                 "[with it]; with --table also a model fitted to its cells (" +
                     model_names() + "); or a table that another program wrote");
  add_column_options(app, options.sweep);
}

void add_missing_option(CommandLine& app, TableOptions& options) {
  app.add_option("--missing", options.missing,
                 "--table: clocks at which some kernel was not measured are left out (leave-out), "
                 "or the model, "
                 "fitted to the same kernel, fills the cells (model)")
      ->one_of({"leave-out", "model"})
      ->capture_default_str();
}

TableOptions settled(TableOptions options) {
  const std::string& model = options.model;
  if (model.empty()) return options;
  const bool named = model == measured_model || cell_model_kind(model) != nullptr;
  if (options.given()) {
    if (!named && std::filesystem::exists(model))
      throw UsageError("--model with a file is a table itself; give it or --table");
    if (!named) throw unknown_model(model);
    return options;
  }
  if (model == cell_model_kinds().front().name) {
    options.model.clear();
    return options;
  }
  if (named) {
    throw UsageError(fmt::format("--model {} needs measurements of the kernels", model),
                     {.in = {},
                      .hint = "give them with --table; only the built-in model has those that "
                              "are in the GPU's spec"});
  }
  if (!std::filesystem::exists(model)) throw unknown_model(model);
  options.sweep.file = std::exchange(options.model, {});
  return options;
}

std::shared_ptr<const NamedCells> cells_of_table(const TableOptions& options, const GpuSpec& spec,
                                                 std::span<const Kernel> kernels) {
  if (!options.given()) return {};
  std::vector<std::string> notes;
  auto cells =
      named_cells(load_sweep(options.sweep, spec), spec, cell_model_kind(options.model), notes);
  for (const std::string& note : notes) tell("note: {}\n", note);
  const std::string file = printable(options.sweep.file);
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

void plan_on_table(const TableOptions& options, std::optional<Trace> trace,
                   ExplorationInput& input) {
  // How far a single measurement is trusted, as in `remeasure`, if no cell was measured twice.
  constexpr RelativeErrors usual{.time = 0.005, .energy = 0.01};
  const Sweep sweep = load_sweep(options.sweep, input.spec);
  MeasuredTable table =
      measured_table(sweep, input.spec, trace,
                     options.missing == "model" ? MissingCells::model : MissingCells::leave_out);
  if (!options.model.empty() && options.model != measured_model)
    return plan_on_model(*cell_model_kind(options.model), sweep, std::move(table), usual, input);
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
  plan_on_cells(std::move(table), input);
}

}  // namespace rubato
