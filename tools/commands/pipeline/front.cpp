// rubato pipeline front: the whole frontier of time and energy.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"
#include "tools/options/prices.hpp"

namespace rubato {

namespace {

struct FrontOptions {
  PipelineInput input;
  std::string prices;
  bool exact = false;
  OutputFormat format = OutputFormat::table;
};

// What the least time and the least energy are, and what some more time is worth.
std::string front_answer(const PipelinePlanner& planner) {
  const PipelineRun& base = planner.baseline();
  const double waiting_w = planner.waiting_power_w();
  const std::vector<FrontierVertex>& slowest_first = planner.frontier().vertices;
  const auto energy_j = [&](const FrontierVertex& v) { return v.cost_j + waiting_w * v.time_s; };
  const FrontierVertex& fastest = slowest_first.back();
  const FrontierVertex& cheapest = *std::ranges::min_element(slowest_first, {}, energy_j);
  const auto energy = [&](const FrontierVertex& v) {
    return change_words(change_pct(energy_j(v), base.energy_j));
  };
  const auto time = [&](const FrontierVertex& v) {
    return fmt::format("{:.5g} s ({} %)", v.time_s,
                       format_signed(change_pct(v.time_s, base.time_s), 2));
  };
  return fmt::format("In the least time, {}: energy {} at most. Least energy: {}, in {}.",
                     time(fastest), energy(fastest), energy(cheapest), time(cheapest));
}

ExitStatus run_front(const FrontOptions& o, const RunContext& context) {
  const std::optional<Prices> prices =
      o.prices.empty() ? std::nullopt : std::optional(prices_of(o.prices));
  const LoadedPipeline loaded = load_pipeline(o.input);
  const PipelineWork& work = loaded.work;
  PlannerOptions options = planner_options(o.input);
  options.exact_sweep = o.exact;
  const PipelinePlanner planner(work, options, context);
  std::vector<Column> columns{{"time_s", "time s", 4},         {"time_change_pct", "time %", 2},
                              {"energy_j", "energy J", 1},     {"energy_change_pct", "energy %", 2},
                              {"lower_bound_j", "bound J", 1}, {"price_w", "price W", 1}};
  if (prices) columns.push_back({.key = "cost", .decimals = 6});
  OutputTable table(columns);
  const PipelineRun& base = planner.baseline();
  const std::vector<FrontierVertex>& slowest_first = planner.frontier().vertices;
  for (auto vertex = slowest_first.rbegin(); vertex != slowest_first.rend(); ++vertex) {
    const FrontierVertex& v = *vertex;
    const double waiting_j = planner.waiting_power_w() * v.time_s;
    std::vector<Cell> row{v.time_s,
                          change_pct(v.time_s, base.time_s),
                          v.cost_j + waiting_j,
                          change_pct(v.cost_j + waiting_j, base.energy_j),
                          v.lower_bound_j + waiting_j,
                          v.price_w};
    if (prices)
      row.emplace_back(prices->of(v.time_s, v.cost_j + waiting_j, work.schedule.shape.stages));
    table.add_row(std::move(row));
  }
  print_answered(describe(o.input, work), front_answer(planner), table,
                 fmt::format("\nChange is against the {}. Durations are free between the measured "
                             "options, so these are bounds: no clocks and no interval. `pipeline "
                             "plan` gives clocks, and an interval where stages are modelled.\n",
                             baseline_name(o.input)) +
                     marks_note(loaded) + multiply_note(o.input, work),
                 o.format);
  return ExitStatus::done;
}

}  // namespace

Action setup_pipeline_front(CommandLine& app) {
  auto o = std::make_shared<FrontOptions>();
  add_pipeline_options(app, o->input);
  add_prices_option(app, o->prices);
  app.add_flag("--exact", o->exact,
               "All vertices of pipelines with more than 4096 passes too, which takes seconds");
  add_format_options(app, o->format);
  return [o](const RunContext& context) { return run_front(*o, context); };
}

}  // namespace rubato
