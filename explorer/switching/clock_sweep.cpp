#include "explorer/switching/clock_sweep.hpp"

#include <algorithm>

namespace rubato {

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
      open_begin_(initial_.size(), 0) {
  read_kinds(exempt);
  alike_ = groups_ == 1;
  best_.assign(groups_, infinity);  // step 0: runs begin with `initial`
  if (record_) {
    winners_.reserve(size_ * groups_);
    winners_.resize(groups_);
  }
}

void ClockSweep::read_kinds(const std::vector<bool>& exempt) {
  const std::span<const ChangeKind> kinds = priced_.sequence().kinds();
  const std::size_t stride = initial_.size();
  for (std::size_t q = 0; q < kinds_; ++q) {
    const std::span<const std::uint32_t> groups = priced_.groups(q);
    for (const std::uint32_t group : groups)
      group_.push_back(static_cast<std::uint32_t>(groups_) + group);
    group_.resize((q + 1) * stride, group_.back());
    groups_ += kinds[q].groups;
    // Backwards, the change leads into the run that the sweep leaves.
    const std::span<const double> into = priced_.into(q);
    begun_.insert(begun_.end(), into.begin(), into.end());
    ended_.resize(ended_.size() + clocks_, 0.0);
    ended_.resize((q + 1) * stride, infinity);
  }
  if (direction_ == Direction::backward) std::swap(begun_, ended_);

  std::vector<double> lengths_s;
  for (const ChangeKind& kind : kinds) {
    const auto same = std::ranges::find(lengths_s, kind.least_run_s);
    window_of_kind_.push_back(static_cast<std::size_t>(same - lengths_s.begin()));
    if (same == lengths_s.end()) lengths_s.push_back(kind.least_run_s);
  }
  if (lengths_s == std::vector{0.0}) return;
  // The least length of a run depends on the change after it: backwards, the one it begins with.
  window_per_kind_ = direction_ == Direction::backward && lengths_s.size() > 1;
  if (window_per_kind_) {
    lengths_s.clear();
    for (const ChangeKind& kind : kinds) lengths_s.push_back(kind.least_run_s);
  }
  std::vector<double> values(stride, infinity);
  for (std::size_t c = 0; c < exempt.size(); ++c) {
    if (exempt[c]) values[c] = initial_[c];
  }
  for (const double least_s : lengths_s) windows_.emplace_back(least_s, values);
}

RunBegins ClockSweep::begins(std::span<const double> best, std::size_t first_step) const {
  return {.initial = initial_.data(),
          .best = best.data(),
          .first_step = static_cast<std::int64_t>(first_step),
          .into = begun_.data(),
          .group = group_.data(),
          .clocks = initial_.size(),
          .kinds = static_cast<std::int64_t>(kinds_),
          .groups = groups_};
}

RunBegins ClockSweep::window_begins(std::size_t window, RunBegins begins) const {
  if (!window_per_kind_) return begins;
  begins.into += window * begins.clocks;
  begins.group += window * begins.clocks;
  begins.kinds = 1;
  return begins;
}

LaunchList ClockSweep::launches() const {
  const std::span<const std::uint32_t> rows = priced_.sequence().rows();
  const bool forward = direction_ == Direction::forward;
  return {.first = forward ? rows.data() : rows.data() + size_ - 1,
          .next = forward ? 1 : -1,
          .costs = priced_.row(0).data(),
          .times_s = priced_.times_s(0).data(),
          .clocks = initial_.size()};
}

RunStart ClockSweep::run_start(std::int64_t label, std::size_t clock) const {
  const auto kinds = static_cast<std::int64_t>(kinds_);
  // A division for every launch takes noticeable time; with one kind there is none.
  const auto step = static_cast<std::uint32_t>(kinds == 1 ? label : label / kinds);
  const auto kind = static_cast<std::uint16_t>(kinds == 1 ? 0 : label % kinds);
  return {step, static_cast<std::uint16_t>(clock), kind};
}

double ClockSweep::closable(std::size_t kind, std::size_t clock) const {
  if (window_per_kind_) {
    double least = infinity;
    for (const DwellWindow& window : windows_) least = std::min(least, window.value(clock));
    return least;
  }
  const DwellWindow* window = window_of(kind);
  return window == nullptr ? open_[clock] : window->value(clock);
}

void ClockSweep::step() {
  if (step_ > 0) choose_best_before();
  if (follow_open_) go_on_or_begin();
  const auto step = static_cast<std::int64_t>(step_);
  for (std::size_t w = 0; w < windows_.size(); ++w)
    least_ = windows_[w].step(launches(), window_begins(w, begins()), step, ended_.data());
  ++step_;
}

// Chooses for each group the run from which a change before this step costs least.
void ClockSweep::choose_best_before() {
  if (windows_.empty()) {  // no start waits, so only this step's values are needed
    best_.clear();
    first_best_step_ = step_;
  }
  if (alike_) {
    best_.push_back(least_.value + priced_.before(0, next_launch()));
    if (record_) {
      const DwellWindow* window = window_of(0);
      const std::size_t c = least_.clock;
      winners_.push_back(run_start(window == nullptr ? open_begin_[c] : window->begin(c), c));
    }
  } else {
    choose_best_of_groups();
  }
  constexpr std::size_t tidy_every = 1024;
  if (!windows_.empty() && step_ % tidy_every == 0) forget_old_starts();
}

void ClockSweep::choose_best_of_groups() {
  const std::size_t first = best_.size();
  best_.resize(first + groups_, infinity);
  std::vector<RunStart> starts(groups_);
  for (std::size_t q = 0; q < kinds_; ++q) {
    const DwellWindow* window = window_of(q);
    for (std::size_t c = 0; c < clocks_; ++c) {
      const std::size_t i = q * initial_.size() + c;
      const double value = closable(q, c) + ended_[i];
      if (!(value < best_[first + group_[i]])) continue;
      best_[first + group_[i]] = value;
      starts[group_[i]] = run_start(window == nullptr ? open_begin_[c] : window->begin(c), c);
    }
  }
  std::size_t row = first;
  for (std::size_t q = 0; q < kinds_; ++q) {
    const double before = priced_.before(q, next_launch());
    for (std::uint32_t g = 0; g < priced_.sequence().kinds()[q].groups; ++g) best_[row++] += before;
  }
  if (record_) winners_.insert(winners_.end(), starts.begin(), starts.end());
}

void ClockSweep::forget_old_starts() {
  auto oldest = static_cast<std::int64_t>(step_);
  for (const DwellWindow& window : windows_) oldest = std::min(oldest, window.oldest());
  const auto forgotten = oldest - static_cast<std::int64_t>(first_best_step_);
  if (forgotten <= 0) return;
  best_.erase(best_.begin(), best_.begin() + forgotten * static_cast<std::ptrdiff_t>(groups_));
  first_best_step_ += static_cast<std::size_t>(forgotten);
}

// Open runs, which may have any length: at each clock the run goes on, or a cheaper one begins.
void ClockSweep::go_on_or_begin() {
  const LaunchList all = launches();
  const RunBegins begins = this->begins();
  const auto step = static_cast<std::int64_t>(step_);
  if (alike_) {
    const OpenRows open{open_.size(), open_.data(), open_begin_.data()};
    least_ = clock_loops().back().any_length(open, all, begins, step, ended_.data());
    return;
  }
  const double* costs = all.costs + all.row(step);
  for (std::size_t c = 0; c < clocks_; ++c) {
    const RunBegins::Begin begun = begins.at(step, c);
    if (begun.value < open_[c]) {
      open_[c] = begun.value;
      open_begin_[c] = begun.label;
    }
    open_[c] += costs[c];
  }
}

std::vector<ClockRun> ClockSweep::open_runs(std::size_t clock) const {
  return trace_back(run_start(open_begin_[clock], clock));
}

std::vector<ClockRun> ClockSweep::closable_runs(std::size_t kind, std::size_t clock) const {
  const DwellWindow* window = window_of(kind);
  return window == nullptr ? open_runs(clock) : trace_back(run_start(window->begin(clock), clock));
}

std::vector<ClockRun> ClockSweep::trace_back(RunStart last) const {
  std::vector<ClockRun> runs;
  std::size_t end = size_;
  while (true) {
    runs.push_back({priced_.clocks()[last.clock], end - last.step});
    if (last.step == 0) break;
    end = last.step;
    last = winner(last.step, group_[last.kind * initial_.size() + last.clock]);
  }
  std::ranges::reverse(runs);
  return runs;
}

}  // namespace rubato
