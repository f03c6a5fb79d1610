#include "explorer/pipeline/steady/wave_plans.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "explorer/pipeline/cost_curve.hpp"

namespace rubato {

namespace {

// Found by trial on the Perseus profiles.
constexpr std::uint32_t longest_period = 6;
constexpr std::uint32_t most_lending = 3, most_steady = 2, most_fast_ends = 3;
constexpr double rounds_up_from = 0.75;      // part of a slow microbatch that counts as one more
constexpr double longest_over_least = 1.15;  // time of a microbatch at most, over the least
constexpr double far_apart = 0.02;           // share by which times of two pairs then differ
constexpr double spliced_within = 1.015;     // plans to splice are within this factor of a deadline
constexpr int halvings = 10;

}  // namespace

WavePlans::WavePlans(const PipelineWork& work, const ClockRounder& rounder)
    : work_(work), rounder_(rounder) {
  const PipelineShape& shape = work.schedule.shape;
  if (shape.microbatches <= shape.stages || shape.chunks > 1 || shape.stages < 2) return;
  constexpr auto none = static_cast<std::uint32_t>(-1);
  std::vector<std::array<std::uint32_t, 2>> pass(shape.stages, {none, none});  // any of each kind
  for (std::uint32_t i = 0; i < work.schedule.passes.size(); ++i) {
    const PipelinePass& p = work.schedule.passes[i];
    if (p.stage >= shape.stages) return;
    if (p.kind == PassKind::forward)
      pass[p.stage][0] = i;
    else if (p.kind == PassKind::backward)
      pass[p.stage][1] = i;
    else if (!ends_step(p.kind))
      return;
  }
  for (const auto& [forward, backward] : pass) {
    if (forward == none || backward == none) return;
  }
  for (const auto& [forward, backward] : pass) {
    std::vector<Pair> pairs;
    for (const ClockChoice& f : rounder.choices(forward))
      for (const ClockChoice& b : rounder.choices(backward))
        pairs.push_back({f.time_s + b.time_s, f.cost_j + b.cost_j, f.option, b.option});
    std::ranges::stable_sort(pairs, {},
                             [](const Pair& p) { return std::pair(p.time_s, p.cost_j); });
    Stage& stage = stages_.emplace_back();
    for (const Pair& p : pairs) {
      if (!stage.front.empty() && p.cost_j >= stage.front.back().cost_j) continue;
      stage.front.push_back(p);
      extend_hull(stage.hull, p);
    }
  }
  for (std::uint32_t s = 0; s < shape.stages; ++s)
    if (stages_[s].front.front().time_s >= stages_[slowest_].front.front().time_s) slowest_ = s;
}

// The plan of a wave. Steady stages have the slowest pair that takes at most `steady_s`. The others
// mix the two pairs of their hulls around `wave_s`, with as many slow microbatches as fit.
PipelinePlan WavePlans::plan(const Wave& wave, double wave_s, double steady_s) const {
  struct Mix {
    const Pair *fast = nullptr, *slow = nullptr;
    std::uint32_t slow_count = 0;  // of `period`
  };
  const auto last_within = [](const std::vector<Pair>& pairs, double time_s) {
    const auto beyond = std::ranges::upper_bound(pairs, time_s, {}, &Pair::time_s);
    return beyond == pairs.begin() ? beyond : std::prev(beyond);
  };
  std::vector<Mix> mix;
  for (std::uint32_t s = 0; s < stages_.size(); ++s) {
    const std::uint32_t distance = s > slowest_ ? s - slowest_ : slowest_ - s;
    if (distance <= wave.steady) {
      const Pair& pair = *last_within(stages_[s].front, steady_s);
      mix.push_back({&pair, &pair, 0});
      continue;
    }
    const std::vector<Pair>& hull = stages_[s].hull;
    const auto fast = last_within(hull, wave_s);
    const auto slow = std::next(fast) == hull.end() ? fast : std::next(fast);
    Mix& m = mix.emplace_back(Mix{&*fast, &*slow, 0});
    if (distance <= wave.steady + wave.lending || slow == fast) continue;
    const double share = (wave_s - fast->time_s) / (slow->time_s - fast->time_s);
    m.slow_count = static_cast<std::uint32_t>(
        std::clamp(share * wave.period + 1.0 - rounds_up_from, 0.0, 1.0 * wave.period));
  }
  PipelinePlan made;
  const std::uint32_t microbatches = work_.schedule.shape.microbatches;
  for (std::uint32_t i = 0; i < work_.schedule.passes.size(); ++i) {
    const PipelinePass& pass = work_.schedule.passes[i];
    const bool forward = pass.kind == PassKind::forward;
    const bool fastest =
        ends_step(pass.kind) || (forward ? pass.microbatch < wave.fast_ends
                                         : pass.microbatch + wave.fast_ends >= microbatches);
    if (fastest) {
      made.option_of_pass.push_back(rounder_.choices(i).front().option);
      continue;
    }
    const Mix& m = mix[pass.stage];
    const std::uint32_t place =
        (pass.microbatch + wave.period * pass.stage - pass.stage + wave.phase) % wave.period;
    const Pair& pair = place * m.slow_count % wave.period < m.slow_count ? *m.slow : *m.fast;
    made.option_of_pass.push_back(forward ? pair.forward : pair.backward);
  }
  return made;
}

// The longest that steady stages may take for a microbatch, by bisection; negative if no plan ends
// in time.
double WavePlans::longest_steady_s(const Wave& wave, double wave_s, double deadline_s) const {
  const double least_s = stages_[slowest_].front.front().time_s;
  const auto fits = [&](double steady_s) {
    return rounder_.time_s(plan(wave, wave_s, steady_s)) <= deadline_s;
  };
  double low = least_s, high = longest_over_least * least_s;
  if (!fits(low)) return -1.0;
  for (int i = 0; i < halvings; ++i) {
    const double middle = std::midpoint(low, high);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

std::optional<WavePlans::Found> WavePlans::try_wave(const Wave& wave, double wave_s,
                                                    double deadline_s) const {
  const double steady_s = longest_steady_s(wave, wave_s, deadline_s);
  if (steady_s < 0.0) return std::nullopt;
  auto spent = rounder_.spend(plan(wave, wave_s, steady_s), deadline_s);
  if (!spent) return std::nullopt;
  const double cost_j = rounder_.cost_j(*spent);
  return Found{cost_j, std::move(*spent)};
}

// Iteration times, ascending, at which the stage farthest from the slowest one just fills a period.
std::vector<double> WavePlans::full_times_s(double from_s, double to_s) const {
  std::vector<double> times_s;
  if (stages_.empty()) return times_s;
  const std::size_t far = 2 * slowest_ >= stages_.size() ? 0 : stages_.size() - 1;
  const std::vector<Pair>& hull = stages_[far].hull;
  const double least_s = stages_[slowest_].front.front().time_s;
  for (std::size_t i = 0; i + 1 < hull.size(); ++i) {
    if (hull[i + 1].time_s < (1.0 + far_apart) * hull[i].time_s) continue;
    for (std::uint32_t period = 2; period <= longest_period; ++period) {
      for (std::uint32_t slow = 1; slow < period; ++slow) {
        if (std::gcd(slow, period) > 1) continue;
        const double wave_s = std::lerp(hull[i].time_s, hull[i + 1].time_s, 1.0 * slow / period);
        if (wave_s < least_s) continue;
        const double time_s =
            rounder_.time_s(plan({.lending = 1, .period = period}, wave_s, wave_s));
        if (time_s >= from_s && time_s <= to_s) times_s.push_back(time_s);
      }
    }
  }
  std::ranges::sort(times_s);
  return times_s;
}

std::vector<PipelinePlan> WavePlans::ending_around(std::span<const double> deadlines_s,
                                                   const RunContext& context) const {
  std::vector<PipelinePlan> plans;
  if (deadlines_s.empty()) return plans;
  const auto [first, last] = std::ranges::minmax(deadlines_s);
  std::vector<double> times_s = full_times_s(first / spliced_within, last * spliced_within);
  times_s.insert(times_s.end(), deadlines_s.begin(), deadlines_s.end());
  for (const double time_s : times_s) {
    if (context.stop_requested()) break;
    if (auto plan = ending_by(time_s)) plans.push_back(std::move(*plan));
  }
  return plans;
}

std::optional<PipelinePlan> WavePlans::ending_by(double deadline_s) const {
  if (stages_.empty()) return std::nullopt;
  const auto all = static_cast<std::uint32_t>(stages_.size());
  // With one pair of clocks on each stage: the time of a microbatch is then what waves fill.
  const double wave_s = longest_steady_s({.steady = all}, 0.0, deadline_s);
  if (wave_s < 0.0) return std::nullopt;
  std::optional<Found> best;
  Wave best_wave;
  const auto consider = [&](const Wave& wave) {
    auto found = try_wave(wave, wave_s, deadline_s);
    if (!found || (best && found->cost_j >= best->cost_j)) return;
    best = std::move(found);
    best_wave = wave;
  };
  consider({.steady = all});
  for (std::uint32_t period = 2; period <= longest_period; ++period)
    for (std::uint32_t lending = 0; lending <= most_lending; ++lending)
      consider({.lending = lending, .period = period});
  Wave around = best_wave;
  for (std::uint32_t steady = 1; steady <= most_steady && around.period > 1; ++steady)
    for (std::uint32_t lending = 0; lending <= most_lending; ++lending)
      consider({.steady = steady, .lending = lending, .period = around.period});
  around = best_wave;
  for (std::uint32_t ends = 1; ends <= most_fast_ends; ++ends) {
    for (std::uint32_t phase = 0; phase < around.period; ++phase) {
      Wave wave = around;
      wave.fast_ends = ends;
      wave.phase = phase;
      if (ends != around.fast_ends || phase != around.phase) consider(wave);
    }
  }
  if (!best) return std::nullopt;
  return std::move(best->plan);
}

}  // namespace rubato
