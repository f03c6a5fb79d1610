#include "explorer/pipeline/rounding.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "common/numbers.hpp"
#include "explorer/pipeline/cost_curve.hpp"
#include "explorer/solver.hpp"

namespace rubato {

namespace {

// Durations of a sweep are multiples of 2^-40 of the longest pass. This share of a duration is more
// than that rounding.
constexpr double duration_tolerance = 1e-9;

// Latest ends are sums from the deadline backwards and may be off in the last digits. A plan
// that is late by these is made again with this share less time.
constexpr double lost_digits = 1e-12;

// Slack goes to savings per second above a price, which halves from round to round.
constexpr int slack_rounds = 12;

// Passes in a row are searched exactly up to this number.
constexpr std::size_t most_in_a_row = 64;

}  // namespace

ClockRounder::ClockRounder(const PipelineWork& work) : work_(work) {
  for (const PassType& type : work.types) {
    std::vector<Choice> sorted;
    for (std::size_t i = 0; i < type.options.size(); ++i) {
      const ClockOption& o = type.options[i];
      sorted.push_back(
          {id_at<OptionId>(i), o.time_s, o.energy_j - work.blocked_power_w * o.time_s});
    }
    std::ranges::sort(
        sorted, {}, [](const Choice& c) { return std::tuple(c.time_s, c.cost_j, c.option.value); });
    std::vector<Choice> front;
    for (const Choice& c : sorted) {
      if (front.empty() || c.cost_j < front.back().cost_j) front.push_back(c);
    }
    for (std::size_t i = 1; i < front.size(); ++i) {
      const double step_s = front[i].time_s - front[i - 1].time_s;
      if (step_s <= 0.0) continue;
      steepest_w_ = std::max(steepest_w_, (front[i - 1].cost_j - front[i].cost_j) / step_s);
    }
    std::vector<CurvePoint> points;
    for (const Choice& c : front) points.push_back({c.time_s, c.cost_j});
    for (const CurvePoint& v : lower_hull(points)) {
      for (Choice& c : front) c.vertex |= c.time_s == v.time_s;
    }
    choices_of_type_.push_back(std::move(front));
  }
  for (const PassId id : topological_order(work.schedule)) order_.push_back(id.value);
  first_edge_.assign(order_.size() + 1, 0);
  for (const Dependency& d : work.schedule.dependencies) ++first_edge_[index(d.from) + 1];
  for (std::size_t i = 0; i < order_.size(); ++i) first_edge_[i + 1] += first_edge_[i];
  edges_.resize(work.schedule.dependencies.size());
  std::vector<std::uint32_t> next(first_edge_.begin(), first_edge_.end() - 1);
  for (const Dependency& d : work.schedule.dependencies) {
    edges_[next[index(d.from)]++] = {d.to.value, d.lag_s};
  }
}

// Runs the schedule with every pass as early as it can start. Returns the end of the last pass.
template <class Duration>
double ClockRounder::run(Duration duration_s, std::vector<double>& start_s) const {
  start_s.assign(order_.size(), 0.0);
  double last_s = 0.0;
  for (const std::uint32_t pass : order_) {
    const double done_s = start_s[pass] + duration_s(pass);
    last_s = std::max(last_s, done_s);
    for (std::uint32_t e = first_edge_[pass]; e < first_edge_[pass + 1]; ++e) {
      double& next_s = start_s[edges_[e].to];
      next_s = std::max(next_s, done_s + edges_[e].lag_s);
    }
  }
  return last_s;
}

double ClockRounder::end_s(const std::vector<std::uint32_t>& chosen) const {
  std::vector<double> start_s;
  return run([&](std::uint32_t pass) { return choices(pass)[chosen[pass]].time_s; }, start_s);
}

// Slows passes down, first to last, as far as the passes after them allow and as long as each
// second saves at least `price_w`. Returns the highest price at which the next round would change
// something: infinity if this round did, 0 if no slower choice fits any more.
double ClockRounder::spend_slack(std::vector<std::uint32_t>& chosen, double deadline_s,
                                 double price_w) const {
  std::vector<double> latest_end_s(order_.size(), deadline_s);
  for (std::size_t i = order_.size(); i-- > 0;) {
    const std::uint32_t pass = order_[i];
    for (std::uint32_t e = first_edge_[pass]; e < first_edge_[pass + 1]; ++e) {
      const std::uint32_t to = edges_[e].to;
      const double start_s = latest_end_s[to] - choices(to)[chosen[to]].time_s;
      latest_end_s[pass] = std::min(latest_end_s[pass], start_s - edges_[e].lag_s);
    }
  }
  std::vector<double> start_s(order_.size());
  bool changed = false;
  double most_j = 0.0, in_s = 1.0;  // most_j / in_s: the largest saving per second left
  for (const std::uint32_t pass : order_) {
    const std::vector<Choice>& list = choices(pass);
    const Choice now = list[chosen[pass]];
    for (std::uint32_t c = chosen[pass] + 1; c < list.size(); ++c) {
      if (start_s[pass] + list[c].time_s > latest_end_s[pass]) break;
      const double saving_j = now.cost_j - list[c].cost_j, longer_s = list[c].time_s - now.time_s;
      if (saving_j >= price_w * longer_s) {
        chosen[pass] = c;
        changed = true;
      } else if (saving_j * in_s > most_j * longer_s) {
        most_j = saving_j;
        in_s = longer_s;
      }
    }
    const double done_s = start_s[pass] + list[chosen[pass]].time_s;
    for (std::uint32_t e = first_edge_[pass]; e < first_edge_[pass + 1]; ++e) {
      double& next_s = start_s[edges_[e].to];
      next_s = std::max(next_s, done_s + edges_[e].lag_s);
    }
  }
  return changed ? std::numeric_limits<double>::infinity() : most_j / in_s;
}

// The slowest choices that take no longer than durations. Where one is no more than the fastest
// choice takes, it is that one: another choice that is as long but for the last digits would end
// late.
std::vector<std::uint32_t> ClockRounder::floor(std::span<const double> duration_s,
                                               bool vertices_only) const {
  std::vector<std::uint32_t> chosen(order_.size());
  for (std::uint32_t pass = 0; pass < order_.size(); ++pass) {
    const std::vector<Choice>& list = choices(pass);
    const double tolerance_s = duration_s[pass] * duration_tolerance;
    if (duration_s[pass] <= list.front().time_s + tolerance_s) continue;
    const auto beyond = std::ranges::upper_bound(
        list.begin() + 1, list.end(), duration_s[pass] + tolerance_s, {}, &Choice::time_s);
    std::uint32_t& one = chosen[pass];
    one = static_cast<std::uint32_t>(beyond - list.begin()) - 1;
    while (vertices_only && one > 0 && !list[one].vertex) --one;
  }
  return chosen;
}

// Spends slack in rounds of falling price. Returns whether the plan still ends in time.
bool ClockRounder::spend_all(std::vector<std::uint32_t>& chosen, double deadline_s) const {
  const std::vector<std::uint32_t> start = chosen;
  for (const double limit_s : {deadline_s, deadline_s * (1.0 - lost_digits)}) {
    chosen = start;
    double price_w = steepest_w_, next_w = steepest_w_;
    for (int round = 0; round < slack_rounds && next_w > 0.0; ++round, price_w *= 0.5) {
      if (price_w <= next_w * (1.0 + lost_digits)) next_w = spend_slack(chosen, limit_s, price_w);
    }
    if (next_w > 0.0) spend_slack(chosen, limit_s, 0.0);
    if (end_s(chosen) <= deadline_s) return true;
  }
  return false;
}

// Passes in the order in which they start.
std::vector<std::uint32_t> ClockRounder::by_start(const std::vector<std::uint32_t>& chosen) const {
  std::vector<double> start_s;
  run([&](std::uint32_t pass) { return choices(pass)[chosen[pass]].time_s; }, start_s);
  std::vector<std::uint32_t> sorted = order_;
  std::ranges::stable_sort(sorted, {}, [&](std::uint32_t pass) { return start_s[pass]; });
  return sorted;
}

std::optional<PipelinePlan> ClockRounder::splice(std::span<const double> slow_s,
                                                 std::span<const double> fast_s, double deadline_s,
                                                 SlowPart slow_part) const {
  const std::vector<std::uint32_t> slow = floor(slow_s, false), fast = floor(fast_s, false);
  if (end_s(fast) > deadline_s) return std::nullopt;
  std::vector<std::uint32_t> sorted = by_start(slow);
  if (slow_part == SlowPart::both_ends || slow_part == SlowPart::middle) {
    std::vector<std::uint32_t> folded;  // from both ends to the middle
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      folded.push_back(sorted[i % 2 == 0 ? i / 2 : sorted.size() - 1 - i / 2]);
    }
    sorted = std::move(folded);
  }
  if (slow_part == SlowPart::end || slow_part == SlowPart::middle) std::ranges::reverse(sorted);
  // Bisection: with `low` passes of the slower plan the iteration is in time.
  std::size_t low = 0, high = sorted.size() + 1;
  std::vector<std::uint32_t> chosen = fast;
  const auto cut_at = [&](std::size_t count) {
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      chosen[sorted[i]] = i < count ? slow[sorted[i]] : fast[sorted[i]];
    }
  };
  while (low + 1 < high) {
    const std::size_t count = (low + high) / 2;
    cut_at(count);
    (end_s(chosen) <= deadline_s ? low : high) = count;
  }
  cut_at(low);
  if (!spend_all(chosen, deadline_s)) return std::nullopt;
  return plan_of(chosen);
}

