#include "explorer/next_capture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "explorer/confidence/seen_times.hpp"
#include "explorer/results/answers.hpp"

namespace rubato {

namespace {

constexpr double frac = 0.01;  // of %

double mean_energy_pct(std::span<const Cost> changes_pct) {
  double sum = 0.0;
  for (const Cost& change : changes_pct) sum += change.energy_j;
  return sum / static_cast<double>(changes_pct.size());
}

// Clocks for all below the captured one, some of them where there are many.
std::vector<DrawnClock> drawn_clocks(const GraphExploration& found,
                                     const GraphPlanIntervals& intervals, double usual_mhz) {
  constexpr double lowest = 0.5, rounding = 1e-9;
  constexpr std::size_t most = 16;
  const GraphModel& model = *found.model;
  const ClockGrid& grid = found.planner->grid();
  std::vector<ClockId> ids;
  for (std::size_t c = 0; c < grid.size(); ++c) {
    const auto id = id_at<ClockId>(c);
    const double share = effective_core_mhz(model.spec(), grid[id]) / usual_mhz;
    if (grid[id].mem == model.captured_clock().mem && share >= lowest && share < 1.0 - rounding)
      ids.push_back(id);
  }
  GraphSimulator simulator(model, grid);
  std::vector<DrawnClock> clocks;
  const std::size_t taken = std::min(ids.size(), most);
  for (std::size_t i = 0; i < taken; ++i) {
    const ClockId id = ids[i * ids.size() / taken];
    const GraphPlan plan = uniform_plan(model.graph(), id);
    clocks.push_back({effective_core_mhz(model.spec(), grid[id]),
                      intervals.changes_pct(plan, simulator.run(plan))});
  }
  return clocks;
}

}  // namespace

std::vector<NextCapture> worth_of_captures(std::span<const DrawnClock> clocks, double usual_mhz,
                                           double slack_frac) {
  constexpr double lowest = 0.6, highest = 0.92, below_seen = 0.1, rounding = 1e-9, of_90_pct = 0.9;
  constexpr std::size_t truths = 64;
  std::vector<double> mean_pct;
  for (const DrawnClock& clock : clocks) mean_pct.push_back(mean_energy_pct(clock.changes_pct));
  std::vector<NextCapture> worth;
  for (const DrawnClock& second : clocks) {
    const double share = second.core_mhz / usual_mhz;
    if (share < lowest || share > highest) continue;
    NextCapture& next = worth.emplace_back(NextCapture{.core_mhz = second.core_mhz});
    const std::size_t draws = second.changes_pct.size(), played = std::min(draws, truths);
    double set = 0.0;
    for (std::size_t t = 0; t < played; ++t) {
      const std::size_t truth = t * draws / played;
      const double slower =
          std::clamp(1.0 + frac * second.changes_pct[truth].time_s, 1.0, 1.0 / share);
      const std::array seen{SeenTime{usual_mhz, 1.0}, SeenTime{second.core_mhz, slower}};
      std::size_t best = clocks.size();
      double least_pct = 0.0, width = 0.0;
      for (std::size_t c = 0; c < clocks.size(); ++c) {
        if (clocks[c].core_mhz < second.core_mhz - below_seen * usual_mhz) continue;
        const auto [least_s, most_s] = possible_times(seen, clocks[c].core_mhz);
        if (most_s > 1.0 + slack_frac + rounding || mean_pct[c] >= least_pct) continue;
        best = c;
        least_pct = mean_pct[c];
        width = most_s - least_s;
      }
      if (best == clocks.size()) continue;  // the captured clock
      next.saving_frac -= frac * clocks[best].changes_pct[truth].energy_j;
      next.width_frac += of_90_pct * width;
      set += 1.0;
    }
    next.saving_frac /= static_cast<double>(played);
    if (set > 0.0) next.width_frac /= set;
  }
  return worth;
}

const NextCapture& NextMeasurement::best() const {
  constexpr double alike_frac = 1e-3;
  const double most_frac =
      std::ranges::max_element(captures, {}, &NextCapture::saving_frac)->saving_frac;
  return *std::ranges::min_element(captures, {}, [&](const NextCapture& one) {
    return one.saving_frac < most_frac - alike_frac ? std::numeric_limits<double>::infinity()
                                                    : one.width_frac;
  });
}

std::optional<NextMeasurement> next_measurement(const GraphExploration& found) {
  constexpr double worth_saying = 0.5;  // of the time of kernels
  if (found.coverage.anchored_s < worth_saying * found.coverage.total_s()) return std::nullopt;
  const Answers<GraphPlanOutcome> answers = answers_of(found);
  std::optional<NextMeasurement> next;
  const GraphPlanOutcome* now = nullptr;
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const GraphPlanOutcome& plan = found.plans[i];
    const double slack_frac = plan.result.question.slack_frac;
    if (plan.goal || slack_frac < 0.0) continue;
    if (!next || slack_frac > next->slack_frac) {
      next = NextMeasurement{.slack_frac = slack_frac};
      now = nullptr;
    }
    const Contender& as_seen = answers.contenders[i];
    if (slack_frac < next->slack_frac || plan.result.question.grain != Granularity::run ||
        !as_seen.holds || !has_odds(as_seen.odds_in_time, as_seen.odds_frac))
      continue;
    const auto energy_frac = [](const GraphPlanOutcome& of) {
      return of.change_as_played().energy_frac;
    };
    if (energy_frac(plan) < (now == nullptr ? -least_saving_frac : energy_frac(*now))) now = &plan;
  }
  if (!next || found.interrupted) return std::nullopt;
  constexpr double same_clock = 1e-3;
  const GpuSpec& spec = found.model->spec();
  const ClockGrid& grid = found.planner->grid();
  const GraphPlanIntervals intervals(*found.model, *found.model, grid, found.planner->baseline());
  if (now != nullptr) {
    next->saving_now_frac =
        -frac * mean_energy_pct(intervals.changes_pct(now->result.plan, now->result.run));
    next->width_now_frac = now->interval.high.time_frac - now->interval.low.time_frac;
    next->energy_width_now_frac = now->interval.high.energy_frac - now->interval.low.energy_frac;
  }
  const double captured_mhz = effective_core_mhz(spec, found.model->captured_clock()),
               default_mhz = effective_core_mhz(spec, grid[grid.default_clock()]);
  if (std::abs(captured_mhz / default_mhz - 1.0) > same_clock)
    next->captures = {{.core_mhz = default_mhz}};
  else
    next->captures = worth_of_captures(drawn_clocks(found, intervals, captured_mhz), captured_mhz,
                                       next->slack_frac);
  if (next->captures.empty()) return std::nullopt;
  return next;
}

}  // namespace rubato
