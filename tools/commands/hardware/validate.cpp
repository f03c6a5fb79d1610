// rubato validate: how far a model is from measurements it has not seen.

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "explorer/confidence/campaigns.hpp"
#include "explorer/coverage.hpp"
#include "explorer/results/measurements.hpp"
#include "models/validation/errors.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/drawing/page.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/sweep.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

// Mean and worst errors over all points; nothing without points.
std::string validation_answer(const GpuSpec& spec, std::span<const ValidatedPoint> points) {
  const std::vector<ErrorSummary> groups = summaries(spec, points);
  const ErrorSummary& all = groups.front();
  std::string answer;
  for (const auto& [what, errors] : {std::pair{"time", all.time}, std::pair{"power", all.power},
                                     std::pair{"energy", all.energy}}) {
    if (errors.count == 0) continue;
    answer += fmt::format("{}{} {:.2f} % (worst {:.1f} %)",
                          answer.empty() ? "Mean absolute error: " : ", ", what, errors.mean,
                          errors.worst);
  }
  return answer.empty() ? answer : answer + '.';
}

OutputTable summary_table(const std::vector<ErrorSummary>& summaries) {
  OutputTable table({{.key = "group", .whole = true},
                     {"points"},
                     {"time_mape_pct", "time %", 2},
                     {"time_p50_pct", "p50", 2},
                     {"time_p90_pct", "p90", 2},
                     {"time_worst_pct", "worst", 1},
                     {"time_inside_pct", "in 90 % (*)", 0},
                     {"power_mape_pct", "power %", 2},
                     {"power_p50_pct", "p50", 2},
                     {"power_p90_pct", "p90", 2},
                     {"power_worst_pct", "worst", 1},
                     {"energy_mape_pct", "energy %", 2},
                     {"energy_p50_pct", "p50", 2},
                     {"energy_p90_pct", "p90", 2},
                     {"energy_worst_pct", "worst", 1},
                     {"energy_inside_pct", "in 90 % (*)", 0}});
  const auto share = [](const ErrorQuantiles& q) {
    return q.inside_pct ? Cell(*q.inside_pct) : Cell();
  };
  for (const ErrorSummary& s : summaries) {
    std::vector<Cell> row{s.group,
                          static_cast<std::int64_t>(std::max(s.time.count, s.power.count))};
    for (const ErrorQuantiles* q : {&s.time, &s.power, &s.energy}) {
      for (const double value : {q->mean, q->p50, q->p90, q->worst})
        row.push_back(q->count > 0 ? Cell(value) : Cell());
      if (q != &s.power) row.push_back(share(*q));
    }
    table.add_row(std::move(row));
  }
  return table;
}

// Every point with the 90 % intervals of its time and energy.
OutputTable points_table(const GpuSpec& spec, const std::vector<ValidatedPoint>& points) {
  OutputTable table({{.key = "kernel", .whole = true},
                     {"mem"},
                     {"core_mhz", "core MHz", 1},
                     {"power_cap_w", "cap W", 1},
                     {"time_s", "time s", 6},
                     {"predicted_time_s", "predicted", 6},
                     {"time_low_s", "low", 6},
                     {"time_high_s", "high", 6},
                     {"energy_j", "energy J", 4},
                     {"predicted_energy_j", "predicted", 4},
                     {"energy_low_j", "low", 4},
                     {"energy_high_j", "high", 4}});
  const auto or_none = [](const std::optional<double>& value) {
    return value ? Cell(*value) : Cell();
  };
  const auto add_ends = [](const std::optional<IntervalEnds>& ends, std::vector<Cell>& row) {
    row.push_back(ends ? Cell(ends->low) : Cell());
    row.push_back(ends ? Cell(ends->high) : Cell());
  };
  for (const ValidatedPoint& p : points) {
    std::vector<Cell> row{p.kernel, spec.mem_states[index(p.measured.clock.mem)].name,
                          or_none(p.measured.clock.core_mhz), or_none(p.measured.power_cap_w),
                          or_none(p.measured.time_s)};
    row.emplace_back(p.predicted.time_s);
    add_ends(p.time_90_s, row);
    row.push_back(or_none(p.measured_j()));
    row.emplace_back(p.predicted.energy_j);
    add_ends(p.energy_90_j, row);
    table.add_row(std::move(row));
  }
  return table;
}

std::string points_name(std::size_t points) {
  if (points == captured_only) return "captured time";
  return points == 0 ? "4 of 5" : std::to_string(points);
}

