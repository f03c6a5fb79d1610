#include "explorer/switching/dwell_window.hpp"

#include <utility>

namespace rubato {

DwellWindow::DwellWindow(double least_s, std::vector<double> values)
    : least_s_(least_s),
      value_(std::move(values)),
      begin_(value_.size(), 0),
      waiting_(value_.size(), 0),
      waiting_s_(value_.size(), 0.0),
      waiting_cost_(value_.size(), 0.0) {}

// Each start is looked at once for each clock, when its run gets long enough there.
template <bool alike>
LeastValue DwellWindow::step_of(const LaunchList& launches, const RunBegins& begins,
                                std::int64_t step) {
  const double *costs = launches.costs, *times_s = launches.times_s, *into = begins.into;
  const std::size_t clocks = value_.size(), now = launches.row(step);
  const double least_s = least_s_;
  double *values = value_.data(), *waited_s = waiting_s_.data(),
         *waited_cost = waiting_cost_.data();
  std::int64_t *waiting = waiting_.data(), *labels = begin_.data();
  LeastValue least;
  for (std::size_t c = 0; c < clocks; ++c) {
    double value = values[c] + costs[now + c];
    double run_s = waited_s[c] + times_s[now + c];
    double run_cost = waited_cost[c] + costs[now + c];
    std::int64_t start = waiting[c];
    while (start <= step && run_s >= least_s) {
      RunBegins::Begin begun;
      if (alike && start > 0)
        begun = {begins.best[start - begins.first_step] + into[c], start};
      else
        begun = begins.at(start, c);
      if (begun.value + run_cost < value) {
        value = begun.value + run_cost;
        labels[c] = begun.label;
      }
      const std::size_t row = launches.row(start) + c;
      run_s -= times_s[row];
      run_cost -= costs[row];
      ++start;
    }
    if (start > step) run_s = run_cost = 0.0;
    waiting[c] = start;
    waited_s[c] = run_s;
    waited_cost[c] = run_cost;
    values[c] = value;
    if (value < least.value) least = {value, c};
  }
  return least;
}

LeastValue DwellWindow::step(const LaunchList& launches, const RunBegins& begins,
                             std::int64_t step) {
  return begins.alike() ? step_of<true>(launches, begins, step)
                        : step_of<false>(launches, begins, step);
}

void DwellWindow::open_runs(const LaunchList& launches, const RunBegins& begins, std::int64_t steps,
                            std::span<double> value, std::span<std::int64_t> begin) const {
  for (std::size_t c = 0; c < value_.size(); ++c) {
    value[c] = value_[c];
    begin[c] = begin_[c];
    double cost = waiting_cost_[c];
    for (std::int64_t start = waiting_[c]; start < steps; ++start) {
      const RunBegins::Begin begun = begins.at(start, c);
      if (begun.value + cost < value[c]) {
        value[c] = begun.value + cost;
        begin[c] = begun.label;
      }
      cost -= launches.costs[launches.row(start) + c];
    }
  }
}

void DwellWindow::skip(const DwellWindow& before, std::int64_t launches, std::int64_t kinds,
                       double cost) {
  for (std::size_t c = 0; c < value_.size(); ++c) {
    value_[c] += cost;
    waiting_[c] += launches;
    if (begin_[c] != before.begin_[c]) begin_[c] += launches * kinds;
  }
}

}  // namespace rubato
