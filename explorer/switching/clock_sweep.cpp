#include "explorer/switching/clock_sweep.hpp"

#include <algorithm>

namespace rubato {

namespace {

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
      clocks_(priced.clocks().size()),
      size_(priced.sequence().size()),
      kinds_(priced.sequence().kinds().size()),
      direction_(direction),
      record_(record),
      initial_(std::move(initial)),
      open_(initial_),
      open_step_(initial_.size(), 0),
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
    std::vector<double> exempt_values = std::move(windows_[0].value);
    exempt_values.resize(initial_.size(), infinity);
    dwell_.emplace(windows_[0].least_s, std::move(exempt_values));
    windows_.clear();
  }
  if (simple_ || dwell_) {
    // Backwards, the change leads into the run that is being left.
    const std::span<const double> into = priced.into(0);
    begun_.assign(into.begin(), into.end());
    ended_.assign(into.size(), infinity);
    std::fill_n(ended_.begin(), clocks_, 0.0);
    if (direction == Direction::backward) std::swap(begun_, ended_);
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

void ClockSweep::step() { one_step(true); }

void ClockSweep::one_step(bool keep_open) {
  const std::size_t position = direction_ == Direction::forward ? step_ : size_ - 1 - step_;
  const std::size_t row = priced_.sequence().rows()[position];
  if (simple_ || dwell_) {
    step_rows(row, keep_open);
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

void ClockSweep::step_rows(std::size_t row, bool keep_open) {
  LaunchRows launch{.step = static_cast<std::int64_t>(step_),
                    .best = least_.value,
                    .begun = begun_.data(),
                    .costs = priced_.row(row).data(),
                    .times_s = priced_.times_s(row).data(),
                    .ended = ended_.data()};
  if (record_ && step_ > 0) {
    const std::int64_t start = dwell_ ? dwell_->start(least_.clock) : open_step_[least_.clock];
    winners_.push_back(
        {static_cast<std::uint32_t>(start), static_cast<std::uint16_t>(least_.clock), 0});
  }
  if (simple_ || keep_open) {
    const OpenRows open{open_.size(), open_.data(), open_step_.data()};
    least_ = clock_loops().back().any_length(open, launch);
  }
  if (!dwell_) return;
  if (step_ == 0) {
    launch.best = 0.0;
    launch.begun = initial_.data();
  }
  least_ = dwell_->step(launch);
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
    const std::span<const std::uint32_t> group = priced_.groups(q);
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
    const std::size_t group = priced_.groups(q)[clock];
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
  const std::span<const std::uint32_t> rows = priced.sequence().rows();
  const double *costs = priced.row(row).data(), *times_s = priced.times_s(row).data();
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
        waiting_s -= priced.times_s(begin_row)[c];
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
    runs.push_back({priced_.clocks()[last.clock], end - last.step});
    if (last.step == 0) break;
    end = last.step;
    const std::size_t group = priced_.groups(last.kind)[last.clock];
    last = winner(last.step, first_group_[last.kind] + group);
  }
  std::ranges::reverse(runs);
  return runs;
}

}  // namespace rubato
