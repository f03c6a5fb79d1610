#include "sim/pipeline_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "sim/jitter.hpp"

namespace rubato {

namespace {

// Two ends closer than this share of the iteration count as equal when the
// critical path is marked: sums of a thousand terms differ in the last digits.
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

struct Edge {
  std::uint32_t to = 0;
  double lag_s = 0.0;
};

// Edges out of each pass in one array.
struct Edges {
  std::vector<std::uint32_t> first;  // shape [passes + 1]
  std::vector<Edge> list;
  std::vector<std::uint32_t> waiting_for;
};

Edges edges_of(const PipelineSchedule& schedule) {
  const std::size_t passes = schedule.passes.size();
  Edges edges{std::vector<std::uint32_t>(passes + 1), {}, std::vector<std::uint32_t>(passes)};
  edges.list.resize(schedule.dependencies.size());
  for (const Dependency& d : schedule.dependencies) ++edges.first[index(d.from) + 1];
  for (std::size_t i = 0; i < passes; ++i) edges.first[i + 1] += edges.first[i];
  std::vector<std::uint32_t> next(edges.first.begin(), edges.first.end() - 1);
  for (const Dependency& d : schedule.dependencies) {
    edges.list[next[index(d.from)]++] = {d.to.value, d.lag_s};
    ++edges.waiting_for[index(d.to)];
  }
  return edges;
}

// A pass ends. Of equal times the lower index comes first, so that a run is
// the same everywhere.
struct PassEnd {
  double time_s = 0.0;
  std::uint32_t pass = 0;

  [[nodiscard]] bool operator>(const PassEnd& other) const {
    return time_s != other.time_s ? time_s > other.time_s : pass > other.pass;
  }
};

class Replay {
 public:
  Replay(const PipelineWork& work, const PipelinePlan& plan, const PipelineRunOptions& options)
      : work_(work), plan_(plan), options_(options), edges_(edges_of(work.schedule)) {
    const std::size_t passes = work.schedule.passes.size();
    run_.passes.resize(passes);
    ready_s_.resize(passes);
    before_.resize(passes);
    opens_stage_.resize(passes);
    const auto rows = work.schedule.rows();
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        // Steady state: the clock of the last pass of the iteration before holds.
        before_[index(row[i])] = index(i > 0 ? row[i - 1] : row.back());
        if (i == 0) opens_stage_[index(row[i])] = 1;
      }
      effect_s_.push_back(-last_run_s(row));
    }
  }

  PipelineRun run() {
    std::vector<std::uint32_t> waiting_for = edges_.waiting_for;
    for (std::size_t i = 0; i < waiting_for.size(); ++i) {
      if (waiting_for[i] == 0) start(static_cast<std::uint32_t>(i));
    }
    while (!ends_.empty()) {
      const PassEnd event = ends_.top();
      ends_.pop();
      run_.time_s = std::max(run_.time_s, event.time_s);
      for (std::uint32_t e = edges_.first[event.pass]; e < edges_.first[event.pass + 1]; ++e) {
        const Edge& edge = edges_.list[e];
        ready_s_[edge.to] = std::max(ready_s_[edge.to], event.time_s + edge.lag_s);
        if (--waiting_for[edge.to] == 0) start(edge.to);
      }
    }
    add_up();
    mark_critical();
    return std::move(run_);
  }

 private:
  [[nodiscard]] const ClockOption& option(std::size_t pass) const {
    return work_.type_of(id_at<PassId>(pass)).options[index(plan_.option_of_pass[pass])];
  }

  // Jitter scales time and energy alike.
  [[nodiscard]] double jitter(std::size_t pass) const {
    return jitter_factor(options_.disturbance.jitter_frac, options_.disturbance.seed, pass);
  }

  // Of a pass in this run. A throttled GPU is slower at about the same energy for the same work.
  [[nodiscard]] double time_s(std::size_t pass) const {
    const std::vector<double>& slowdown = options_.disturbance.slowdown_of_stage;
    const double slower = slowdown.empty() ? 1.0 : slowdown[work_.schedule.passes[pass].stage];
    return option(pass).time_s * (jitter(pass) * slower);
  }

