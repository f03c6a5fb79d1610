#include "sim/pipeline_run.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "sim/jitter.hpp"
#include "traces/graph/ordered_graph.hpp"

namespace rubato {

namespace {

// Ends that are closer than this share of the iteration count as equal when the critical path is
// marked: sums of a thousand terms differ in the last digits.
constexpr double time_tolerance = 1e-9;

void check_plan(const PipelineWork& work, const PipelinePlan& plan) {
  const std::size_t passes = work.schedule.passes.size();
  if (plan.option_of_pass.size() != passes) {
    throw DataError(fmt::format("the plan has {} entries; expected {}, one per pass",
                                plan.option_of_pass.size(), passes));
  }
  for (std::size_t i = 0; i < passes; ++i) {
    const std::size_t options = work.type_of(id_at<PassId>(i)).options.size();
    if (index(plan.option_of_pass[i]) < options) continue;
    throw DataError(fmt::format("the plan asks for option {} of {}; there are {}",
                                index(plan.option_of_pass[i]), describe(work.schedule.passes[i]),
                                options));
  }
}

void check_options(const PipelineWork& work, const PipelineRunOptions& options) {
  const PipelineDisturbance& d = options.disturbance;
  const auto reject = [](const char* what, double value, const char* expected) {
    throw UsageError(fmt::format("{} is {}; expected {}", what, value, expected));
  };
  if (!(d.jitter_frac >= 0.0 && d.jitter_frac <= 1.0)) {
    reject("jitter", d.jitter_frac, "a number from 0 to 1");
  }
  if (!(d.input_delay_s >= 0.0) || !std::isfinite(d.input_delay_s)) {
    reject("input delay", d.input_delay_s, "a number of seconds >= 0");
  }
  if (!d.slowdown_of_stage.empty() && d.slowdown_of_stage.size() != work.schedule.shape.stages) {
    throw UsageError(fmt::format("{} slowdown factors; expected {}, one per stage",
                                 d.slowdown_of_stage.size(), work.schedule.shape.stages));
  }
  for (const double factor : d.slowdown_of_stage) {
    if (!(factor >= 1.0) || !std::isfinite(factor)) reject("slowdown", factor, "a number >= 1");
  }
  validate(options.switching);
}

}  // namespace

// Time and energy of passes at each option. The clocks of the graph are the options of all pass
// types, one type after the other.
class PipelineSimulator::Cells final : public LaunchCells {
 public:
  Cells(const PipelineWork& work, const ExecutionGraph& graph) : work_(work), graph_(graph) {
    for (const PassType& type : work.types) {
      first_.push_back(options_.size());
      for (const ClockOption& option : type.options) options_.push_back(&option);
    }
  }

  void disturb(const PipelineDisturbance& disturbance) { disturbance_ = &disturbance; }
  [[nodiscard]] ClockId clock_of(const PipelinePlan& plan, PassId pass) const {
    return id_at<ClockId>(first_[index(work_.type_of_pass[index(pass)])] +
                          index(plan.option_of_pass[index(pass)]));
  }

  [[nodiscard]] std::size_t clocks() const override { return options_.size(); }
  // Jitter scales time and energy alike. A slowdown scales time only: a throttled GPU takes longer,
  // with about the same energy for the same work.
  [[nodiscard]] OperatingPoint at(std::size_t activity, ClockId clock) const override {
    const std::uint32_t pass = *graph_.activities()[activity].launch;
    const ClockOption& option = *options_[index(clock)];
    const double jitter = jitter_factor(disturbance_->jitter_frac, disturbance_->seed, pass);
    const std::vector<double>& slowdown = disturbance_->slowdown_of_stage;
    const double slower = slowdown.empty() ? 1.0 : slowdown[work_.schedule.passes[pass].stage];
    return {.time_s = option.time_s * (jitter * slower),
            .energy_j = option.energy_j * jitter,
            .core_mhz = option.core_mhz};
  }
  [[nodiscard]] double idle_power_w(ClockId /*clock*/) const override {
    return work_.blocked_power_w;
  }
  [[nodiscard]] std::optional<SwitchCost> change(const SwitchModel& switching, ClockId from,
                                                 ClockId to) const override {
    const ClockOption &a = *options_[index(from)], &b = *options_[index(to)];
    if (same_clock(a, b)) return std::nullopt;
    return change_of_clock(switching, a, b);
  }

