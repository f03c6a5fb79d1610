#include "explorer/transfer.hpp"

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

namespace {

std::optional<double> number_or_nothing(const SqlValue& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

Goal goal_from(const std::string& name, const std::vector<SqlValue>& row) {
  if (name == "edp") return LeastEdp{};
  if (name == "ed2p") return LeastEd2p{};
  if (name == "least_energy") return LeastEnergy{};
  if (name == "least_time") return LeastTime{number_or_nothing(row[5]), number_or_nothing(row[6])};
  return LeastWaste{number_or_nothing(row[3]).value_or(0.0),
                    number_or_nothing(row[4]).value_or(0.0)};
}

SwitchModel switching_from(const std::vector<SqlValue>& row) {
  SwitchModel model{.core = {.stall_s = std::get<double>(row[9]),
                             .energy_j = std::get<double>(row[10]),
                             .lead_s = std::get<double>(row[13])},
                    .mem = {},
                    .dwell_s = std::get<double>(row[14])};
  if (const auto stall_s = number_or_nothing(row[15])) {
    model.mem = {.stall_s = *stall_s,
                 .energy_j = std::get<double>(row[16]),
                 .lead_s = std::get<double>(row[17])};
  }
  return model;
}

Granularity granularity_from(const std::string& name) {
  for (const auto value : {Granularity::iteration, Granularity::pass, Granularity::automatic}) {
    if (name == name_of(value)) return value;
  }
  return Granularity::kernel;
}

}  // namespace

StoredPlan load_plan(const ResultStore& store, std::int64_t plan_id) {
  const QueryResult found = store.query(fmt::format(
      "SELECT p.granularity, p.aggregation, p.goal, p.slack_frac, p.tolerance_frac, "
      "p.max_energy_j, p.max_average_power_w, "
      "r.clock_grid, r.power_limit_w, r.switch_stall_s, r.switch_energy_j, i.text, p.time_s, "
      "r.switch_lead_s, r.switch_dwell_s, r.mem_switch_stall_s, r.mem_switch_energy_j, "
      "r.mem_switch_lead_s "
      "FROM plans p JOIN runs r USING (run_id) JOIN inputs i ON i.input_hash = r.spec_hash WHERE "
      "p.plan_id = {}",
      plan_id));
  if (found.rows.empty()) {
    throw UsageError(fmt::format("there is no plan {}", plan_id),
                     {.in = {}, .hint = "SELECT * FROM v_plans lists the plans"});
  }
  const std::vector<SqlValue>& row = found.rows.front();
  const auto text = [&row](std::size_t i) { return std::get<std::string>(row[i]); };
  if (!number_or_nothing(row[12]))
    throw UsageError(fmt::format("plan {} is infeasible: it has no clocks", plan_id));
  StoredPlan plan{.plan_id = plan_id,
                  .question = {granularity_from(text(0)),
                               text(1) == "local" ? Aggregation::local : Aggregation::global,
                               goal_from(text(2), row)},
                  .clock_of_kernel = {},
                  .spec = parse_gpu_spec(text(11), fmt::format("the spec of plan {}", plan_id)),
                  .grid = text(7),
                  .power_limit_w = std::get<double>(row[8]),
                  .switching = switching_from(row)};
  const QueryResult clocks = store.query(fmt::format(
      "SELECT kernel, clock FROM v_plan_clocks WHERE plan_id = {} ORDER BY site_id", plan_id));
  for (const auto& launch : clocks.rows) {
    plan.clock_of_kernel.emplace(std::get<std::string>(launch[0]),
                                 std::get<std::string>(launch[1]));
  }
  return plan;
}

Transfer transfer(const StoredPlan& plan, const Trace& trace, const RunContext& context) {
  const ExplorationInput input{.trace = trace,
                               .spec = plan.spec,
                               .grid = plan.grid,
                               .power_limit_w = plan.power_limit_w,
                               .switching = plan.switching,
                               .questions = {plan.question}};
  const Exploration own = explore(input, context);
  Transfer result{
      .trace = trace.name, .baseline = own.baseline.total, .transferred = {}, .own = {}};
  if (!own.plans.empty() && !own.plans.front().plan.clock_of_site.empty()) {
    result.own = own.plans.front().sim.total;
    result.own_found = true;
  }
  std::vector<ClockId> clock_of_kernel;
  double known_s = 0.0;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    const auto known = plan.clock_of_kernel.find(trace.kernels[k].name);
    const auto clock =
        known == plan.clock_of_kernel.end() ? std::nullopt : own.grid.find(known->second);
    clock_of_kernel.push_back(clock.value_or(own.grid.default_clock()));
    if (clock) known_s += own.baseline.by_kernel[k].time_s;
  }
  result.known_frac = known_s / own.baseline.total.time_s;
  const GpuModel model(plan.spec, trace, plan.power_limit_w);
  result.transferred =
      simulate(trace, model, own.grid, plan_by_kernel(trace, clock_of_kernel), plan.switching)
          .total;
  return result;
}

}  // namespace rubato
