#include "explorer/clock_sweep.hpp"

#include <algorithm>

#include "explorer/wider.hpp"

namespace rubato {

namespace {

// open = min(open, best + into) + row, and where the run began.
RUBATO_WIDER void relax(std::size_t clocks, double best, const double* into, const double* row,
                        std::int64_t step, double* open, std::int64_t* began) {
  for (std::size_t c = 0; c < clocks; ++c) {
    const double changed = best + into[c];
    const bool change = changed < open[c];
    const std::int64_t all = -static_cast<std::int64_t>(change);  // stores without a branch
    began[c] = (began[c] & ~all) | (step & all);
    open[c] = (change ? changed : open[c]) + row[c];
  }
}

RUBATO_WIDER void sum(std::size_t clocks, double a, const double* b, double* sums) {
  for (std::size_t c = 0; c < clocks; ++c) sums[c] = a + b[c];
}

RUBATO_WIDER void least_of_blocks(std::size_t blocks, const double* values, double* least) {
  constexpr std::size_t width = 32;
  for (std::size_t b = 0; b < blocks; ++b) {
    const double* block = values + b * width;
    double lanes[8];
    for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] = block[lane];
    for (std::size_t i = 8; i < width; i += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane)
        lanes[lane] = block[i + lane] < lanes[lane] ? block[i + lane] : lanes[lane];
    }
    double smallest = lanes[0];
    for (std::size_t lane = 1; lane < 8; ++lane)
      smallest = lanes[lane] < smallest ? lanes[lane] : smallest;
    least[b] = smallest;
  }
}

// Position of the first least element.
std::size_t position_of_least(const std::vector<double>& values) {
  constexpr std::size_t width = 32;
  const std::size_t blocks = values.size() / width;
  thread_local std::vector<double> least;
  least.resize(blocks);
  least_of_blocks(blocks, values.data(), least.data());
  auto best = values.begin();
  if (blocks > 0) {
    const auto block = std::ranges::min_element(least);
    best = std::find(values.begin() + (block - least.begin()) * static_cast<std::ptrdiff_t>(width),
                     values.end(), *block);
  }
  const auto rest = values.begin() + static_cast<std::ptrdiff_t>(blocks * width);
  const auto in_rest = std::min_element(rest, values.end());
  if (in_rest != values.end() && *in_rest < *best) best = in_rest;
  return static_cast<std::size_t>(best - values.begin());
}

// Whether to keep waiting starts as vectors: it takes memory, and repeats are not left out.
bool pays_as_vectors(const LaunchSequence& sequence, double least_s) {
  constexpr std::size_t few_repeats = 4;
  constexpr double most_bytes = 256e6;
  if (std::ranges::any_of(sequence.blocks(),
                          [](const LaunchBlock& b) { return b.repeats >= few_repeats; }))
    return false;
  return DwellWindow::memory_bytes(least_s, sequence.mean_least_s(), sequence.clocks()) <=
         most_bytes;
}

}  // namespace

ClockSweep::ClockSweep(const PricedSequence& priced, Direction direction,
                       std::vector<double> initial, const std::vector<bool>& exempt, bool record)
    : priced_(priced),
      clocks_(priced.sequence().clocks()),
      size_(priced.sequence().size()),
      kinds_(priced.sequence().kinds().size()),
      direction_(direction),
      record_(record),
      initial_(std::move(initial)),
      open_(initial_),
      open_step_(clocks_, 0),
      open_kind_(clocks_, 0) {
  const std::span<const ChangeKind> kinds = priced.sequence().kinds();
  double shortest_s = infinity;
  for (const ChangeKind& kind : kinds) {
    first_group_.push_back(groups_);
    groups_ += kind.groups;
    shortest_s = std::min(shortest_s, kind.least_run_s);
  }
  std::vector<double> lengths_s;
  for (const ChangeKind& kind : kinds) {
    const double least_s = direction == Direction::forward ? kind.least_run_s : shortest_s;
    const auto same = std::ranges::find(lengths_s, least_s);
    window_of_kind_.push_back(static_cast<std::size_t>(same - lengths_s.begin()));
    if (same == lengths_s.end()) lengths_s.push_back(least_s);
  }
  if (lengths_s != std::vector{0.0}) {
    for (const double least_s : lengths_s) {
      Window& window = windows_.emplace_back();
      window.least_s = least_s;
      window.value.assign(clocks_, infinity);
      for (std::size_t c = 0; c < exempt.size(); ++c) {
        if (exempt[c]) window.value[c] = initial_[c];
      }
      window.start.resize(clocks_);
      for (std::size_t c = 0; c < clocks_; ++c)
        window.start[c].clock = static_cast<std::uint16_t>(c);
      window.waiting.assign(clocks_, 0);
      window.waiting_s.assign(clocks_, 0.0);
      window.waiting_value.assign(clocks_, 0.0);
    }
  }
  simple_ = kinds_ == 1 && windows_.empty() && direction == Direction::forward;
  if (groups_ == 1 && !windows_.empty() &&
      pays_as_vectors(priced.sequence(), windows_[0].least_s)) {
    dwell_.emplace(windows_[0].least_s, std::move(windows_[0].value));
    windows_.clear();
    begun_.resize(clocks_);
    changes_.assign(clocks_, 0.0);
    if (direction == Direction::forward) std::ranges::copy(priced.into(0), changes_.begin());
  }
  best_.assign(groups_, infinity);  // step 0: runs begin with `initial`
  if (record_) {
    winners_.reserve(size_ * groups_);
    winners_.resize(groups_);
  }
}

