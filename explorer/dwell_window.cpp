#include "explorer/dwell_window.hpp"

#include <algorithm>

#include "explorer/wider.hpp"

namespace rubato {

namespace {

// Clocks of a band come of age at almost the same launch.
constexpr std::size_t band = 64;

// Sums are begun anew so often that they do not lose digits.
constexpr std::int64_t steps_of_sums = 1024;

// Takes a start where the run since is long enough; returns at how many clocks it is.
RUBATO_WIDER std::int64_t take(std::size_t clocks, double least_s, const double* total_s,
                               const double* begin_s, const double* worth, std::int64_t step,
                               double* value, std::int64_t* start) {
  std::int64_t ready = 0;
  for (std::size_t c = 0; c < clocks; ++c) {
    const bool long_enough = total_s[c] - begin_s[c] >= least_s;
    const bool better = long_enough & (worth[c] < value[c]);
    const std::int64_t all = -static_cast<std::int64_t>(better);  // stores without a branch
    start[c] = (start[c] & ~all) | (step & all);
    value[c] = better ? worth[c] : value[c];
    ready += static_cast<std::int64_t>(long_enough);
  }
  return ready;
}

RUBATO_WIDER void add(std::size_t clocks, const double* more, double* sums) {
  for (std::size_t c = 0; c < clocks; ++c) sums[c] += more[c];
}

RUBATO_WIDER void add_two(std::size_t clocks, const double* a, const double* b, double* sums) {
  for (std::size_t c = 0; c < clocks; ++c) sums[c] += a[c] + b[c];
}

RUBATO_WIDER void subtract(std::size_t clocks, const double* from, const double* less, double* to) {
  for (std::size_t c = 0; c < clocks; ++c) to[c] = from[c] - less[c];
}

}  // namespace

DwellWindow::DwellWindow(double least_s, std::vector<double> values)
    : least_s_(least_s),
      value_(std::move(values)),
      start_(value_.size(), 0),
      total_s_(value_.size(), 0.0),
      total_cost_(value_.size(), 0.0),
      oldest_of_((value_.size() + band - 1) / band, 0) {}

double DwellWindow::memory_bytes(double least_s, double mean_s, std::size_t clocks) {
  // The vector doubles, and waiting starts are copied then.
  constexpr double spare = 4.0;
  return spare * (least_s / mean_s + 1.0) * 2.0 * sizeof(double) * static_cast<double>(clocks);
}

void DwellWindow::add_values(std::span<double> sums) const {
  add_two(sums.size(), value_.data(), total_cost_.data(), sums.data());
}

void DwellWindow::make_room(std::int64_t step) {
  if (static_cast<std::size_t>(step - oldest_) < capacity_) return;
  const std::size_t row = 2 * value_.size(), before = capacity_;
  constexpr std::size_t least_capacity = 16;
  std::vector<double> old(std::max(2 * before, least_capacity) * row);
  std::swap(old, waiting_);
  capacity_ = waiting_.size() / row;
  for (std::int64_t s = oldest_; s < step; ++s) {
    const auto from =
        old.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(s) % before * row);
    std::copy(from, from + static_cast<std::ptrdiff_t>(row), begin_s(s));
  }
}

void DwellWindow::restart_sums(std::int64_t step) {
  const std::size_t clocks = value_.size();
  for (std::int64_t s = oldest_; s < step; ++s) {
    subtract(clocks, begin_s(s), total_s_.data(), begin_s(s));
    add(clocks, total_cost_.data(), worth(s));
  }
  add(clocks, total_cost_.data(), value_.data());
  std::ranges::fill(total_s_, 0.0);
  std::ranges::fill(total_cost_, 0.0);
}

void DwellWindow::step(std::int64_t step, std::span<const double> begun,
                       std::span<const double> times_s, std::span<const double> costs) {
  const std::size_t clocks = value_.size();
  if (step % steps_of_sums == 0) restart_sums(step);
  make_room(step);
  std::ranges::copy(total_s_, begin_s(step));
  subtract(clocks, begun.data(), total_cost_.data(), worth(step));
  add(clocks, times_s.data(), total_s_.data());
  add(clocks, costs.data(), total_cost_.data());
  for (std::size_t b = 0; b < oldest_of_.size(); ++b) {
    const std::size_t first = b * band, count = std::min(band, clocks - first);
    for (std::int64_t s = oldest_of_[b]; s <= step; ++s) {
      const std::int64_t ready =
          take(count, least_s_, total_s_.data() + first, begin_s(s) + first, worth(s) + first, s,
               value_.data() + first, start_.data() + first);
      if (ready == 0) break;  // nor are later starts
      if (ready == static_cast<std::int64_t>(count)) oldest_of_[b] = s + 1;
    }
  }
  oldest_ = std::ranges::min(oldest_of_);
}

}  // namespace rubato
