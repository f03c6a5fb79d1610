// The part of ClockSweep that leaves out repeats.

#include <algorithm>
#include <cmath>

#include "explorer/switching/clock_sweep.hpp"

namespace rubato {

namespace {

// Both infinite, or apart by `shift` up to the rounding of a repeat's sums.
bool apart_by(double shift, double before, double after) {
  constexpr double rounding = 1e-10;
  if (std::isinf(before) || std::isinf(after)) return before == after;
  return std::abs(after - before - shift) <= rounding * std::abs(shift);
}

}  // namespace

void ClockSweep::run_to_end() {
  std::vector<LaunchBlock> blocks(priced_.sequence().blocks().begin(),
                                  priced_.sequence().blocks().end());
  if (direction_ == Direction::backward) std::ranges::reverse(blocks);
  for (const LaunchBlock& block : blocks) {
    State before;
    for (std::size_t repeat = 1; repeat <= block.repeats; ++repeat) {
      for (std::size_t i = 0; i < block.launches; ++i) one_step(false);
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
  if (dwell_) dwell_->open_runs(open_, open_step_);
}

ClockSweep::State ClockSweep::state() const {
  return {.step = step_,
          .base = *std::ranges::min_element(open_),
          .open = open_,
          .open_step = open_step_,
          .open_kind = open_kind_,
          .windows = windows_,
          .best = best_,
          .first_best_step = first_best_step_};
}

// Whether the last repeat left everything as the one before it did, later by a repeat and dearer
// by the same amount. Then so will the next.
bool ClockSweep::repeats(const State& before, std::size_t block) const {
  const double shift = *std::ranges::min_element(open_) - before.base;
  const auto later = [&](std::uint64_t old_step, std::uint64_t new_step) {
    return new_step == old_step + block || new_step == old_step;
  };
  for (std::size_t c = 0; c < clocks_; ++c) {
    if (!apart_by(shift, before.open[c], open_[c]) || before.open_kind[c] != open_kind_[c] ||
        !later(static_cast<std::uint64_t>(before.open_step[c]),
               static_cast<std::uint64_t>(open_step_[c])))
      return false;
  }
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    const Window &a = before.windows[w], &b = windows_[w];
    for (std::size_t c = 0; c < clocks_; ++c) {
      // A start that waits for ever is one of the sequence's begin.
      if (!apart_by(shift, a.value[c], b.value[c]) || b.waiting[c] != a.waiting[c] + block ||
          a.start[c].kind != b.start[c].kind || !later(a.start[c].step, b.start[c].step))
        return false;
      if (b.waiting[c] == step_) continue;
      for (std::size_t s = a.waiting[c]; s < before.step; ++s) {
        const Admission old = admission_from(before.best, before.first_best_step, s, c);
        if (!apart_by(shift, old.value, admission(static_cast<std::uint32_t>(s + block), c).value))
          return false;
      }
    }
  }
  std::vector<bool> same_start;
  return !record_ || winners_repeat(block, same_start);
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
  const double shift = *std::ranges::min_element(open_) - before.base;
  const double more = shift * static_cast<double>(count);
  const std::size_t steps = block * count;
  if (record_) {
    Skip& skipped = skips_.emplace_back(Skip{.first = step_,
                                             .steps = steps,
                                             .block = block,
                                             .first_winner = winners_.size() - block * groups_,
                                             .same_start = {}});
    (void)winners_repeat(block, skipped.same_start);
  }
  for (std::size_t c = 0; c < clocks_; ++c) {
    open_[c] += more;
    if (open_step_[c] != before.open_step[c]) open_step_[c] += static_cast<std::int64_t>(steps);
  }
  for (std::size_t w = 0; w < windows_.size(); ++w) {
    Window& window = windows_[w];
    for (std::size_t c = 0; c < clocks_; ++c) {
      window.value[c] += more;
      window.waiting[c] += static_cast<std::uint32_t>(steps);
      if (window.start[c].step != before.windows[w].start[c].step)
        window.start[c].step += static_cast<std::uint32_t>(steps);
    }
  }
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
      // As many repeats later as this step is after its like.
      if (!skip.same_start[i])
        start.step += static_cast<std::uint32_t>(step - skip.first - in_block + skip.block);
      return start;
    }
    skipped += skip.steps;
  }
  return winners_[(step - skipped) * groups_ + group];
}

}  // namespace rubato