 private:
  const PipelineWork& work_;
  const ExecutionGraph& graph_;
  const PipelineDisturbance* disturbance_ = nullptr;
  std::vector<std::size_t> first_;           // position of each type's first option in options_
  std::vector<const ClockOption*> options_;  // of all types
};

PipelineSimulator::PipelineSimulator(const PipelineWork& work, double input_delay_s)
    : work_(work),
      input_delay_s_(input_delay_s),
      graph_(graph_of(work.schedule, input_delay_s)),
      rows_(work.schedule.rows()),
      cells_(std::make_unique<Cells>(work, graph_)),
      simulator_(graph_, *cells_) {}

PipelineSimulator::~PipelineSimulator() = default;

GraphRun PipelineSimulator::replay(const PipelinePlan& plan, const PipelineRunOptions& options,
                                   bool phases) {
  check_plan(work_, plan);
  check_options(work_, options);
  assert(options.disturbance.input_delay_s == input_delay_s_);
  cells_->disturb(options.disturbance);
  GraphPlan of_launches{.clock_of_activity = std::vector<ClockId>(graph_.size()),
                        .asked_ahead = true};
  std::vector<std::uint32_t> activity_of_pass(plan.option_of_pass.size());
  for (std::uint32_t i = 1; i < graph_.size(); ++i) {
    const PassId pass{*graph_.activities()[i].launch};
    of_launches.clock_of_activity[i] = cells_->clock_of(plan, pass);
    activity_of_pass[index(pass)] = i;
  }
  // Steady state: a stage begins with the clock of its last pass, which has held for at least as
  // long as the last passes at that clock take.
  GraphRun before;
  for (const std::vector<PassId>& row : rows_) {
    HeldClock& held = before.left_behind.emplace_back();
    if (row.empty()) continue;
    held.clock = cells_->clock_of(plan, row.back());
    double run_s = 0.0;
    for (std::size_t k = row.size(); k-- > 0;) {
      const ClockId clock = cells_->clock_of(plan, row[k]);
      if (cells_->change({}, clock, held.clock)) break;
      run_s += cells_->at(activity_of_pass[index(row[k])], clock).time_s;
    }
    held.free_s = -run_s + options.switching.dwell_s;
  }
  return simulator_.run(of_launches,
                        {.phases = phases, .switching = options.switching, .after = &before});
}

PipelineRun PipelineSimulator::run(const PipelinePlan& plan, const PipelineRunOptions& options) {
  GraphRun replayed = replay(plan, options);
  PipelineRun found = passes_of(replayed, plan, options.switching);
  simulator_.take_back(std::move(replayed));
  return found;
}

PipelineRun PipelineSimulator::passes_of(const GraphRun& run, const PipelinePlan& plan,
                                         const SwitchModel& switching) const {
  PipelineRun found;
  found.time_s = run.span_s;
  found.passes.resize(plan.option_of_pass.size());
  const std::vector<bool> critical =
      critical_activities(graph_, run.start_s, run.end_s, time_tolerance * run.span_s);
  for (std::size_t i = 1; i < graph_.size(); ++i) {
    found.passes[*graph_.activities()[i].launch] = {.start_s = run.start_s[i],
                                                    .end_s = run.end_s[i],
                                                    .energy_j = run.energy_j[i],
                                                    .core_mhz = run.launches[i].point.core_mhz,
                                                    .critical = critical[i]};
  }
  CompensatedSum pass_energy_j, busy_s, switch_energy_j;
  for (const std::vector<PassId>& row : rows_) {
    for (std::size_t k = 0; k < row.size(); ++k) {
      const PassId before = k > 0 ? row[k - 1] : row.back();
      const auto cost =
          cells_->change(switching, cells_->clock_of(plan, before), cells_->clock_of(plan, row[k]));
      if (!cost) continue;
      found.passes[index(row[k])].switched = true;
      ++found.clock_switches;
      switch_energy_j.add(cost->energy_j);
    }
  }
  for (const TimedPass& pass : found.passes) {
    pass_energy_j.add(pass.energy_j);
    busy_s.add(pass.end_s - pass.start_s);
  }
  found.pass_energy_j = pass_energy_j.value();
  found.blocked_energy_j =
      work_.blocked_power_w * (found.time_s * work_.schedule.shape.stages - busy_s.value());
  found.switch_energy_j = switch_energy_j.value();
  found.energy_j = found.pass_energy_j + found.blocked_energy_j + found.switch_energy_j;
  return found;
}

bool same_clock(const ClockOption& a, const ClockOption& b) {
  return a.core_mhz == b.core_mhz && a.mem_mhz == b.mem_mhz && a.power_limit_w == b.power_limit_w;
}

SwitchCost change_of_clock(const SwitchModel& model, const ClockOption& from,
                           const ClockOption& to) {
  const bool core = from.core_mhz != to.core_mhz || from.power_limit_w != to.power_limit_w;
  return model.change(core, from.mem_mhz != to.mem_mhz);
}

PipelinePlan highest_clocks(const PipelineWork& work) {
  return {std::vector<OptionId>(work.schedule.passes.size(), OptionId{0})};
}

PipelineRun simulate(const PipelineWork& work, const PipelinePlan& plan,
                     const PipelineRunOptions& options) {
  check_options(work, options);
  return PipelineSimulator(work, options.disturbance.input_delay_s).run(plan, options);
}

JitterSummary simulate_jitter(const PipelineWork& work, const PipelinePlan& plan,
                              const PipelineRunOptions& options, std::uint32_t runs) {
  if (runs == 0) throw UsageError("0 runs; expected at least 1");
  check_options(work, options);
  PipelineSimulator simulator(work, options.disturbance.input_delay_s);
  PipelineRunOptions varied = options;
  std::vector<double> times_s;
  CompensatedSum time_s, energy_j;
  for (std::uint32_t r = 0; r < runs; ++r) {
    varied.disturbance.seed = options.disturbance.seed + r;
    const PipelineRun run = simulator.run(plan, varied);
    times_s.push_back(run.time_s);
    time_s.add(run.time_s);
    energy_j.add(run.energy_j);
  }
  std::ranges::sort(times_s);
  const auto rank = static_cast<std::size_t>(std::ceil(0.95 * runs));
  return {.runs = runs,
          .mean_time_s = time_s.value() / runs,
          .max_time_s = times_s.back(),
          .p95_time_s = times_s[std::max<std::size_t>(rank, 1) - 1],
          .mean_energy_j = energy_j.value() / runs};
}

}  // namespace rubato
