#include "explorer/switching/launch_dp.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "explorer/switching/clock_sweep.hpp"

namespace rubato {

namespace {

std::vector<std::uint32_t> all_clocks(const LaunchSequence& sequence) {
  std::vector<std::uint32_t> clocks(sequence.clocks());
  std::iota(clocks.begin(), clocks.end(), 0U);
  return clocks;
}

}  // namespace

PricedSequence::PricedSequence(const LaunchSequence& sequence, Price price)
    : PricedSequence(sequence, price, all_clocks(sequence)) {}

PricedSequence::PricedSequence(const LaunchSequence& sequence, Price price,
                               std::vector<std::uint32_t> clocks)
    : sequence_(&sequence), price_(price), clocks_(std::move(clocks)) {
  const ProfileTable& table = sequence.problem().per_launch;
  rows_.reserve(table.rows() * clocks_.size());
  times_s_.reserve(table.rows() * clocks_.size());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const std::uint32_t clock : clocks_) {
      times_s_.push_back(table.times_s(row)[clock]);
      rows_.push_back(price.of({times_s_.back(), table.energies_j(row)[clock]}));
    }
  }
  price_changes();
}

PricedSequence::PricedSequence(const LaunchSequence& sequence, std::vector<double> launch_costs,
                               std::vector<double> change_w)
    : sequence_(&sequence),
      clocks_(all_clocks(sequence)),
      rows_(std::move(launch_costs)),
      change_w_(std::move(change_w)) {
  assert(rows_.size() == sequence.problem().per_launch.rows() * clocks_.size());
  assert(change_w_.size() == sequence.size());
  price_changes();
}

void PricedSequence::price_changes() {
  for (const ChangeKind& kind : sequence_->kinds()) {
    for (const std::uint32_t clock : clocks_) {
      into_.push_back(price_.of(kind.into[clock]));
      groups_.push_back(kind.group_of_clock[clock]);
    }
  }
}

std::vector<std::uint32_t> useful_clocks(const LaunchSequence& sequence, Price price) {
  std::vector<std::uint32_t> useful = all_clocks(sequence);
  if (sequence.kinds().size() > 1 || sequence.kinds()[0].groups > 1) return useful;
  const PricedSequence priced(sequence, price);
  const std::span<const double> into = priced.into(0);
  const bool any_length = sequence.kinds()[0].least_run_s == 0.0;
  const std::size_t rows = sequence.problem().per_launch.rows();
  std::size_t decisive = 0;  // a row that ruled out the last clock often rules out the next
  const auto stands_in = [&](std::uint32_t a, std::uint32_t b) {
    const double dearer = std::max(into[a] - into[b], 0.0);
    for (std::size_t i = 0; i < rows; ++i, decisive = (decisive + 1) % rows) {
      const std::span<const double> costs = priced.row(decisive),
                                    times_s = priced.times_s(decisive);
      if (costs[a] + dearer > costs[b] || (!any_length && times_s[a] < times_s[b])) return false;
    }
    return true;
  };
  // A clock that is left out stands in for no other: the one that replaces it does so instead.
  std::vector<bool> left_out(useful.size(), false);
  for (const std::uint32_t b : useful) {
    left_out[b] = std::ranges::any_of(
        useful, [&](std::uint32_t a) { return a != b && !left_out[a] && stands_in(a, b); });
  }
  std::erase_if(useful, [&](std::uint32_t clock) { return left_out[clock]; });
  return useful;
}

PricedRuns cheapest_open(const PricedSequence& priced, bool first_of_any_length) {
  ClockSweep sweep(priced, first_of_any_length);
  sweep.run_to_end();
  std::size_t last = 0;
  for (std::size_t c = 1; c < priced.clocks().size(); ++c) {
    if (sweep.open(c) < sweep.open(last)) last = c;
  }
  return {sweep.open(last), sweep.open_runs(last)};
}

std::vector<ClockRun> closed(const LaunchSequence& sequence, std::vector<ClockRun> runs) {
  while (runs.size() > 1 && !iteration_cost(sequence, runs)) {
    const std::size_t launches = runs.back().launches;
    runs.pop_back();
    runs.back().launches += launches;
  }
  return runs;
}

}  // namespace rubato
