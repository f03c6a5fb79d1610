#include "explorer/graph/unit_search.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr int price_rounds = 60;             // subgradient steps for a bound
constexpr double first_raise = 0.25;         // share of the whole price put on a late path
constexpr double unit_decay = 0.93;          // of that share from step to step
constexpr int most_steps = 400;              // speed-ups of a late plan
constexpr int improvement_rounds = 4;        // over all units
constexpr std::size_t most_unit_tries = 24;  // clocks tried for a unit in a round
// Activities replayed while units are improved: about a third of a second, however large the graph.
// A question may take some twenty searches.
constexpr std::size_t most_replayed = 60'000'000;
constexpr double least_unit_gain = 1e-9;  // of the energy: below it sums are noise
constexpr double time_rounding = 1e-12;   // of sums of times, added up in another order

// One search. Clocks are tried by replaying the graph on costs alone.
class UnitSearch {
 public:
  UnitSearch(const LaunchCosts& costs, const LaunchUnits& units, LaunchPrices prices,
             const UnitDeadline& deadline)
      : costs_(costs),
        graph_(costs.model().graph()),
        units_(units),
        prices_(std::move(prices)),
        deadline_(deadline),
        duration_s_(graph_.size()),
        start_s_(graph_.size()),
        end_s_(graph_.size()),
        flow_of_kernel_(costs.kernels(), {0.0, 0.0}) {
    unit_cost_j_.reserve(units.size() * costs.clocks());
    for (std::uint32_t u = 0; u < units.size(); ++u) {
      for (std::size_t c = 0; c < costs.clocks(); ++c)
        unit_cost_j_.push_back(units.cost_j(costs, u, id_at<ClockId>(c)));
    }
  }

  UnitPlan run(const RunContext& context) {
    UnitPlan best;
    best.energy_j = std::numeric_limits<double>::infinity();
    std::vector<ClockId> chosen;
    choose(chosen);
    for (int repair = 0; repair < most_steps && !context.stop_requested(); ++repair) {
      const double late_s = replay(chosen) - deadline_.time_s;
      if (late_s <= 0.0) break;
      if (!speed_up_latest_path(costs_, units_, {start_s_, end_s_}, late_s, chosen)) break;
    }
    keep_if_better(best, chosen);
    if (best.clock_of_unit.empty()) keep_if_better(best, fastest_clocks());
    if (!best.clock_of_unit.empty()) improve(best, context);
    return best;
  }

  // Subgradient steps: prices rise where the clocks they choose end late, else they fall.
  double bound_j(const RunContext& context) {
    double best_j = -std::numeric_limits<double>::infinity();
    double raise = first_raise;
    for (int round = 0; round < price_rounds && !context.stop_requested(); ++round) {
      std::vector<ClockId> chosen;
      best_j = std::max(best_j, choose(chosen));
      const bool late = replay(chosen) > deadline_.time_s;
      step_prices(graph_, end_s_, late, raise, costs_.least_idle_w(), prices_);
      raise *= unit_decay;
    }
    return best_j;
  }

 private:
  [[nodiscard]] double unit_cost_j(std::uint32_t unit, ClockId clock) const {
    return unit_cost_j_[unit * costs_.clocks() + index(clock)];
  }

  // Adds flow x time of a unit by clock, of all its launches and of those that lead. Times of
  // launches of one kernel differ by a factor, so their flows are summed up first.
  void add_flow_j(std::uint32_t unit, std::vector<double>& all_j, std::vector<double>& leading_j) {
    std::vector<std::uint32_t> kernels;
    for (const std::uint32_t i : units_.members(unit)) {
      const std::uint32_t kernel = costs_.kernel_of(i);
      auto& [all_w, leading_w] = flow_of_kernel_[kernel];
      const double flow_w = prices_.flow_w[i] * costs_.amount(i);
      if (flow_w == 0.0) continue;
      if (all_w == 0.0) kernels.push_back(kernel);
      all_w += flow_w;
      if (costs_.leads(i)) leading_w += flow_w;
    }
    for (const std::uint32_t kernel : kernels) {
      auto& [all_w, leading_w] = flow_of_kernel_[kernel];
      const std::span<const double> time_s = costs_.kernel_times_s(kernel);
      for (std::size_t c = 0; c < time_s.size(); ++c) {
        all_j[c] += all_w * time_s[c];
        leading_j[c] += leading_w * time_s[c];
      }
      all_w = leading_w = 0.0;
    }
  }

