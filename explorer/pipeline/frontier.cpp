#include "explorer/pipeline/frontier.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "explorer/pipeline/critical_flow.hpp"

namespace rubato {

namespace {

// What one unit of the integer problem is.
struct Units {
  double time_s = 1.0;
  double price_w = 1.0;

  [[nodiscard]] std::int64_t steps(double seconds) const { return std::llround(seconds / time_s); }
};

// Bits that a number may have so that sums along paths and cuts fit: these have at most one term
// per activity and arc.
int spare_bits(const CrashProblem& problem) {
  const std::size_t terms = problem.curve_of_activity.size() + problem.dependencies.size() + 2;
  return 60 - static_cast<int>(std::bit_width(terms));
}

Units choose_units(const CrashProblem& problem, const FrontierOptions& options) {
  double longest_s = 0.0, steepest_w = 0.0;
  for (const CostCurve& curve : problem.curves) {
    longest_s = std::max(longest_s, curve.back().time_s);
    for (std::size_t k = 1; k < curve.size(); ++k) {
      steepest_w = std::max(steepest_w, (curve[k - 1].cost_j - curve[k].cost_j) /
                                            (curve[k].time_s - curve[k - 1].time_s));
    }
  }
  for (const Dependency& d : problem.dependencies) longest_s = std::max(longest_s, d.lag_s);
  const int time_bits = std::min(40, spare_bits(problem));
  const int price_bits = std::min(options.slope_bits, spare_bits(problem));
  return {
      std::ldexp(longest_s, -time_bits),
      steepest_w > 0.0 ? std::max(std::ldexp(steepest_w, -price_bits), options.least_step_w) : 1.0};
}

// Scales a curve to integers. Vertices whose scaled slopes coincide merge, a slope of 0 ends the
// curve.
IntegerCurve integer_curve(const CostCurve& curve, const Units& units) {
  IntegerCurve scaled{{units.steps(curve.front().time_s)}, {flow_without_limit}};
  for (std::size_t k = 1; k < curve.size(); ++k) {
    const double slope_w =
        (curve[k - 1].cost_j - curve[k].cost_j) / (curve[k].time_s - curve[k - 1].time_s);
    const std::int64_t saving = std::llround(slope_w / units.price_w);
    const std::int64_t time = units.steps(curve[k].time_s);
    if (saving <= 0) break;
    if (time <= scaled.time.back()) continue;  // far shorter than the longest activity
    if (saving >= scaled.saving.back()) {
      scaled.time.back() = time;
    } else {
      scaled.time.push_back(time);
      scaled.saving.push_back(saving);
    }
  }
  scaled.saving.push_back(0);
  return scaled;
}

// Least of cost + price x time over a curve, by bisection: savings fall along it.
double least_total(const CostCurve& curve, double price_w) {
  std::size_t low = 0, high = curve.size() - 1;
  while (low < high) {
    const std::size_t k = (low + high) / 2;
    const double saved_j = curve[k].cost_j - curve[k + 1].cost_j;
    if (saved_j > price_w * (curve[k + 1].time_s - curve[k].time_s)) {
      low = k + 1;
    } else {
      high = k;
    }
  }
  return curve[low].cost_j + price_w * curve[low].time_s;
}

// Cost and bound of a sweep: two sums over activities, kept up to date activity by activity.
class Account {
 public:
  Account(const CrashProblem& problem, const Units& units, const CriticalFlow& flow)
      : problem_(problem), units_(units), flow_(flow) {
    for (std::uint32_t a = 0; a < problem.curve_of_activity.size(); ++a) {
      duration_.push_back(flow.duration(a));
      cost_.push_back(cost_at(curve(a), duration_s(a)));
      dual_.push_back(least_total(curve(a), 0.0));
      cost_sum_.add(cost_.back());
      dual_sum_.add(dual_.back());
    }
  }

  [[nodiscard]] double duration_s(std::uint32_t a) const {
    return static_cast<double>(flow_.duration(a)) * units_.time_s;
  }

