#include "explorer/launch_dp.hpp"

#include <algorithm>

#include "explorer/clock_sweep.hpp"

namespace rubato {

namespace {

constexpr double infinity = ClockSweep::infinity;

std::vector<double> only(std::size_t clocks, std::optional<std::size_t> first) {
  std::vector<double> initial(clocks, 0.0);
  if (first) {
    std::ranges::fill(initial, infinity);
    initial[*first] = 0.0;
  }
  return initial;
}

// Value at the end of an iteration: nothing, or the change back.
std::vector<double> change_back(const PricedSequence& priced, std::size_t first) {
  const LaunchSequence& sequence = priced.sequence();
  std::vector<double> values(sequence.clocks(), 0.0);
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (c == first) continue;
    values[c] = priced.into(sequence.kind_position(c, first))[first];
  }
  return values;
}

}  // namespace

PricedSequence::PricedSequence(const LaunchSequence& sequence, Price price)
    : sequence_(&sequence), price_(price), clocks_(sequence.clocks()) {
  const ProfileTable& table = sequence.problem().per_launch;
  rows_.reserve(table.rows() * clocks_);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < clocks_; ++c)
      rows_.push_back(price.of({table.times_s(row)[c], table.energies_j(row)[c]}));
  }
  for (const ChangeKind& kind : sequence.kinds()) {
    for (const Cost& cost : kind.into) into_.push_back(price.of(cost));
  }
}

PricedRuns cheapest_open(const PricedSequence& priced, std::optional<std::size_t> first) {
  ClockSweep sweep(priced, Direction::forward, only(priced.sequence().clocks(), first), {}, true);
  sweep.run_to_end();
  std::size_t last = 0;
  for (std::size_t c = 1; c < priced.sequence().clocks(); ++c) {
    if (sweep.open(c) < sweep.open(last)) last = c;
  }
  return {sweep.open(last), sweep.open_runs(last)};
}

PricedRuns cheapest_round(const PricedSequence& priced, std::size_t first) {
  const LaunchSequence& sequence = priced.sequence();
  ClockSweep sweep(priced, Direction::forward, only(sequence.clocks(), first), {}, true);
  sweep.run_to_end();
  const std::vector<double> back = change_back(priced, first);
  double best = sweep.open(first);
  std::size_t last = first;
  for (std::size_t c = 0; c < sequence.clocks(); ++c) {
    if (c == first) continue;
    const double value = sweep.closable(sequence.kind_position(c, first), c) + back[c];
    if (!(value < best)) continue;
    best = value;
    last = c;
  }
  return {best, last == first ? sweep.open_runs(last)
                              : sweep.closable_runs(sequence.kind_position(last, first), last)};
}

std::vector<double> bounds_by_first_clock(const PricedSequence& priced) {
  const std::size_t clocks = priced.sequence().clocks();
  ClockSweep sweep(priced, Direction::backward, std::vector<double>(clocks, 0.0),
                   std::vector<bool>(clocks, true), false);
  sweep.run_to_end();
  std::vector<double> bounds(clocks);
  for (std::size_t c = 0; c < clocks; ++c) bounds[c] = sweep.open(c);
  return bounds;
}

std::vector<double> cost_to_go(const PricedSequence& priced, std::size_t first) {
  const LaunchSequence& sequence = priced.sequence();
  const std::size_t clocks = sequence.clocks();
  std::vector<bool> exempt(clocks, false);
  exempt[first] = true;
  ClockSweep sweep(priced, Direction::backward, change_back(priced, first), exempt, false);
  std::vector<double> values(sequence.size() * clocks);
  for (std::size_t position = sequence.size(); position-- > 0;) {
    sweep.step();
    for (std::size_t c = 0; c < clocks; ++c) values[position * clocks + c] = sweep.open(c);
  }
  return values;
}

}  // namespace rubato