std::optional<PipelinePlan> ClockRounder::round(std::span<const double> duration_s,
                                                double deadline_s) const {
  std::vector<std::uint32_t> best;
  double best_j = std::numeric_limits<double>::infinity();
  for (const bool vertices_only : {false, true}) {
    std::vector<std::uint32_t> chosen = floor(duration_s, vertices_only);
    if (end_s(chosen) > deadline_s) continue;
    if (!spend_all(chosen, deadline_s)) continue;
    const double total_j = chosen_cost_j(chosen);
    if (total_j >= best_j) continue;
    best = std::move(chosen);
    best_j = total_j;
  }
  if (best.empty()) return std::nullopt;
  return plan_of(best);
}

double ClockRounder::chosen_cost_j(const std::vector<std::uint32_t>& chosen) const {
  CompensatedSum cost_j;
  for (std::uint32_t pass = 0; pass < order_.size(); ++pass) {
    cost_j.add(choices(pass)[chosen[pass]].cost_j);
  }
  return cost_j.value();
}

PipelinePlan ClockRounder::plan_of(const std::vector<std::uint32_t>& chosen) const {
  PipelinePlan plan;
  plan.option_of_pass.reserve(order_.size());
  for (std::uint32_t pass = 0; pass < order_.size(); ++pass) {
    plan.option_of_pass.push_back(choices(pass)[chosen[pass]].option);
  }
  return plan;
}