// How often intervals hold (their coverage), by measurement campaigns simulated on the sweep.
OutputTable coverage_table(const std::vector<CoverageRow>& rows) {
  OutputTable table({{"points", "points per kernel"},
                     {"predicted"},
                     {"count"},
                     {"time_inside_pct", "time inside %", 1},
                     {"time_width_pct", "width", 1},
                     {"energy_inside_pct", "energy inside %", 1},
                     {"energy_width_pct", "width", 1},
                     {"energy_bias_pct", "energy bias %", 2},
                     {"time_chance_low_pct", "time by chance", 0},
                     {"time_chance_high_pct", "to", 0},
                     {"energy_chance_low_pct", "energy by chance", 0},
                     {"energy_chance_high_pct", "to", 0}});
  const auto add_chance = [](const ShareRange& range, std::vector<Cell>& cells) {
    cells.emplace_back(100.0 * range.low);
    cells.emplace_back(100.0 * range.high);
  };
  for (const CoverageRow& row : rows) {
    for (const auto& [name, of] : {std::pair{"cells", &row.cells},
                                   {"plans", &row.plans},
                                   {"captured plans", &row.captured},
                                   {"captured twice", &row.captured_twice}}) {
      const bool of_captures = of == &row.captured || of == &row.captured_twice;
      if (row.points == captured_only ? !of_captures : of == &row.captured_twice) continue;
      std::vector<Cell> cells{
          points_name(row.points), std::string(name),  static_cast<std::int64_t>(of->count),
          100.0 * of->time,        of->time_width_pct, 100.0 * of->energy,
          of->energy_width_pct,    of->energy_bias_pct};
      if (of == &row.plans) {
        add_chance(of->time_by_chance, cells);
        add_chance(of->energy_by_chance, cells);
      } else {
        cells.resize(cells.size() + 4);
      }
      table.add_row(std::move(cells));
    }
  }
  return table;
}

struct ValidateOptions {
  SweepOptions sweep;
  std::string gpu, db, page;
  std::size_t folds = 5, points = 5;
  bool known = false, k_fold = false, leave_clocks_out = false, leave_kernels_out = false,
       power_caps = false, intervals = false, each_point = false;
  FitOptions fit;
  OutputFormat format = OutputFormat::table;
};

Holdout holdout_of(const ValidateOptions& o) {
  if (o.known) return Holdout::known;
  if (o.k_fold) return Holdout::folds;
  if (o.leave_clocks_out) return Holdout::clocks;
  if (o.leave_kernels_out) return Holdout::kernels;
  return o.power_caps ? Holdout::power_caps : Holdout::few_points;
}

// --known tests only kernels that the spec has: says which others the sweep has.
void tell_unknown(const GpuSpec& spec, const Sweep& sweep) {
  std::vector<std::string> unknown;
  for (const SweepKernel& kernel : sweep.kernels) {
    if (std::ranges::find(spec.kernels, kernel.name, &CalibratedKernel::name) == spec.kernels.end())
      unknown.push_back(kernel.name);
  }
  if (unknown.empty()) return;
  constexpr std::size_t most = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(most, unknown.size()); ++i)
    names += fmt::format("{}'{}'", i > 0 ? ", " : "", printable(unknown[i]));
  tell("note: {} of {} kernels are not in {} and were left out: {}{}\n", unknown.size(),
       sweep.kernels.size(), spec.name, names, unknown.size() > most ? ", ..." : "");
}

std::string page_of(const GpuSpec& spec, const Sweep& sweep, const ValidationOptions& options,
                    const std::vector<ValidatedPoint>& points) {
  const std::vector<ErrorSummary> groups = summaries(spec, points);
  const OutputTable errors = summary_table(groups), each = points_table(spec, points);
  const ErrorSummary& all = groups.front();
  std::string held;
  if (all.time.inside_pct && all.energy.inside_pct) {
    held =
        fmt::format("; 90 % intervals hold {:.0f} % of their times and {:.0f} % of their energies",
                    *all.time.inside_pct, *all.energy.inside_pct);
  }
  return drawn_page(
      {"How right the model is on held-out points", spec.title, validation_answer(spec, points),
       fmt::format("{} points of {} that the fit had not seen; held out: {}{}", points.size(),
                   sweep.file, name_of(options.holdout), held)},
      std::array{
          PagePart{.name = "points",
                   .title = "Predicted over measured",
                   .text = "The band is 5 %; bars are 90 % intervals.",
                   .table = &each,
                   .charts = R"([{"title": "Time", "pairs": [["time_s", "predicted_time_s", "time",
                     "time_low_s", "time_high_s"]], "log": "xy", "diagonal": true, "band": 5},
                     {"title": "Energy", "pairs": [["energy_j", "predicted_energy_j", "energy",
                     "energy_low_j", "energy_high_j"]], "log": "xy", "diagonal": true, "band": 5},
                     {"title": "Error of time over the clock", "x": "core_mhz", "ratio":
                     ["predicted_time_s", "time_s"], "band": 5}, {"title":
                     "Error of energy over the clock", "x": "core_mhz", "ratio":
                     ["predicted_energy_j", "energy_j"], "band": 5}])"},
          PagePart{.name = "errors", .title = "Absolute errors", .table = &errors}});
}

