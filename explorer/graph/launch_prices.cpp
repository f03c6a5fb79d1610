#include "explorer/graph/launch_prices.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

LatestPath latest_path(const ExecutionGraph& graph, std::span<const double> end_s) {
  LatestPath path{static_cast<std::uint32_t>(std::ranges::max_element(end_s) - end_s.begin()), {}};
  const auto ready_s = [&](const GraphArc& arc) { return end_s[index(arc.from)] + arc.lag_s; };
  for (std::uint32_t at = path.last; !graph.arcs_into(ActivityId{at}).empty();) {
    path.waits.push_back(&*std::ranges::max_element(graph.arcs_into(ActivityId{at}), {}, ready_s));
    at = path.waits.back()->from.value;
  }
  return path;
}

void scale(LaunchPrices& prices, double factor) {
  for (double& flow_w : prices.flow_w) flow_w *= factor;
  prices.lag_cost_j *= factor;
  prices.price_w *= factor;
}

void step_prices(const ExecutionGraph& graph, std::span<const double> end_s, bool late,
                 double share, double least_idle_w, LaunchPrices& prices) {
  if (!late) {
    scale(prices, 1.0 - 0.5 * share);
    return;
  }
  const double raise_w = share * std::max(prices.price_w, least_idle_w);
  const LatestPath path = latest_path(graph, end_s);
  prices.price_w += raise_w;
  prices.flow_w[path.last] += raise_w;
  for (const GraphArc* arc : path.waits) {
    prices.flow_w[index(arc->from)] += raise_w;
    prices.lag_cost_j += raise_w * arc->lag_s;
  }
}

namespace {

// Times at which plans are kept: at vertices if these are few, else denser near a time.
std::vector<double> times_of_plans(const Frontier& frontier, double around_s) {
  constexpr std::size_t few = 500;
  constexpr double dense = 1.002, sparse = 1.05, dense_to = 1.6;
  std::vector<double> times_s;
  if (!frontier.gave_up && frontier.vertices.size() <= few) {
    for (const FrontierVertex& vertex : frontier.vertices) times_s.push_back(vertex.time_s);
    return times_s;
  }
  times_s.push_back(frontier.least_time_s);
  const double dense_from_s = std::max(frontier.least_time_s, around_s / dense_to);
  double time_s = dense_from_s / sparse;
  while (time_s > frontier.least_time_s) {
    times_s.push_back(time_s);
    time_s /= sparse;
  }
  time_s = dense_from_s;
  while (time_s < frontier.slowest_time_s) {
    times_s.push_back(time_s);
    time_s *= time_s < dense_to * around_s ? dense : sparse;
  }
  times_s.push_back(frontier.slowest_time_s);
  return times_s;
}

}  // namespace

LaunchFrontier::LaunchFrontier(const CrashProblem& problem, double around_s, double least_idle_w,
                               std::uint64_t most_exact_visits, const RunContext& context)
    : launches_(problem) {
  constexpr double step = 1.0 / 1024.0;  // of the idle power
  FrontierOptions options;
  options.most_node_visits = most_exact_visits;
  frontier_ = sweep_frontier(launches_.problem(), options, context);
  options.times_s = times_of_plans(frontier_, around_s);
  options.most_node_visits = FrontierOptions{}.most_node_visits;
  if (frontier_.gave_up) options.least_step_w = step * least_idle_w;
  frontier_ = sweep_frontier(launches_.problem(), options, context);
  plans_ = std::move(frontier_.plans);
  frontier_.plans.clear();
  frontier_ = launches_.expanded(std::move(frontier_));
  std::erase_if(plans_, [](const FrontierPlan& plan) { return plan.duration_s.empty(); });
  std::ranges::sort(plans_, {}, &FrontierPlan::time_s);
}

// Prices of a plan are those of faster plans than it, as far as the next one. So durations are of
// the plan before a time, and prices of the one after it.
std::optional<FrontierPlan> LaunchFrontier::plan_within(double time_s) const {
  if (plans_.empty()) return std::nullopt;
  const auto after = std::ranges::upper_bound(plans_, time_s, {}, &FrontierPlan::time_s);
  if (after == plans_.begin() && frontier_.interrupted) return std::nullopt;
  const FrontierPlan& within = after == plans_.begin() ? *after : *std::prev(after);
  FrontierPlan plan = after == plans_.end() || within.time_s == time_s ? within : *after;
  plan.time_s = within.time_s;
  plan.duration_s = within.duration_s;
  launches_.expand(plan);
  return plan;
}

// A vertex and its price give a line that no cost is below: cost + price x time >= a constant. Idle
// energy rises with time. The sum of both falls with time where the price is above the idle power.
// Then it is least at the deadline, else at the least time. Two vertices whose prices lie on both
// sides of the idle power also give a line of exactly that price: a bound whatever the time.
double bound_of_launches_j(const Frontier& frontier, double least_idle_w, double time_s) {
  const auto without_time_j = [](const FrontierVertex& v) {
    return v.lower_bound_j + v.price_w * v.time_s;
  };
  double bound_j = 0.0;
  FrontierVertex below{0.0, 0.0, frontier.least_cost_j, 0.0};  // prices rise
  for (const FrontierVertex& v : frontier.vertices) {
    const double at_s = v.price_w >= least_idle_w ? time_s : frontier.least_time_s;
    bound_j = std::max(bound_j, without_time_j(v) + (least_idle_w - v.price_w) * at_s);
    if (below.price_w < least_idle_w && v.price_w >= least_idle_w) {
      const double share = (least_idle_w - below.price_w) / (v.price_w - below.price_w);
      bound_j =
          std::max(bound_j, (1.0 - share) * without_time_j(below) + share * without_time_j(v));
    }
    below = v;
  }
  return bound_j;
}

}  // namespace rubato