  // Most activities that move do so as a whole and last as long as before.
  void update_costs(const std::vector<std::uint32_t>& moved) {
    for (const std::uint32_t a : moved) {
      if (a >= cost_.size() || duration_[a] == flow_.duration(a)) continue;
      duration_[a] = flow_.duration(a);
      replace(cost_[a], cost_at(curve(a), duration_s(a)), cost_sum_);
    }
  }
  void update_bounds(const std::vector<std::uint32_t>& changed) {
    for (const std::uint32_t a : changed) {
      if (a >= dual_.size()) continue;
      replace(dual_[a], least_total(curve(a), flow_w(a)), dual_sum_);
    }
  }

  [[nodiscard]] double cost_j() const { return cost_sum_.value(); }

  // Lagrangian bound at a horizon: sum of least totals and lags minus price x horizon.
  [[nodiscard]] double bound_j(double horizon_s) const {
    return dual_sum_.value() + lag_cost_j() - price_w() * horizon_s;
  }
  [[nodiscard]] double lag_cost_j() const {
    return flow_.lag_value() * units_.time_s * units_.price_w;
  }
  [[nodiscard]] double flow_w(std::uint32_t a) const {
    return static_cast<double>(flow_.flow(a)) * units_.price_w;
  }
  [[nodiscard]] double price_w() const {
    return static_cast<double>(flow_.price()) * units_.price_w;
  }
  [[nodiscard]] double horizon_s() const {
    return static_cast<double>(flow_.horizon()) * units_.time_s;
  }

 private:
  [[nodiscard]] const CostCurve& curve(std::uint32_t a) const {
    return problem_.curves[problem_.curve_of_activity[a]];
  }
  static void replace(double& term, double value, CompensatedSum& total) {
    if (value == term) return;
    total.add(-term);
    total.add(value);
    term = value;
  }

  const CrashProblem& problem_;
  const Units& units_;
  const CriticalFlow& flow_;
  std::vector<std::int64_t> duration_;
  std::vector<double> cost_, dual_;
  CompensatedSum cost_sum_, dual_sum_;
};

void check_problem(const CrashProblem& problem) {
  if (problem.curve_of_activity.empty()) throw DataError("there is no activity to plan");
  for (const std::uint32_t curve : problem.curve_of_activity) {
    if (curve < problem.curves.size() && !problem.curves[curve].empty()) continue;
    throw DataError(fmt::format("activity with curve {}; there are {}, each with a vertex", curve,
                                problem.curves.size()));
  }
}

IntegerGraph integer_graph(const CrashProblem& problem, const Units& units, double curve_error) {
  IntegerGraph graph;
  for (const CostCurve& curve : problem.curves) {
    const double tolerance_j = curve_error * (curve.front().cost_j - curve.back().cost_j);
    graph.curves.push_back(integer_curve(simplified(curve, tolerance_j), units));
  }
  graph.curve_of_activity = problem.curve_of_activity;
  for (const Dependency& d : problem.dependencies) {
    graph.arcs.push_back({d.from.value, d.to.value, units.steps(d.lag_s)});
  }
  return graph;
}

class DeadlineSweep {
 public:
  DeadlineSweep(const CrashProblem& problem, const FrontierOptions& options,
                const RunContext& context)
      : problem_(problem),
        options_(options),
        context_(context),
        units_(choose_units(problem, options)),
        flow_(integer_graph(problem, units_, options.curve_error)),
        account_(problem, units_, flow_) {
    frontier_.plans.resize(options.times_s.size());
    wanted_.resize(options.times_s.size());
    std::iota(wanted_.begin(), wanted_.end(), std::size_t{0});
    std::ranges::sort(wanted_, {}, [&](std::size_t i) { return options.times_s[i]; });
  }

  Frontier run() {
    frontier_.slowest_time_s = account_.horizon_s();
    frontier_.least_cost_j = account_.bound_j(account_.horizon_s());  // at price 0
    frontier_.least_time_s = static_cast<double>(flow_.least_horizon()) * units_.time_s;
    while (true) {
      const std::int64_t room = flow_.maximise();
      account_.update_bounds(flow_.take_changed_flows());
      const bool last = room == 0;
      add_vertex();
      take_plans(last ? flow_.horizon() : flow_.horizon() - room);
      if (last || has_enough()) break;
      if (context_.stop_requested()) {
        frontier_.interrupted = true;
        break;
      }
      if (flow_.node_visits() > options_.most_node_visits) {
        frontier_.gave_up = true;
        break;
      }
      lower_to(target_);
      ++frontier_.phases;
      report();
    }
    frontier_.augmentations = flow_.augmentations();
    frontier_.node_visits = flow_.node_visits();
    return std::move(frontier_);
  }