ExitStatus report(const ValidateOptions& o, const GpuSpec& spec, const Sweep& sweep,
                  const ValidationOptions& options, const std::vector<ValidatedPoint>& points,
                  const RunContext& context) {
  if (o.format == OutputFormat::table) {
    print_notes(answer_text(fmt::format("{}, {} points; held out: {}", printable(spec.title),
                                        points.size(), name_of(options.holdout)),
                            validation_answer(spec, points)));
  }
  print(o.each_point ? points_table(spec, points) : summary_table(summaries(spec, points)),
        o.format);
  if (!o.page.empty()) write_output(o.page, page_of(spec, sweep, options, points));
  if (!o.db.empty()) {
    const std::int64_t id =
        store_validation(o.db, spec, sweep, options, points, context.command_line);
    tell("stored as validation {} in {}\n", id, o.db);
  }
  return ExitStatus::done;
}

ExitStatus run(const ValidateOptions& o, const RunContext& context) {
  const GpuSpec spec = load_gpu_for_sweep(o.gpu, o.sweep);
  const Sweep sweep = load_sweep(o.sweep, spec);
  if (o.each_point && o.intervals) throw UsageError("--each-point does nothing with --intervals");
  if (o.intervals) {
    if (!o.db.empty() || !o.page.empty())
      throw UsageError("--intervals prints a table; it does nothing for --db and --page");
    const std::vector<CoverageRow> rows =
        measure_coverage(spec, sweep, {.fit = fit_options(o.fit)}, context);
    if (context.stop_requested()) return ExitStatus::interrupted;
    print(coverage_table(rows), o.format);
    return ExitStatus::done;
  }
  const ValidationOptions options{.holdout = holdout_of(o),
                                  .points = o.points,
                                  .folds = o.folds,
                                  .fit = fit_options(o.fit),
                                  .draws = true};
  if (o.known) tell_unknown(spec, sweep);
  std::vector<ValidatedPoint> points = validate(spec, sweep, options, context);
  if (context.stop_requested()) return ExitStatus::interrupted;
  add_intervals(spec, options, points);
  return report(o, spec, sweep, options, points, context);
}

}  // namespace

Action setup_validate(CommandLine& app) {
  auto o = std::make_shared<ValidateOptions>();
  add_sweep_options(app, o->sweep)->required();
  app.add_option("--gpu", o->gpu,
                 "Spec: a shipped name or a file [the one of the GPU that the sweep names, else "
                 "rtx-3080-ti]");
  app.add_option("--points", o->points, "Measured points a kernel is fitted to")
      ->capture_default_str();
  app.add_option("--folds", o->folds, "Folds, ranges of clocks, or groups of kernels")
      ->capture_default_str()
      ->in_range(2, 1000);
  auto* known =
      app.add_flag("--known", o->known, "Kernels by name from the spec; nothing is fitted");
  auto* k_fold =
      app.add_flag("--k-fold", o->k_fold, "Fit everything anew without each fold of the points")
          ->excludes(known);
  auto* clocks = app.add_flag("--leave-clocks-out", o->leave_clocks_out,
                              "Fit everything anew without each of --folds ranges of core clocks")
                     ->excludes(known)
                     ->excludes(k_fold);
  auto* leave = app.add_flag("--leave-kernels-out", o->leave_kernels_out,
                             "Fit the GPU anew without each group of kernels, those from --points")
                    ->excludes(known)
                    ->excludes(k_fold)
                    ->excludes(clocks);
  app.add_flag("--power-caps", o->power_caps,
               "Fit anew under the largest power_cap_w, test the others")
      ->excludes(known)
      ->excludes(k_fold)
      ->excludes(clocks)
      ->excludes(leave);
  app.add_flag("--intervals", o->intervals,
               "Play campaigns of captured times alone, of 1, 3, 5 and four fifths of the "
               "points, and "
               "count how often 90 % intervals of points and of plans hold what was measured")
      ->excludes(known)
      ->excludes(k_fold)
      ->excludes(clocks)
      ->excludes(leave);
  add_fit_options(app, o->fit);
  app.add_flag("--each-point", o->each_point,
               "Print every point with its 90 % intervals, not the errors of groups");
  app.add_option("--db", o->db, "Store every point in this SQLite database");
  app.add_option("--page", o->page, "Write an HTML page with the pictures")
      ->ends_in({".html", ".htm"});
  add_format_options(app, o->format);
  app.group("What is left out", {"--known", "--k-fold", "--leave-clocks-out", "--leave-kernels-out",
                                 "--power-caps", "--intervals"});
  app.footer(
      "Without a flag, each kernel is fitted to --points of its measurements and tested on the "
      "rest; the GPU's parameters are the spec's. Errors are absolute, in percent; 'in 90 %' is "
      "the share of points that the 90 % intervals of their predictions hold; (*) how wide these "
      "are may have been learned from this very sweep, as for shipped specs, without a flag and "
      "with --known; else the other kernels' errors say it, and --intervals plays whole "
      "campaigns.");
  return [o](const RunContext& context) { return run(*o, context); };
}

}  // namespace rubato
