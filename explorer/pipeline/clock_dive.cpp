#include "explorer/pipeline/clock_dive.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "explorer/pipeline/cost_curve.hpp"

namespace rubato {

namespace {

// Durations of a sweep are rounded. One that is nearer to a clock's time than this share of it
// counts as at the clock.
constexpr double at_clock = 1e-7;

// How many vertices of its hull a pass keeps at first to either side of its free duration, with the
// choices between them. With all choices a sweep takes up to twice as long, and plans are no better
// on the Perseus profiles.
constexpr int vertices_to_a_side = 3;

// Each step restricts at least one pass in so many, as far as passes lie between clocks.
constexpr double most_steps = 48.0;

}  // namespace

ClockDive::ClockDive(const PipelineWork& work, const ClockRounder& rounder)
    : work_(work), rounder_(rounder) {}

CostCurve ClockDive::curve(std::uint32_t pass, Range range) const {
  const std::vector<ClockChoice>& all = rounder_.choices(pass);
  std::vector<CurvePoint> points;
  for (std::uint32_t c = range.first; c <= range.last; ++c)
    points.push_back({all[c].time_s, all[c].cost_j});
  return lower_hull(points);
}

ClockDive::Range ClockDive::around(std::uint32_t pass, double duration_s) const {
  const std::vector<ClockChoice>& all = rounder_.choices(pass);
  std::uint32_t slow = 0;  // the first choice that is slower than the duration
  while (slow < all.size() && all[slow].time_s <= duration_s * (1.0 + at_clock)) ++slow;
  Range range{slow, slow};
  for (int left = vertices_to_a_side; range.first > 0 && left > 0;) {
    --range.first;
    if (all[range.first].vertex) --left;
  }
  for (int left = vertices_to_a_side; range.last < all.size() && left > 0; ++range.last)
    if (all[range.last].vertex) --left;
  --range.last;
  return range;
}

// Free durations within the choices left. Nothing if the fastest of these end after the deadline,
// or if interrupted.
std::optional<FrontierPlan> ClockDive::free_plan(std::span<const Range> ranges, double deadline_s,
                                                 int slope_bits, const RunContext& context) const {
  CrashProblem problem;
  std::map<std::array<std::uint32_t, 3>, std::uint32_t> known;  // type and range: number of curve
  for (std::uint32_t pass = 0; pass < ranges.size(); ++pass) {
    const auto next = static_cast<std::uint32_t>(problem.curves.size());
    const auto [found, is_new] = known.try_emplace(
        {work_.type_of_pass[pass].value, ranges[pass].first, ranges[pass].last}, next);
    if (is_new) problem.curves.push_back(curve(pass, ranges[pass]));
    problem.curve_of_activity.push_back(found->second);
  }
  problem.dependencies = work_.schedule.dependencies;
  FrontierOptions sweep;
  sweep.slope_bits = slope_bits;
  sweep.times_s = {deadline_s};
  sweep.only_times = true;
  Frontier frontier = sweep_frontier(problem, sweep, context);
  if (frontier.interrupted || frontier.least_time_s > deadline_s) return std::nullopt;
  return std::move(frontier.plans.front());
}

std::vector<ClockDive::Restriction> ClockDive::between_clocks(std::span<const double> duration_s,
                                                              std::span<const Range> ranges,
                                                              double slower_from) const {
  std::vector<Restriction> found;
  for (std::uint32_t pass = 0; pass < ranges.size(); ++pass) {
    const Range range = ranges[pass];
    if (range.first == range.last) continue;
    const std::vector<ClockChoice>& all = rounder_.choices(pass);
    const double time_s = duration_s[pass] * (1.0 + at_clock);
    std::uint32_t fast = range.first;
    while (fast < range.last && all[fast + 1].time_s <= time_s) ++fast;
    const double beyond_s = duration_s[pass] - all[fast].time_s;
    if (fast == range.last || beyond_s <= at_clock * duration_s[pass]) continue;
    const double way = beyond_s / (all[fast + 1].time_s - all[fast].time_s);
    found.push_back({pass,
                     {range.first, fast},
                     {fast + 1, range.last},
                     all[fast].cost_j - cost_at(curve(pass, range), duration_s[pass]),
                     way >= slower_from});
  }
  return found;
}

std::optional<PipelinePlan> ClockDive::dive(std::span<const double> duration_s, double deadline_s,
                                            const DiveOptions& options,
                                            const RunContext& context) const {
  std::vector<Range> ranges;
  for (std::uint32_t pass = 0; pass < duration_s.size(); ++pass)
    ranges.push_back(around(pass, duration_s[pass]));
  std::vector<double> now_s(duration_s.begin(), duration_s.end());
  std::optional<PipelinePlan> best;
  double best_j = options.known_j;
  while (!context.stop_requested()) {
    if (auto plan = rounder_.round(now_s, deadline_s); plan && rounder_.cost_j(*plan) < best_j) {
      best_j = rounder_.cost_j(*plan);
      best = std::move(plan);
    }
    std::vector<Restriction> open = between_clocks(now_s, ranges, options.slower_from);
    if (open.empty()) return best;
    std::ranges::stable_sort(open, std::greater{}, &Restriction::lost_j);
    const double count = std::max(options.share * static_cast<double>(open.size()),
                                  static_cast<double>(ranges.size()) / most_steps);
    open.resize(std::min(open.size(), static_cast<std::size_t>(std::ceil(count))));
    for (const Restriction& r : open) ranges[r.pass] = r.prefers_slower ? r.slower : r.faster;
    auto next = free_plan(ranges, deadline_s, options.slope_bits, context);
    if (!next) {  // too slow; with all of them on the faster side it is not
      for (const Restriction& r : open) ranges[r.pass] = r.faster;
      next = free_plan(ranges, deadline_s, options.slope_bits, context);
    }
    if (!next || next->lower_bound_j >= best_j) return best;
    now_s = std::move(next->duration_s);
  }
  return best;
}

}  // namespace rubato
