#include "explorer/switching/clock_sweep.hpp"

#include <algorithm>

namespace rubato {

ClockSweep::ClockSweep(const PricedSequence& priced, bool first_of_any_length)
    : priced_(priced),
      clocks_(priced.clocks().size()),
      size_(priced.sequence().size()),
      kinds_(priced.sequence().kinds().size()),
      initial_(clocks_, 0.0),
      open_(initial_),
      open_begin_(clocks_, 0) {
  read_kinds(first_of_any_length);
  alike_ = groups_ == 1;
  best_.assign(groups_, infinity);  // step 0: runs begin with `initial`
  winners_.reserve(size_ * groups_);
  winners_.resize(groups_);
}

void ClockSweep::read_kinds(bool first_of_any_length) {
  const std::span<const ChangeKind> kinds = priced_.sequence().kinds();
  std::vector<double> lengths_s;
  for (std::size_t q = 0; q < kinds_; ++q) {
    for (const std::uint32_t group : priced_.groups(q))
      group_.push_back(static_cast<std::uint32_t>(groups_) + group);
    groups_ += kinds[q].groups;
    const auto same = std::ranges::find(lengths_s, kinds[q].least_run_s);
    window_of_kind_.push_back(static_cast<std::size_t>(same - lengths_s.begin()));
    if (same == lengths_s.end()) lengths_s.push_back(kinds[q].least_run_s);
  }
  if (lengths_s == std::vector{0.0}) return;
  const std::vector<double> none(clocks_, infinity);
  for (const double least_s : lengths_s)
    windows_.emplace_back(least_s, first_of_any_length ? initial_ : none);
}

RunBegins ClockSweep::begins(std::span<const double> best, std::size_t first_step) const {
  return {.initial = initial_.data(),
          .best = best.data(),
          .first_step = static_cast<std::int64_t>(first_step),
          .into = priced_.into(0).data(),
          .group = group_.data(),
          .clocks = clocks_,
          .kinds = static_cast<std::int64_t>(kinds_),
          .groups = groups_};
}

LaunchList ClockSweep::launches() const {
  return {.first = priced_.sequence().rows().data(),
          .costs = priced_.row(0).data(),
          .times_s = priced_.times_s(0).data(),
          .clocks = clocks_};
}

RunStart ClockSweep::run_start(std::int64_t label, std::size_t clock) const {
  const auto kinds = static_cast<std::int64_t>(kinds_);
  // A division for every launch takes noticeable time; with one kind there is none.
  const auto step = static_cast<std::uint32_t>(kinds == 1 ? label : label / kinds);
  const auto kind = static_cast<std::uint16_t>(kinds == 1 ? 0 : label % kinds);
  return {step, static_cast<std::uint16_t>(clock), kind};
}

void ClockSweep::step() {
  if (step_ > 0) choose_best_before();
  if (follow_open_) go_on_or_begin();
  const auto step = static_cast<std::int64_t>(step_);
  for (DwellWindow& window : windows_) least_ = window.step(launches(), begins(), step);
  ++step_;
}

// Chooses for each group the run from which a change before this step costs least.
void ClockSweep::choose_best_before() {
  if (windows_.empty()) {  // no start waits, so only this step's values are needed
    best_.clear();
    first_best_step_ = step_;
  }
  if (alike_) {
    best_.push_back(least_.value + priced_.before(0, step_));
    const DwellWindow* window = window_of(0);
    const std::size_t c = least_.clock;
    winners_.push_back(run_start(window == nullptr ? open_begin_[c] : window->begin(c), c));
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
      const std::size_t i = q * clocks_ + c;
      const double value = window == nullptr ? open_[c] : window->value(c);
      if (!(value < best_[first + group_[i]])) continue;
      best_[first + group_[i]] = value;
      starts[group_[i]] = run_start(window == nullptr ? open_begin_[c] : window->begin(c), c);
    }
  }
  std::size_t row = first;
  for (std::size_t q = 0; q < kinds_; ++q) {
    const double before = priced_.before(q, step_);
    for (std::uint32_t g = 0; g < priced_.sequence().kinds()[q].groups; ++g) best_[row++] += before;
  }
  winners_.insert(winners_.end(), starts.begin(), starts.end());
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
  const double* costs = all.costs + all.row(step);
  LeastValue least;
  for (std::size_t c = 0; c < clocks_; ++c) {
    const RunBegins::Begin begun = begins.at(step, c);
    if (begun.value < open_[c]) {
      open_[c] = begun.value;
      open_begin_[c] = begun.label;
    }
    open_[c] += costs[c];
    if (open_[c] < least.value) least = {open_[c], c};
  }
  least_ = least;
}

std::vector<ClockRun> ClockSweep::open_runs(std::size_t clock) const {
  return trace_back(run_start(open_begin_[clock], clock));
}

std::vector<ClockRun> ClockSweep::trace_back(RunStart last) const {
  std::vector<ClockRun> runs;
  std::size_t end = size_;
  while (true) {
    runs.push_back({priced_.clocks()[last.clock], end - last.step});
    if (last.step == 0) break;
    end = last.step;
    last = winner(last.step, group_[last.kind * clocks_ + last.clock]);
  }
  std::ranges::reverse(runs);
  return runs;
}

}  // namespace rubato
