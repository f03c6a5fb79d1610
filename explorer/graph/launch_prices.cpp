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

Frontier LaunchFrontiers::sweep(const Contraction& launches, std::vector<double> times_s,
                                double enough_w, const RunContext& context) const {
  constexpr std::size_t exact_curves_up_to = 50'000;  // vertices
  constexpr int coarse_bits = 20;
  FrontierOptions options;
  options.times_s = std::move(times_s);
  options.only_times = true;
  options.enough_w = enough_w;
  std::size_t vertices = 0;
  for (const CostCurve& curve : launches.problem().curves) vertices += curve.size();
  if (vertices > exact_curves_up_to) options.curve_error = 1e-4;
  options.most_node_visits = most_exact_visits_;
  Frontier exact = sweep_contracted(launches, options, context);
  if (!exact.gave_up) return exact;
  options.most_node_visits = FrontierOptions{}.most_node_visits;
  options.slope_bits = coarse_bits;
  Frontier coarse = sweep_contracted(launches, options, context);
  // The exact part stays, so it does not depend on whether something faster is wanted.
  const double exact_to_s = exact.vertices.back().time_s;
  std::erase_if(coarse.vertices, [&](const FrontierVertex& v) { return v.time_s >= exact_to_s; });
  coarse.vertices.insert(coarse.vertices.begin(), exact.vertices.begin(), exact.vertices.end());
  coarse.least_cost_j = exact.least_cost_j;
  for (std::size_t i = 0; i < coarse.plans.size(); ++i) {
    if (!exact.plans[i].duration_s.empty()) coarse.plans[i] = std::move(exact.plans[i]);
  }
  return coarse;
}

void ShorterPlans::add(double deadline_s) { deadlines_s_.insert(deadline_s); }

const FrontierPlan* ShorterPlans::at(double deadline_s, std::size_t share,
                                     const RunContext& context) {
  // The first few are nearly as long as the deadline: swept in passing.
  constexpr std::size_t made_first = 4;
  const auto time_s = [](double of_s, double shorter) { return of_s * (1.0 - shorter); };
  const double wanted_s = time_s(deadline_s, shorter_[share]);
  if (!plans_.contains(wanted_s)) {
    const std::size_t shares =
        share < made_first ? std::min(made_first, shorter_.size()) : shorter_.size();
    std::vector<double> times_s;
    for (const double one_s : deadlines_s_) {
      for (const double shorter : shorter_.first(shares)) {
        const double shorter_s = time_s(one_s, shorter);
        if (!plans_.contains(shorter_s)) times_s.push_back(shorter_s);
      }
    }
    Frontier frontier = sweeps_.sweep(launches_, times_s, 0.0, context);
    for (std::size_t i = 0; i < times_s.size(); ++i) {
      if (!frontier.plans[i].duration_s.empty())
        plans_.emplace(times_s[i], std::move(frontier.plans[i]));
    }
  }
  const auto found = plans_.find(wanted_s);
  return found == plans_.end() ? nullptr : &found->second;
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
