#include "explorer/switching/dwell_window.hpp"

#include <algorithm>

namespace rubato {

namespace {

// Sums are begun anew so often that they do not lose digits.
constexpr std::int64_t steps_of_sums = 1024;

}  // namespace

DwellWindow::DwellWindow(double least_s, std::vector<double> values, const ClockLoops& loops)
    : loops_(&loops),
      least_s_(least_s),
      value_(std::move(values)),
      start_(value_.size(), 0),
      total_s_(value_.size(), 0.0),
      total_cost_(value_.size(), 0.0),
      oldest_of_((value_.size() + WaitingRows::band - 1) / WaitingRows::band, 0) {}

double DwellWindow::memory_bytes(double least_s, double mean_s, std::size_t clocks) {
  // The vector doubles, and waiting starts are copied then.
  constexpr double spare = 4.0;
  return spare * (least_s / mean_s + 1.0) * 2.0 * sizeof(double) * static_cast<double>(clocks);
}

WaitingRows DwellWindow::rows() {
  return {.ready = {value_.size(), value_.data(), start_.data()},
          .total_s = total_s_.data(),
          .total_cost = total_cost_.data(),
          .waiting = waiting_.data(),
          .capacity = capacity_,
          .oldest_of = oldest_of_.data(),
          .least_s = least_s_};
}

void DwellWindow::make_room() {
  if (static_cast<std::size_t>(next_ - oldest_) < capacity_) return;
  constexpr std::size_t least_capacity = 16;
  const WaitingRows before = rows();
  const std::size_t row = 2 * value_.size();
  std::vector<double> wider(std::max(2 * capacity_, least_capacity) * row);
  std::swap(wider, waiting_);  // what was there is in `wider` until the end
  capacity_ = waiting_.size() / row;
  for (std::int64_t start = oldest_; start < next_; ++start)
    std::copy_n(before.begin_s(start), row, rows().begin_s(start));
}

void DwellWindow::restart_sums() {
  const WaitingRows all = rows();
  for (std::size_t c = 0; c < value_.size(); ++c) {
    for (std::int64_t start = oldest_; start < next_; ++start) {
      all.begin_s(start)[c] -= total_s_[c];
      all.worth(start)[c] += total_cost_[c];
    }
    value_[c] += total_cost_[c];
  }
  std::ranges::fill(total_s_, 0.0);
  std::ranges::fill(total_cost_, 0.0);
}

LeastValue DwellWindow::step(const LaunchRows& launch) {
  next_ = launch.step;
  if (next_ % steps_of_sums == 0) restart_sums();
  make_room();
  const LeastValue least = loops_->some_length(rows(), launch);
  oldest_ = std::ranges::min(oldest_of_);
  ++next_;
  return least;
}

void DwellWindow::open_runs(std::span<double> value, std::span<std::int64_t> start) {
  const WaitingRows all = rows();
  for (std::size_t c = 0; c < value_.size(); ++c) {
    double best = value_[c];
    start[c] = start_[c];
    for (std::int64_t s = oldest_; s < next_; ++s) {
      if (all.worth(s)[c] >= best) continue;
      best = all.worth(s)[c];
      start[c] = s;
    }
    value[c] = best + total_cost_[c];
  }
}

}  // namespace rubato
