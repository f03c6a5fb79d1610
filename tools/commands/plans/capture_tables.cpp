#include "tools/commands/plans/capture_tables.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "tools/terminal/screen.hpp"

namespace rubato {

// Only launches that take a clock count.
std::string plan_clocks_text(const GraphExploration& found, const GraphPlanResult& result) {
  std::vector<ClockId> clocks;
  for (const PlanClock& row : plan_clocks(*found.model, result)) clocks.push_back(row.clock);
  return clocks_text(found.planner->grid(), clocks);
}

std::optional<Prices> asked_prices(const GraphExploration& found) {
  for (const GraphPlanOutcome& outcome : found.plans) {
    if (const auto prices = outcome.prices()) return prices;
  }
  return std::nullopt;
}

std::string goal_name(const GraphPlanOutcome& outcome) { return name_of(outcome.asked_goal()); }

OutputTable captured_kernels_table(const GraphExploration& found) {
  OutputTable table({{"granularity"},
                     {"aggregation", "", 3, true},
                     {.key = "goal", .for_programs = true},
                     {"slack_pct", "slack %", 1},
                     {"rank"},
                     {"device"},
                     {"pass"},
                     {"kernel"},
                     {"clock"},
                     {"launches"},
                     {.key = "time_s", .for_programs = true},
                     {.key = "time_ms", .title = "time ms", .for_people = true},
                     {"energy_j", "energy J"}});
  const ExecutionGraph& graph = found.run->graph;
  for (const GraphPlanOutcome& outcome : found.plans) {
    if (!outcome.result.found()) continue;
    for (const PlanClock& row : plan_clocks(*found.model, outcome.result)) {
      const GraphGpu& gpu = graph.gpus()[index(row.gpu)];
      table.add_row({std::string(name_of(outcome.result.question.grain)),
                     std::string(name_of(outcome.result.question.aggregation)), goal_name(outcome),
                     percent * outcome.result.question.slack_frac,
                     static_cast<std::int64_t>(gpu.rank), static_cast<std::int64_t>(gpu.device),
                     std::string(name_of(row.pass)), graph.kernels()[index(row.kernel)].name,
                     found.planner->grid().label(row.clock),
                     static_cast<std::int64_t>(row.launches), row.time_s, ms_per_s * row.time_s,
                     row.energy_j});
    }
  }
  return table;
}

namespace {

constexpr double us_per_ns = 1e-3;

}  // namespace

OutputTable collectives_table(const GraphExploration& found) {
  OutputTable table({{"collective"},
                     {"kind"},
                     {"ranks"},
                     {"last_rank", "last rank"},
                     {"start_skew_us", "skew us", 0},
                     {"transfer_us", "transfer us", 0},
                     {"end_spread_us", "ends apart us", 0}});
  std::vector<const JoinedCollective*> rows;
  for (const JoinedCollective& one : found.run->ranks.collectives) rows.push_back(&one);
  std::ranges::stable_sort(rows, std::greater{}, &JoinedCollective::start_skew_ns);
  for (const JoinedCollective* one : rows) {
    table.add_row({one->name, std::string(name_of(one->kind)),
                   static_cast<std::int64_t>(one->members.size()),
                   static_cast<std::int64_t>(last_rank(*found.run, *one)),
                   us_per_ns * static_cast<double>(one->start_skew_ns()),
                   us_per_ns * static_cast<double>(one->transfer_ns()),
                   us_per_ns * static_cast<double>(one->end_spread_ns())});
  }
  return table;
}

namespace {

OutputTable table_of_run() {
  return OutputTable({{"program_version"},
                      {"trace"},
                      {"gpu"},
                      {"captured_clock"},
                      {"captured_clock_source"},
                      {"power_limit_w"},
                      {"host_power_w"},
                      {"price_per_kwh"},
                      {"price_per_gpu_hour"},
                      {"pue"},
                      {"ranks"},
                      {"gpus"},
                      {"activities"},
                      {"arcs_read"},
                      {"arcs_inferred"},
                      {"captured_s"},
                      {"reproduced_s"},
                      {"default_s"},
                      {"default_j"},
                      {"measured_pct"},
                      {"anchored_pct"},
                      {"guessed_split_pct"},
                      {"fixed_pct"}});
}

}  // namespace

OutputTable captured_run_table(const GraphRequest& request, const GraphExploration& found) {
  OutputTable table = table_of_run();
  const std::optional<Prices> prices = asked_prices(found);
  const auto price = [&](double Prices::*value) {
    return prices ? Cell((*prices).*value) : Cell();
  };
  const ExecutionGraph& graph = found.run->graph;
  const ArcCounts arcs = graph.count_arcs();
  std::int64_t read = 0, inferred = 0;
  for (std::size_t kind = 0; kind < arc_kinds; ++kind) {
    read += static_cast<std::int64_t>(arcs.read[kind]);
    inferred += static_cast<std::int64_t>(arcs.inferred[kind]);
  }
  const GraphCoverage& c = found.coverage;
  const double total_s = std::max(c.total_s(), 1e-12);
  const GraphRun& baseline = found.planner->baseline();
  table.add_row({std::string(program_version()),
                 request.files.front(),
                 found.model->spec().name,
                 request.captured_clock,
                 std::string(name_of(request.clock_source)),
                 found.model->power_limit_w(),
                 found.model->host_power_w(),
                 price(&Prices::per_kwh),
                 price(&Prices::per_gpu_hour),
                 price(&Prices::pue),
                 static_cast<std::int64_t>(found.run->rank_of_capture.size()),
                 static_cast<std::int64_t>(graph.gpus().size()),
                 static_cast<std::int64_t>(graph.size()),
                 read,
                 inferred,
                 found.captured_span_s,
                 found.reproduced_span_s,
                 baseline.span_s,
                 baseline.total_energy_j,
                 percent * c.measured_s / total_s,
                 percent * c.anchored_s / total_s,
                 percent * c.guessed_split_s / total_s,
                 percent * c.fixed_s / total_s});
  return table;
}

OutputTable comm_sms_table(const GraphExploration& found) {
  OutputTable table({{"comm_sms", "comm SMs", 0},
                     {"default_time_change_pct", "time %", 2},
                     {"default_energy_change_pct", "energy %", 2},
                     {"plans"}});
  if (found.comm_sms.empty()) return table;
  const GraphRun& baseline = found.planner->baseline();
  const auto add = [&](const std::optional<double>& comm_sms, const GraphPlanner& planner) {
    const auto chosen = std::ranges::count_if(found.plans, [&](const GraphPlanOutcome& outcome) {
      return outcome.result.found() && outcome.comm_sms == comm_sms;
    });
    const ClockId clock = planner.grid().default_clock();
    const auto defaults = std::ranges::find(planner.uniform(), clock, &UniformRun::clock);
    table.add_row({comm_sms ? Cell(*comm_sms) : Cell(),
                   change_pct(defaults->span_s, baseline.span_s),
                   change_pct(defaults->energy_j, baseline.total_energy_j),
                   static_cast<std::int64_t>(chosen)});
  };
  add(std::nullopt, *found.planner);
  for (const CommSmsChoice& choice : found.comm_sms) add(choice.comm_sms, *choice.planner);
  return table;
}

}  // namespace rubato
