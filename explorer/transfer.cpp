#include "explorer/transfer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "explorer/results/plan_choice.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/validation/uncertainty.hpp"

namespace rubato {

namespace {

Goal goal_from(const std::string& name, const std::vector<SqlValue>& row) {
  if (name == "edp") return LeastEdp{};
  if (name == "ed2p") return LeastEd2p{};
  if (name == "least_energy") return LeastEnergy{};
  if (name == "least_time") return LeastTime{real_or_none(row[5]), real_or_none(row[6])};
  return LeastWaste{real_or_none(row[3]).value_or(0.0), real_or_none(row[4]).value_or(0.0)};
}

// Transfers have no prices.
void refuse_prices(std::int64_t plan_id, std::string_view goal) {
  if (goal == "least_cost")
    throw UsageError(fmt::format("plan {} is of least cost, which is not transferred", plan_id),
                     {.in = {}, .hint = "plan on the other GPU with 'rubato explore --goal cost'"});
}

// How many points of the baseline one plan takes more energy than another.
std::optional<double> points_over(const Transfer& t, const std::optional<Cost>& other) {
  if (!other) return std::nullopt;
  return 100.0 * (t.transferred.energy_j - other->energy_j) / t.baseline.energy_j;
}

std::optional<double> saving_of(const Transfer& t, const std::optional<Cost>& plan) {
  if (!plan) return std::nullopt;
  return -change_pct(plan->energy_j, t.baseline.energy_j);
}

}  // namespace

double Transfer::saving_pct() const noexcept { return *saving_of(*this, transferred); }
double Transfer::time_pct() const noexcept {
  return change_pct(transferred.time_s, baseline.time_s);
}
std::optional<double> Transfer::own_saving_pct() const noexcept { return saving_of(*this, own); }
std::optional<double> Transfer::own_time_pct() const noexcept {
  return own ? std::optional(change_pct(own->time_s, baseline.time_s)) : std::nullopt;
}
std::optional<double> Transfer::in_time_saving_pct() const noexcept {
  return saving_of(*this, own_in_time);
}
std::optional<double> Transfer::regret_points() const noexcept { return points_over(*this, own); }
std::optional<double> Transfer::equal_time_regret_points() const noexcept {
  return points_over(*this, own_in_time);
}

StoredPlan load_plan(const ResultStore& store, std::int64_t plan_id) {
  const QueryResult found = store.query(
      "SELECT p.granularity, p.aggregation, p.goal, p.slack_pct / 100, p.tolerance_pct / 100, "
      "p.energy_budget_j, p.power_budget_w, r.clock_grid, r.power_limit_w, r.host_power_w, "
      "p.time_s, r.work, p.run_id FROM plans p JOIN runs r USING (run_id) WHERE p.plan_id = ? AND "
      "r.kind = 'trace'",
      {plan_id});
  if (found.rows.empty()) {
    throw UsageError(fmt::format("there is no plan {} of a trace", plan_id),
                     {.in = {}, .hint = "SELECT * FROM v_plans lists the plans"});
  }
  const std::vector<SqlValue>& row = found.rows.front();
  const auto text = [&row](std::size_t i) { return value_as<std::string>(row[i]); };
  refuse_prices(plan_id, text(2));
  if (!real_or_none(row[10]))
    throw UsageError(fmt::format("plan {} is infeasible: it has no clocks", plan_id));
  const auto run_id = value_as<std::int64_t>(row[12]);
  StoredPlan plan{.plan_id = plan_id,
                  .trace = text(11),
                  .question = {granularity_of("granularity", text(0)),
                               aggregation_of("aggregation", text(1)), goal_from(text(2), row)},
                  .clock_of_kernel = {},
                  .spec = stored_spec(store, run_id).value(),
                  .grid = text(7),
                  .power_limit_w = value_as<double>(row[8]),
                  .switching = stored_switching(store, run_id),
                  .host_power_w = value_as<double>(row[9])};
  const QueryResult clocks = store.query(fmt::format(
      "SELECT name, clock FROM v_kernel_clocks WHERE plan_id = {} ORDER BY launches DESC, clock_id",
      plan_id));
  for (const auto& launch : clocks.rows) {
    plan.clock_of_kernel.emplace(value_as<std::string>(launch[0]),
                                 value_as<std::string>(launch[1]));
  }
  return plan;
}

namespace {

Cost cost_of(const Totals& total) { return {total.time_s, total.energy_j}; }

// Clocks of the plan for the kernels it knows, nothing for the others.
std::vector<std::optional<ClockId>> known_clocks(const StoredPlan& plan, const Trace& trace,
                                                 const ClockGrid& grid) {
  std::vector<std::optional<ClockId>> clocks;
  for (const Kernel& kernel : trace.kernels) {
    const auto known = plan.clock_of_kernel.find(kernel.name);
    clocks.push_back(known == plan.clock_of_kernel.end() ? std::nullopt : grid.find(known->second));
  }
  return clocks;
}

// The same model for a library with better tiles: in the last wave of a matrix product they leave
// no more SMs idle than in that of the measured shape.
GpuModel with_full_waves(const GpuModel& model, const Trace& trace) {
  std::vector<KernelCoefficients> coefficients(model.coefficients().begin(),
                                               model.coefficients().end());
  for (std::size_t k = 0; k < coefficients.size(); ++k) {
    const Kernel& kernel = trace.kernels[k];
    const CalibratedKernel* measured = calibrated_kernel(model.spec(), kernel);
    if (measured == nullptr || !measured->gemm || !kernel.gemm) continue;
    const double sm_count = model.spec().sm_count;
    coefficients[k].core_cycles *= std::min(
        wave_efficiency(*kernel.gemm, sm_count) / wave_efficiency(*measured->gemm, sm_count), 1.0);
  }
  return model.with(std::move(coefficients));
}

void reach_over(Interval& interval, const Interval& other) {
  interval.low_pct = std::min(interval.low_pct, other.low_pct);
  interval.high_pct = std::max(interval.high_pct, other.high_pct);
}

// Totals of the plan, and the interval of its change. Nobody has measured which tiles a library
// picks where the last wave of the usual ones is not full. So the interval reaches over both cases.
void replay_plan(const StoredPlan& plan, const Trace& trace, const ClockGrid& grid,
                 const std::vector<std::optional<ClockId>>& known, Transfer& result) {
  std::vector<ClockId> clocks;
  for (const auto& clock : known) clocks.push_back(clock.value_or(grid.default_clock()));
  const Plan transferred = plan_by_kernel(trace, clocks);
  const GpuModel model(plan.spec, trace, plan.power_limit_w);
  Totals total = simulate(trace, model, grid, transferred, plan.switching).total;
  add_power(total, plan.host_power_w);
  result.transferred = cost_of(total);
  std::vector<GpuModel> draws = draw_models(model, trace, drawn_models);
  const ModelErrors errors = model_errors(plan.spec);
  SavingInterval interval = saving_interval(trace, model, draws, grid, transferred, errors,
                                            plan.switching, plan.host_power_w);
  for (GpuModel& draw : draws) draw = with_full_waves(draw, trace);
  const SavingInterval full =
      saving_interval(trace, with_full_waves(model, trace), draws, grid, transferred, errors,
                      plan.switching, plan.host_power_w);
  reach_over(interval.time, full.time);
  reach_over(interval.energy, full.energy);
  result.interval = interval;
}

// Shares of the default clocks' time.
void add_shares(Transfer& result, const SimResult& baseline,
                const std::vector<std::optional<ClockId>>& known) {
  double known_s = 0.0, limited_s = 0.0;
  for (std::size_t k = 0; k < known.size(); ++k) {
    const Totals& kernel = baseline.by_kernel[k];
    if (known[k]) known_s += kernel.time_s;
    // All launches of a kernel are alike: at default clocks all are limited or none.
    if (kernel.power_limited_launches > 0) limited_s += kernel.time_s;
  }
  result.known_frac = known_s / baseline.total.time_s;
  result.limited_frac = limited_s / baseline.total.time_s;
}

}  // namespace

Transfer transfer(const StoredPlan& plan, const Trace& trace, const RunContext& context) {
  ExplorationInput input{.trace = trace,
                         .spec = plan.spec,
                         .grid = plan.grid,
                         .power_limit_w = plan.power_limit_w,
                         .switching = plan.switching,
                         .questions = {plan.question},
                         .host_power_w = plan.host_power_w};
  const Exploration own = explore(input, context);
  const auto known = known_clocks(plan, trace, own.grid);
  Transfer result;
  result.run = trace.name;
  result.baseline = cost_of(own.baseline.total);
  replay_plan(plan, trace, own.grid, known, result);
  add_shares(result, own.baseline, known);
  const auto first_plan = [](const Exploration& found) -> std::optional<Cost> {
    if (found.plans.empty() || !found.plans.front().found()) return std::nullopt;
    return cost_of(found.plans.front().sim.total);
  };
  result.own = first_plan(own);
  // Without it the last digits of a sum might make the transferred plan itself too slow.
  constexpr double rounding = 1e-9;
  input.questions = {
      {plan.question.granularity, Aggregation::global,
       LeastWaste{result.transferred.time_s / result.baseline.time_s - 1.0, rounding}}};
  result.own_in_time = first_plan(explore(input, context));
  return result;
}

}  // namespace rubato