double ClockSweep::closable(std::size_t kind, std::size_t clock) const {
  if (dwell_) return dwell_->value(clock);
  const Window* window = window_of(kind);
  return window == nullptr ? open_[clock] : window->value[clock];
}

void ClockSweep::step() {
  const std::size_t position = direction_ == Direction::forward ? step_ : size_ - 1 - step_;
  const std::size_t row = priced_.sequence().rows()[position];
  if (simple_) {
    step_simple(row);
  } else if (dwell_) {
    step_dwell(row);
  } else {
    if (step_ > 0) {
      choose_best_before();
      admit();
    }
    const std::span<const double> costs = priced_.row(row);
    for (std::size_t c = 0; c < clocks_; ++c) open_[c] += costs[c];
    for (Window& window : windows_) advance(window, row);
  }
  ++step_;
}

void ClockSweep::step_simple(std::size_t row) {
  double best = infinity;
  if (step_ > 0) {
    const std::size_t from = position_of_least(open_);
    best = open_[from];
    if (record_) {
      winners_.push_back(
          {static_cast<std::uint32_t>(open_step_[from]), static_cast<std::uint16_t>(from), 0});
    }
  }
  relax(clocks_, best, priced_.into(0).data(), priced_.row(row).data(),
        static_cast<std::int64_t>(step_), open_.data(), open_step_.data());
}

// As step_simple, but a change leaves a run of some length.
void ClockSweep::step_dwell(std::size_t row) {
  double best = infinity;
  if (step_ > 0) {
    // Backwards, the change leads into the run that is being left.
    if (direction_ == Direction::forward) {
      std::ranges::fill(begun_, 0.0);
    } else {
      std::ranges::copy(priced_.into(0), begun_.begin());
    }
    dwell_->add_values(begun_);
    const std::size_t from = position_of_least(begun_);
    best = begun_[from];
    if (record_) {
      winners_.push_back(
          {static_cast<std::uint32_t>(dwell_->start(from)), static_cast<std::uint16_t>(from), 0});
    }
    sum(clocks_, best, changes_.data(), begun_.data());
  } else {
    begun_ = initial_;
  }
  const std::span<const double> costs = priced_.row(row);
  dwell_->step(static_cast<std::int64_t>(step_), begun_,
               priced_.sequence().problem().per_launch.times_s(row), costs);
  relax(clocks_, best, changes_.data(), costs.data(), static_cast<std::int64_t>(step_),
        open_.data(), open_step_.data());
}

// From which run of each group to change clocks before this step.
void ClockSweep::choose_best_before() {
  if (windows_.empty()) {  // nobody waits, so only this step's are needed
    best_.clear();
    first_best_step_ = step_;
  }
  const std::size_t first = best_.size();
  best_.resize(first + groups_, infinity);
  std::vector<RunStart> starts(groups_);
  for (std::size_t q = 0; q < kinds_; ++q) {
    const Window* window = window_of(q);
    const std::vector<std::uint32_t>& group = priced_.sequence().kinds()[q].group_of_clock;
    const std::span<const double> into = priced_.into(q);
    for (std::size_t c = 0; c < clocks_; ++c) {
      // Backwards, the change leads into the run that is being left.
      const double value = (window == nullptr ? open_[c] : window->value[c]) +
                           (direction_ == Direction::forward ? 0.0 : into[c]);
      const std::size_t g = first_group_[q] + group[c];
      if (!(value < best_[first + g])) continue;
      best_[first + g] = value;
      starts[g] = window == nullptr ? RunStart{static_cast<std::uint32_t>(open_step_[c]),
                                               static_cast<std::uint16_t>(c), open_kind_[c]}
                                    : window->start[c];
    }
  }
  if (record_) winners_.insert(winners_.end(), starts.begin(), starts.end());
  constexpr std::size_t tidy_every = 1024;
  if (!windows_.empty() && step_ % tidy_every == 0) forget_old_starts();
}