  // Least time that the last clock of a stage has been in force when an iteration ends.
  [[nodiscard]] double last_run_s(const std::vector<PassId>& row) const {
    double run_s = 0.0;
    for (std::size_t i = row.size(); i-- > 0;) {
      if (!same_clock(option(index(row[i])), option(index(row.back())))) break;
      run_s += time_s(index(row[i]));
    }
    return run_s;
  }

  // The earliest start, once all predecessors have ended.
  void start(std::uint32_t pass) {
    const PipelinePass& what = work_.schedule.passes[pass];
    double start_s = ready_s_[pass];
    TimedPass& timed = run_.passes[pass];
    const std::size_t before = before_[pass];
    timed.switched = !same_clock(option(before), option(pass));
    if (timed.switched) {
      const SwitchCost cost = change_of_clock(options_.switching, option(before), option(pass));
      double& effect_s = effect_s_[what.stage];
      // The stage is free since the pass before it ended.
      const double free_s = opens_stage_[pass] ? 0.0 : run_.passes[before].end_s;
      effect_s =
          std::max(free_s, effect_s + options_.switching.dwell_s + cost.lead_s) + cost.stall_s;
      start_s = std::max(start_s, effect_s);
      switch_energy_j_.add(cost.energy_j);
    }
    if (what.stage == 0 && what.chunk == 0 && what.kind == PassKind::forward) {
      start_s += options_.disturbance.input_delay_s;
    }
    timed.start_s = start_s;
    timed.end_s = start_s + time_s(pass);
    timed.core_mhz = option(pass).core_mhz;
    timed.energy_j = option(pass).energy_j * jitter(pass);
    ends_.push({timed.end_s, pass});
  }

  void add_up() {
    CompensatedSum pass_energy_j, busy_s;
    for (const TimedPass& pass : run_.passes) {
      pass_energy_j.add(pass.energy_j);
      busy_s.add(pass.end_s - pass.start_s);
      if (pass.switched) ++run_.clock_switches;
    }
    run_.pass_energy_j = pass_energy_j.value();
    run_.blocked_energy_j =
        work_.blocked_power_w * (run_.time_s * work_.schedule.shape.stages - busy_s.value());
    run_.switch_energy_j = switch_energy_j_.value();
    run_.energy_j = run_.pass_energy_j + run_.blocked_energy_j + run_.switch_energy_j;
  }

  // A pass is critical if it ends last, or if a critical pass started the moment
  // it allowed it to.
  void mark_critical() {
    const double tolerance_s = time_tolerance * run_.time_s;
    const std::vector<PassId> order = topological_order(work_.schedule);
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::uint32_t pass = order[i].value;
      TimedPass& timed = run_.passes[pass];
      timed.critical = timed.end_s >= run_.time_s - tolerance_s;
      for (std::uint32_t e = edges_.first[pass]; e < edges_.first[pass + 1]; ++e) {
        const TimedPass& next = run_.passes[edges_.list[e].to];
        const double gap_s = next.start_s - timed.end_s - edges_.list[e].lag_s;
        if (next.critical && gap_s <= tolerance_s) timed.critical = true;
      }
    }
  }

  const PipelineWork& work_;
  const PipelinePlan& plan_;
  const PipelineRunOptions& options_;
  Edges edges_;
  PipelineRun run_;
  std::vector<double> ready_s_;
  std::vector<std::size_t> before_;
  std::vector<char> opens_stage_;
  std::vector<double> effect_s_;  ///< of the last change, shape [stages]
  CompensatedSum switch_energy_j_;
  std::priority_queue<PassEnd, std::vector<PassEnd>, std::greater<>> ends_;
};

}  // namespace

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
  check_plan(work, plan);
  check_options(work, options);
  return Replay(work, plan, options).run();
}

JitterSummary simulate_jitter(const PipelineWork& work, const PipelinePlan& plan,
                              const PipelineRunOptions& options, std::uint32_t runs) {
  if (runs == 0) throw UsageError("0 runs; expected at least 1");
  PipelineRunOptions varied = options;
  std::vector<double> times_s;
  CompensatedSum time_s, energy_j;
  for (std::uint32_t r = 0; r < runs; ++r) {
    varied.disturbance.seed = options.disturbance.seed + r;
    const PipelineRun run = simulate(work, plan, varied);
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
