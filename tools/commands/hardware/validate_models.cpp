#include "tools/commands/hardware/validate_models.hpp"

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/regret.hpp"
#include "explorer/results/validation_store.hpp"
#include "tools/drawing/model_comparison_page.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/options/model.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

OutputTable models_table(const ModelComparison& comparison) {
  OutputTable table({{"model"},
                     {"fit_points", "fitted to"},
                     {"own_numbers", "numbers each"},
                     {"shared_numbers", "shared"},
                     {"points", "tested"},
                     {"time_mape_pct", "time %", 2},
                     {"time_p90_pct", "p90", 1},
                     {"power_mape_pct", "power %", 2},
                     {"power_p90_pct", "p90", 1},
                     {"energy_mape_pct", "energy %", 2},
                     {"energy_p90_pct", "p90", 1},
                     {"assumed", {}, 3, true}});
  for (const ComparedModel& model : comparison.models) {
    const ModelFit& fit = model.fit;
    const ErrorSummary errors = summarise("all", model.held_out);
    const std::string points = fit.least_points == fit.most_points
                                   ? std::to_string(fit.most_points)
                                   : fmt::format("{}-{}", fit.least_points, fit.most_points);
    const bool fitted = fit.most_points > 0;
    table.add_row({model.name, fitted ? Cell(points) : Cell(),
                   fitted ? Cell(static_cast<std::int64_t>(fit.own)) : Cell(),
                   fitted ? Cell(static_cast<std::int64_t>(fit.shared)) : Cell(),
                   static_cast<std::int64_t>(errors.time.count), errors.time.mean, errors.time.p90,
                   errors.power.mean, errors.power.p90, errors.energy.mean, errors.energy.p90,
                   fit.assumed});
  }
  return table;
}

OutputTable regrets_table(const ModelComparison& comparison,
                          const std::vector<std::vector<RegretRow>>& regrets) {
  OutputTable table({{"model"},
                     {"plans"},
                     {"slack_pct", "slack %", 1},
                     {"count"},
                     {"late"},
                     {"time_change_pct", "time %", 2},
                     {"late_pct", "late by %", 2},
                     {"worst_late_pct", "worst", 2},
                     {"promised_energy_pct", "promised", 2, true},
                     {"energy_change_pct", "energy %", 2},
                     {"best_energy_pct", "best %", 2},
                     {"regret_pct", "regret", 2},
                     {"worst_regret_pct", "worst", 2}});
  for (std::size_t m = 0; m < regrets.size(); ++m) {
    for (const RegretRow& row : regrets[m]) {
      table.add_row({comparison.models[m].name, std::string(name_of(row.steps)),
                     percent * row.slack_frac, static_cast<std::int64_t>(row.plans),
                     static_cast<std::int64_t>(row.late), row.mean.time_pct, row.mean.late_pct,
                     row.worst_late_pct, row.mean.promised_energy_pct, row.mean.energy_pct,
                     row.mean.best_energy_pct, row.mean.regret_pct, row.worst_regret_pct});
    }
  }
  return table;
}

constexpr const char* legend =
    "time, energy: of the plan as measured, against the default clock. late by: time beyond the "
    "slack. best: of the best plan within the slack. regret: points of energy that the best plan "
    "in the same time saves more. alone: each kernel a step of its own, means; one-clock, "
    "per-kernel: one step of all kernels.\n";

}  // namespace

ExitStatus validate_models(const ValidateModelsOptions& o, const GpuSpec& spec, const Sweep& sweep,
                           const RunContext& context) {
  std::vector<ModelChoice> models;
  for (const std::string& name : o.models) models.push_back(model_choice(name, spec, sweep));
  const ModelComparison comparison = compare_models(spec, sweep, models, o.comparison, context);
  if (context.stop_requested()) return ExitStatus::interrupted;
  for (const std::string& note : comparison.notes) tell("note: {}\n", printable(note));
  std::vector<double> slacks_frac;
  for (const double slack_pct : o.slacks_pct) slacks_frac.push_back(slack_pct / percent);
  std::vector<std::vector<RegretRow>> rows;
  for (const ComparedModel& model : comparison.models)
    rows.push_back(regrets(spec, comparison.sweep, model.cells, slacks_frac));
  const OutputTable errors = models_table(comparison), plans = regrets_table(comparison, rows);
  if (o.format == OutputFormat::table)
    print_notes(answer_text(printable(spec.title), comparison_answer(comparison)));
  print_tables({{"models", &errors}, {"regrets", &plans}}, o.format);
  if (o.format == OutputFormat::table) {
    std::string notes = legend;
    for (const ComparedModel& model : comparison.models) {
      if (!model.fit.assumed.empty())
        notes += fmt::format("{}: {}.\n", model.name, model.fit.assumed);
    }
    print_notes(notes);
  }
  if (!o.page.empty())
    write_output(o.page, model_comparison_page(spec, comparison, o.comparison, rows));
  if (!o.db.empty()) {
    for (std::size_t m = 0; m < rows.size(); ++m) {
      const std::int64_t id =
          store_compared_model(o.db, spec, comparison.sweep, o.comparison, comparison.models[m],
                               rows[m], context.command_line);
      tell("stored {} as validation {} in {}\n", printable(comparison.models[m].name), id, o.db);
    }
  }
  return ExitStatus::done;
}

}  // namespace rubato