 private:
  [[nodiscard]] bool has_enough() const { return options_.only_times && wanted_.empty(); }

  void lower_to(std::int64_t horizon) {
    flow_.fall(flow_.horizon() - horizon);
    account_.update_costs(flow_.moved());
  }

  void add_vertex() {
    frontier_.vertices.push_back({account_.horizon_s(), account_.cost_j(),
                                  account_.bound_j(account_.horizon_s()), account_.price_w()});
  }

  // Takes the plans at the wanted times from the present horizon down to `until`, which becomes the
  // target of this phase.
  void take_plans(std::int64_t until) {
    target_ = until;
    while (!wanted_.empty()) {
      const double time_s = options_.times_s[wanted_.back()];
      const double steps = std::floor(time_s / units_.time_s);
      std::int64_t at = flow_.horizon();
      if (steps < static_cast<double>(at)) {
        at = std::max(static_cast<std::int64_t>(std::max(steps, 0.0)), flow_.least_horizon());
      }
      if (at < until) return;
      if (at == until && until > flow_.least_horizon()) return;  // the next phase begins there
      lower_to(at);
      FrontierPlan& plan = frontier_.plans[wanted_.back()];
      wanted_.pop_back();
      plan = {std::min(time_s, frontier_.slowest_time_s),
              account_.cost_j(),
              account_.bound_j(account_.horizon_s()),
              account_.price_w(),
              {},
              {},
              account_.lag_cost_j(),
              {}};
      plan.duration_s.reserve(problem_.curve_of_activity.size());
      plan.flow_w.reserve(problem_.curve_of_activity.size());
      plan.arc_flow_w.reserve(problem_.dependencies.size());
      for (std::uint32_t a = 0; a < problem_.curve_of_activity.size(); ++a) {
        plan.duration_s.push_back(account_.duration_s(a));
        plan.flow_w.push_back(account_.flow_w(a));
      }
      for (std::uint32_t d = 0; d < problem_.dependencies.size(); ++d) {
        plan.arc_flow_w.push_back(static_cast<double>(flow_.flow_of_arc(d)) * units_.price_w);
      }
    }
  }

  void report() const {
    if (frontier_.phases % 64 != 0) return;
    const double range = frontier_.slowest_time_s - frontier_.least_time_s;
    const double done = (frontier_.slowest_time_s - account_.horizon_s()) / range;
    context_.report({.done = static_cast<std::size_t>(1000.0 * done),
                     .total = 1000,
                     .note = fmt::format("{} phases", frontier_.phases)});
  }

  const CrashProblem& problem_;
  const FrontierOptions& options_;
  const RunContext& context_;
  Units units_;
  CriticalFlow flow_;
  Account account_;
  Frontier frontier_;
  std::vector<std::size_t> wanted_;  // times not reached yet, longest last
  std::int64_t target_ = 0;
};

}  // namespace

CrashProblem crash_problem(const PipelineWork& work) {
  CrashProblem problem;
  for (const PassType& type : work.types) {
    problem.curves.push_back(lower_hull(option_points(type, work.blocked_power_w)));
  }
  for (const PassTypeId id : work.type_of_pass) problem.curve_of_activity.push_back(id.value);
  problem.dependencies = work.schedule.dependencies;
  return problem;
}

FrontierOptions automatic_sweep(std::size_t activities) {
  FrontierOptions options;
  if (activities > 2048) {
    const bool many = activities > 8192;
    options.slope_bits = many ? 7 : 8;
    options.curve_error = many ? 1.5e-2 : 1e-2;
  }
  return options;
}

double Frontier::lower_bound_j(double time_s) const {
  double bound_j = least_cost_j;
  for (const FrontierVertex& v : vertices) {
    bound_j = std::max(bound_j, v.lower_bound_j + v.price_w * (v.time_s - time_s));
  }
  return bound_j;
}

Frontier sweep_frontier(const CrashProblem& problem, const FrontierOptions& options,
                        const RunContext& context) {
  check_problem(problem);
  return DeadlineSweep(problem, options, context).run();
}

}  // namespace rubato