void ClockSweep::forget_old_starts() {
  std::size_t oldest = step_;
  for (const Window& window : windows_)
    oldest = std::min<std::size_t>(oldest, std::ranges::min(window.waiting));
  if (oldest <= first_best_step_) return;
  best_.erase(best_.begin(),
              best_.begin() + static_cast<std::ptrdiff_t>((oldest - first_best_step_) * groups_));
  first_best_step_ = oldest;
}

ClockSweep::Admission ClockSweep::admission(std::uint32_t step, std::size_t clock) const {
  return admission_from(best_, first_best_step_, step, clock);
}

ClockSweep::Admission ClockSweep::admission_from(std::span<const double> best_of_steps,
                                                 std::size_t first_step, std::size_t step,
                                                 std::size_t clock) const {
  if (step == 0) return {initial_[clock], 0};
  Admission least{infinity, 0};
  const double* best = best_of_steps.data() + (step - first_step) * groups_;
  for (std::size_t q = 0; q < kinds_; ++q) {
    const std::size_t group = priced_.sequence().kinds()[q].group_of_clock[clock];
    const double value = best[first_group_[q] + group] +
                         (direction_ == Direction::forward ? priced_.into(q)[clock] : 0.0);
    if (value < least.value) least = {value, static_cast<std::uint16_t>(q)};
  }
  return least;
}

void ClockSweep::admit() {
  for (std::size_t c = 0; c < clocks_; ++c) {
    const Admission begun = admission(static_cast<std::uint32_t>(step_), c);
    if (!(begun.value < open_[c])) continue;
    open_[c] = begun.value;
    open_step_[c] = static_cast<std::int64_t>(step_);
    open_kind_[c] = begun.kind;
  }
}

void ClockSweep::advance(Window& window, std::size_t row) {
  const PricedSequence& priced = priced_;
  const ProfileTable& table = priced.sequence().problem().per_launch;
  const std::span<const std::uint32_t> rows = priced.sequence().rows();
  const double *costs = priced.row(row).data(), *times_s = table.times_s(row).data();
  const bool forward = direction_ == Direction::forward, one_kind = kinds_ == 1;
  for (std::size_t c = 0; c < clocks_; ++c) {
    double value = window.value[c] + costs[c];
    double waiting_s = window.waiting_s[c] + times_s[c];
    double waiting_value = window.waiting_value[c] + costs[c];
    std::uint32_t start = window.waiting[c];
    for (; start <= step_ && waiting_s >= window.least_s; ++start) {
      const Admission begun =
          one_kind && start > 0
              ? Admission{best_[start - first_best_step_] + (forward ? priced.into(0)[c] : 0.0), 0}
              : admission(start, c);
      if (begun.value + waiting_value < value) {
        value = begun.value + waiting_value;
        window.start[c] = {start, static_cast<std::uint16_t>(c), begun.kind};
      }
      if (start == step_) {
        waiting_s = waiting_value = 0.0;
      } else {
        const std::size_t begin_row = rows[forward ? start : size_ - 1 - start];
        waiting_s -= table.times_s(begin_row)[c];
        waiting_value -= priced.row(begin_row)[c];
      }
    }
    window.value[c] = value;
    window.waiting_s[c] = waiting_s;
    window.waiting_value[c] = waiting_value;
    window.waiting[c] = start;
  }
}

std::vector<ClockRun> ClockSweep::open_runs(std::size_t clock) const {
  return trace_back({static_cast<std::uint32_t>(open_step_[clock]),
                     static_cast<std::uint16_t>(clock), open_kind_[clock]});
}

std::vector<ClockRun> ClockSweep::closable_runs(std::size_t kind, std::size_t clock) const {
  if (dwell_) {
    return trace_back(
        {static_cast<std::uint32_t>(dwell_->start(clock)), static_cast<std::uint16_t>(clock), 0});
  }
  const Window* window = window_of(kind);
  return window == nullptr ? open_runs(clock) : trace_back(window->start[clock]);
}

std::vector<ClockRun> ClockSweep::trace_back(RunStart last) const {
  std::vector<ClockRun> runs;
  std::size_t end = size_;
  while (true) {
    runs.push_back({last.clock, end - last.step});
    if (last.step == 0) break;
    end = last.step;
    const std::size_t group = priced_.sequence().kinds()[last.kind].group_of_clock[last.clock];
    last = winner(last.step, first_group_[last.kind] + group);
  }
  std::ranges::reverse(runs);
  return runs;
}

}  // namespace rubato
