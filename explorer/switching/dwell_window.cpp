#include "explorer/switching/dwell_window.hpp"

#include <utility>

namespace rubato {

DwellWindow::DwellWindow(double least_s, std::vector<double> values, const ClockLoops& loops)
    : loops_(&loops),
      least_s_(least_s),
      value_(std::move(values)),
      begin_(value_.size(), 0),
      waiting_(value_.size(), 0),
      waiting_s_(value_.size(), 0.0),
      waiting_cost_(value_.size(), 0.0) {}

LeastValue DwellWindow::step(const LaunchList& launches, const RunBegins& begins, std::int64_t step,
                             const double* ended) {
  const WaitingRows rows{.ready = {value_.size(), value_.data(), begin_.data()},
                         .waiting = waiting_.data(),
                         .waiting_s = waiting_s_.data(),
                         .waiting_cost = waiting_cost_.data(),
                         .least_s = least_s_};
  return loops_->some_length(rows, launches, begins, step, ended);
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
