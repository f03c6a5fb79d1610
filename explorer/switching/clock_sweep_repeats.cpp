// The part of ClockSweep that leaves out repeats.

#include <algorithm>
#include <cmath>

#include "explorer/switching/clock_sweep.hpp"

namespace rubato {

void ClockSweep::run_to_end() {
  // At the end the values of open runs follow from a window: no need to keep them at each step.
  follow_open_ = !alike_ || windows_.empty();
  for (const LaunchBlock& block : priced_.sequence().blocks()) {
    State before;
    for (std::size_t repeat = 1; repeat <= block.repeats; ++repeat) {
      for (std::size_t i = 0; i < block.launches; ++i) step();
      if (block.repeats - repeat < 2) continue;  // nothing to gain
      // The first repeat begins after something else: the second and the third are compared.
      if (repeat > 2 && repeats(before, block.launches)) {
        const std::size_t left = block.repeats - repeat;
        skip(before, block.launches, left);
        repeat += left;
      } else {
        before = state();
      }
    }
  }
  if (follow_open_) return;
  windows_.front().open_runs(launches(), begins(), static_cast<std::int64_t>(step_), open_,
                             open_begin_);
}

ClockSweep::State ClockSweep::state() const {
  return {.step = step_,
          .base = base(),
          .open = open_,
          .open_begin = open_begin_,
          .windows = windows_,
          .best = best_,
          .first_best_step = first_best_step_};
}

// A value that grows by the cost of a repeat with every repeat.
double ClockSweep::base() const { return alike_ ? least_.value : *std::ranges::min_element(open_); }

// Whether the last repeat left everything as the one before it did: starts later by a repeat, all
// values higher by the same amount. Then the next repeat will do so too.
bool ClockSweep::repeats(const State& before, std::size_t block) const {
  const double shift = base() - before.base;
  // Both infinite, or apart by `shift` up to the rounding of a repeat's sums.
  const auto apart = [shift](double a, double b) {
    constexpr double rounding = 1e-10;
    if (std::isinf(a) || std::isinf(b)) return a == b;
    return std::abs(b - a - shift) <= rounding * std::abs(shift);
  };
  const auto later = static_cast<std::int64_t>(block), kinds = static_cast<std::int64_t>(kinds_);
  for (std::size_t c = 0; follow_open_ && c < clocks_; ++c) {
    if (!apart(before.open[c], open_[c]) ||
        !label_repeats(before.open_begin[c], open_begin_[c], kinds, later))
      return false;
  }
  const RunBegins begins_before = begins(before.best, before.first_best_step);
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    if (!windows_[w].repeats(before.windows[w], launches(), begins_before, begins(),
                             static_cast<std::int64_t>(step_), later, apart))
      return false;
  }
  std::vector<bool> same_start;
  return winners_repeat(block, same_start);
}

// Whether the runs behind the last two repeats' changes are alike.
bool ClockSweep::winners_repeat(std::size_t block, std::vector<bool>& same_start) const {
  const std::size_t count = block * groups_;
  if (winners_.size() < 2 * count) return false;
  same_start.assign(count, false);
  const RunStart* now = winners_.data() + winners_.size() - count;
  for (std::size_t i = 0; i < count; ++i) {
    const RunStart &a = *(now + i - count), &b = now[i];
    if (a.clock != b.clock || a.kind != b.kind) return false;
    same_start[i] = a.step == b.step;
    if (!same_start[i] && a.step + block != b.step) return false;
  }
  return true;
}

void ClockSweep::skip(const State& before, std::size_t block, std::size_t count) {
  const double more = (base() - before.base) * static_cast<double>(count);
  const std::size_t steps = block * count;
  const auto launches = static_cast<std::int64_t>(steps), kinds = static_cast<std::int64_t>(kinds_);
  Skip& skipped = skips_.emplace_back(Skip{.first = step_,
                                           .steps = steps,
                                           .block = block,
                                           .first_winner = winners_.size() - block * groups_,
                                           .same_start = {}});
  (void)winners_repeat(block, skipped.same_start);
  for (std::size_t c = 0; c < clocks_; ++c) {
    open_[c] += more;
    if (open_begin_[c] != before.open_begin[c]) open_begin_[c] += launches * kinds;
  }
  for (std::size_t w = 0; w < windows_.size(); ++w)
    windows_[w].skip(before.windows[w], launches, kinds, more);
  for (double& value : best_) value += more;
  least_.value += more;
  first_best_step_ += steps;
  step_ += steps;
}

RunStart ClockSweep::winner(std::size_t step, std::size_t group) const {
  std::size_t skipped = 0;
  for (const Skip& skip : skips_) {
    if (step < skip.first) break;
    if (step < skip.first + skip.steps) {
      const std::size_t in_block = (step - skip.first) % skip.block;
      const std::size_t i = in_block * groups_ + group;
      RunStart start = winners_[skip.first_winner + i];
      // The start is as many steps later as this step is behind the one that it is like.
      if (!skip.same_start[i])
        start.step += static_cast<std::uint32_t>(step - skip.first - in_block + skip.block);
      return start;
    }
    skipped += skip.steps;
  }
  return winners_[(step - skipped) * groups_ + group];
}

}  // namespace rubato