std::optional<PipelinePlan> ClockRounder::in_a_row(double deadline_s, double waiting_w,
                                                   const RunContext& context) const {
  if (work_.schedule.shape.stages > 1 || order_.size() > most_in_a_row) return std::nullopt;
  std::size_t most = 0;
  for (const std::vector<Choice>& choices : choices_of_type_) most = std::max(most, choices.size());
  std::vector<double> time_s, energy_j;
  double fastest_s = 0.0;
  for (std::uint32_t pass = 0; pass < order_.size(); ++pass) {
    fastest_s += choices(pass).front().time_s;
    for (std::size_t c = 0; c < most; ++c) {
      const Choice& choice = choices(pass)[std::min(c, choices(pass).size() - 1)];
      time_s.push_back(choice.time_s);
      energy_j.push_back(choice.cost_j + waiting_w * choice.time_s);
    }
  }
  const double gaps_s = least_time_s() - fastest_s, slack_s = deadline_s - gaps_s - fastest_s;
  if (slack_s < 0.0 || std::ranges::min(energy_j) <= 0.0) return std::nullopt;
  const ProfileTable table(order_.size(), most, std::move(time_s), std::move(energy_j));
  const Solution best =
      solve_global(table, LeastWaste{.slack_frac = slack_s / fastest_s}, ClockId{0}, context);
  std::vector<std::uint32_t> chosen;
  for (const ClockId clock : best.clock_of_unit) {
    const auto pass = static_cast<std::uint32_t>(chosen.size());
    chosen.push_back(std::min(clock.value, static_cast<std::uint32_t>(choices(pass).size() - 1)));
  }
  if (chosen.empty() || end_s(chosen) > deadline_s) return std::nullopt;
  return plan_of(chosen);
}

double ClockRounder::least_time_s() const {
  return end_s(std::vector<std::uint32_t>(order_.size(), 0));
}

double ClockRounder::time_s(const PipelinePlan& plan) const {
  std::vector<double> start_s;
  const auto duration_s = [&](std::uint32_t pass) {
    return work_.type_of(PassId{pass}).options[index(plan.option_of_pass[pass])].time_s;
  };
  return run(duration_s, start_s);
}

double ClockRounder::cost_j(const PipelinePlan& plan) const {
  CompensatedSum cost_j;
  for (std::uint32_t pass = 0; pass < order_.size(); ++pass) {
    const ClockOption& option =
        work_.type_of(PassId{pass}).options[index(plan.option_of_pass[pass])];
    cost_j.add(option.energy_j - work_.blocked_power_w * option.time_s);
  }
  return cost_j.value();
}

}  // namespace rubato