  // The least that a launch beside the main stream takes: it may run at any clock.
  [[nodiscard]] double least_j(std::uint32_t launch) const {
    double least_j = std::numeric_limits<double>::infinity();
    for (const ClockId clock : costs_.useful_clocks(launch)) {
      least_j = std::min(least_j, costs_.cost_j(launch, clock) +
                                      prices_.flow_w[launch] * costs_.time_s(launch, clock));
    }
    return least_j;
  }

  // The cheapest clock of every unit at the present prices. @return the bound that they give, J
  double choose(std::vector<ClockId>& chosen) {
    CompensatedSum bound_j;
    std::vector<double> total_j(costs_.clocks()), leading_j(costs_.clocks());
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      for (std::size_t c = 0; c < costs_.clocks(); ++c)
        total_j[c] = leading_j[c] = unit_cost_j(u, id_at<ClockId>(c));
      for (const std::uint32_t i : units_.members(u)) {
        if (costs_.leads(i)) continue;
        bound_j.add(least_j(i));
        for (std::size_t c = 0; c < costs_.clocks(); ++c)
          leading_j[c] -= costs_.cost_j(i, id_at<ClockId>(c));
      }
      add_flow_j(u, total_j, leading_j);
      const auto least = std::ranges::min_element(total_j);
      chosen.push_back(id_at<ClockId>(static_cast<std::size_t>(least - total_j.begin())));
      bound_j.add(*std::ranges::min_element(leading_j));
    }
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      if (!costs_.is_clocked(i)) bound_j.add(prices_.flow_w[i] * costs_.time_s(i, ClockId{0}));
    }
    // (idle power - price) x time is least at the deadline or at the least time.
    const double idle_w = costs_.least_idle_w();
    const double at_s = prices_.price_w >= idle_w ? deadline_.time_s : deadline_.least_time_s;
    bound_j.add(prices_.lag_cost_j + (idle_w - prices_.price_w) * at_s);
    return bound_j.value();
  }

  double replay(const std::vector<ClockId>& clock_of_unit) {
    replayed_ += graph_.size();
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const ClockId clock = costs_.is_clocked(i) ? clock_of_unit[units_.unit_of(i)] : ClockId{0};
      duration_s_[i] = costs_.time_s(i, clock);
    }
    const double span_s = earliest_starts(graph_, duration_s_, start_s_);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) end_s_[i] = start_s_[i] + duration_s_[i];
    return span_s;
  }

  // @return whether the clocks end in time and take less
  bool keep_if_better(UnitPlan& plan, const std::vector<ClockId>& clock_of_unit) {
    const double span_s = replay(clock_of_unit);
    if (span_s > deadline_.time_s) return false;
    CompensatedSum energy_j;
    energy_j.add(costs_.least_idle_w() * span_s);
    for (std::uint32_t u = 0; u < units_.size(); ++u)
      energy_j.add(unit_cost_j(u, clock_of_unit[u]));
    if (energy_j.value() >= plan.energy_j * (1.0 - least_unit_gain)) return false;
    plan.clock_of_unit = clock_of_unit;
    plan.span_s = span_s;
    plan.energy_j = energy_j.value();
    return true;
  }

  [[nodiscard]] std::vector<ClockId> fastest_clocks() const {
    std::vector<ClockId> fastest;
    for (std::uint32_t u = 0; u < units_.size(); ++u) {
      std::vector<double> time_s;
      for (std::size_t c = 0; c < costs_.clocks(); ++c)
        time_s.push_back(units_.time_s(costs_, u, id_at<ClockId>(c)));
      const auto least = std::ranges::min_element(time_s);
      fastest.push_back(id_at<ClockId>(static_cast<std::size_t>(least - time_s.begin())));
    }
    return fastest;
  }

  // Unit by unit the clock that takes least of those that end in time.
  void improve(UnitPlan& plan, const RunContext& context) {
    replayed_ = 0;
    begin_from(plan.clock_of_unit);
    for (int round = 0; round < improvement_rounds; ++round) {
      bool better = false;
      for (std::uint32_t u = 0; u < units_.size() && !context.stop_requested(); ++u) {
        if (replayed_ > most_replayed) return;
        better |= improve(plan, u);
      }
      if (!better) return;
    }
  }

  bool improve(UnitPlan& plan, std::uint32_t unit) {
    const double now_j = unit_cost_j(unit, plan.clock_of_unit[unit]);
    std::vector<ClockId> cheaper;
    for (std::size_t c = 0; c < costs_.clocks(); ++c) {
      if (unit_cost_j(unit, id_at<ClockId>(c)) < now_j) cheaper.push_back(id_at<ClockId>(c));
    }
    std::ranges::sort(cheaper, {}, [&](ClockId clock) { return unit_cost_j(unit, clock); });
    std::vector<ClockId> trial = plan.clock_of_unit;
    const std::size_t step = std::max<std::size_t>(1, cheaper.size() / most_unit_tries);
    for (std::size_t c = 0; c < cheaper.size(); c += step) {
      if (is_late(unit, cheaper[c])) continue;
      trial[unit] = cheaper[c];
      if (!keep_if_better(plan, trial)) continue;
      begin_from(trial);
      return true;
    }
    return false;
  }

  // Makes this the plan of which single units are changed.
  void begin_from(const std::vector<ClockId>& clock_of_unit) {
    (void)replay(clock_of_unit);
    plan_duration_s_ = duration_s_;
    plan_end_s_ = end_s_;
    plan_left_s_ = times_to_end_s(graph_, duration_s_);
    for (std::size_t i = 0; i < plan_left_s_.size(); ++i) plan_left_s_[i] -= duration_s_[i];
    trial_end_s_.resize(graph_.size());
  }

  // Whether the plan ends late with a unit at another, slower clock. The replay stops as soon as an
  // activity ends so late that the longest path behind it no longer fits. That is certain, since a
  // slower unit makes nothing faster. If the unit gets faster anywhere, the answer is no.
  bool is_late(std::uint32_t unit, ClockId clock) {
    const std::span<const std::uint32_t> members = units_.members(unit);
    const bool slower = std::ranges::all_of(
        members, [&](std::uint32_t i) { return costs_.time_s(i, clock) >= plan_duration_s_[i]; });
    if (!slower) return false;
    const double latest_s = deadline_.time_s * (1.0 + time_rounding);
    auto next = members.begin();
    const std::uint32_t first = *next;
    for (std::uint32_t i = first; i < graph_.size(); ++i) {
      double start_s = 0.0;
      for (const GraphArc& arc : graph_.arcs_into(ActivityId{i})) {
        const std::uint32_t from = arc.from.value;
        start_s = std::max(start_s, (from < first ? plan_end_s_ : trial_end_s_)[from] + arc.lag_s);
      }
      const bool is_member = next != members.end() && *next == i;
      trial_end_s_[i] = start_s + (is_member ? costs_.time_s(i, clock) : plan_duration_s_[i]);
      if (is_member) ++next;
      ++replayed_;
      if (trial_end_s_[i] + plan_left_s_[i] > latest_s) return true;
    }
    return false;
  }

  const LaunchCosts& costs_;
  const ExecutionGraph& graph_;
  const LaunchUnits& units_;
  LaunchPrices prices_;
  UnitDeadline deadline_;
  std::vector<double> duration_s_, start_s_, end_s_;
  std::vector<double> plan_duration_s_, plan_end_s_;  // see begin_from
  std::vector<double> plan_left_s_;                   // longest path from each end there
  std::vector<double> trial_end_s_;
  std::vector<double> unit_cost_j_;  // shape [units x clocks]
  // Sums for the unit that is looked at: of all its launches, of those that lead.
  std::vector<std::pair<double, double>> flow_of_kernel_;  // shape [kernels()]
  std::size_t replayed_ = 0;                               // activities
};

}  // namespace

UnitPlan search_units(const LaunchCosts& costs, const LaunchUnits& units, LaunchPrices prices,
                      const UnitDeadline& deadline, const RunContext& context) {
  return UnitSearch(costs, units, std::move(prices), deadline).run(context);
}

double unit_bound_j(const LaunchCosts& costs, const LaunchUnits& units, LaunchPrices prices,
                    const UnitDeadline& deadline, const RunContext& context) {
  return UnitSearch(costs, units, std::move(prices), deadline).bound_j(context);
}

}  // namespace rubato
