#include "explorer/switching/launch_dp.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "explorer/switching/clock_sweep.hpp"

namespace rubato {

namespace {

constexpr double infinity = ClockSweep::infinity;

// 0 at the clocks to begin with, infinity elsewhere. Shape [padded clocks].
std::vector<double> only(const PricedSequence& priced, std::optional<std::size_t> first) {
  const std::size_t clocks = priced.clocks().size();
  std::vector<double> initial(padded(clocks), infinity);
  if (first) {
    initial[*first] = 0.0;
  } else {
    std::fill_n(initial.begin(), clocks, 0.0);
  }
  return initial;
}

// Position of the kind of a change from one clock to another.
std::size_t kind_of(const PricedSequence& priced, std::size_t from, std::size_t to) {
  return priced.sequence().kind_position(priced.clocks()[from], priced.clocks()[to]);
}

// Cost at the end of an iteration: 0 at the first clock, elsewhere that of the change back to it.
// Shape [padded clocks].
std::vector<double> change_back(const PricedSequence& priced, std::size_t first) {
  std::vector<double> values = only(priced, {});
  for (std::size_t c = 0; c < priced.clocks().size(); ++c) {
    if (c == first) continue;
    const std::size_t kind = kind_of(priced, c, first);
    values[c] = priced.into(kind)[first] + priced.before(kind, 0);
  }
  return values;
}

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
    : sequence_(&sequence),
      price_(price),
      clocks_(std::move(clocks)),
      stride_(padded(clocks_.size())) {
  const ProfileTable& table = sequence.problem().per_launch;
  rows_.reserve(table.rows() * stride_);
  times_s_.reserve(table.rows() * stride_);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const std::uint32_t clock : clocks_) {
      times_s_.push_back(table.times_s(row)[clock]);
      rows_.push_back(price.of({times_s_.back(), table.energies_j(row)[clock]}));
    }
    times_s_.resize((row + 1) * stride_, times_s_.back());
    rows_.resize((row + 1) * stride_, rows_.back());
  }
  price_changes();
}

PricedSequence::PricedSequence(const LaunchSequence& sequence, std::span<const double> launch_costs,
                               std::vector<double> change_w)
    : sequence_(&sequence),
      clocks_(all_clocks(sequence)),
      stride_(padded(clocks_.size())),
      change_w_(std::move(change_w)) {
  const ProfileTable& table = sequence.problem().per_launch;
  assert(launch_costs.size() == table.rows() * clocks_.size());
  assert(change_w_.size() == sequence.size());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::span<const double> times_s = table.times_s(row);
    const std::span<const double> costs =
        launch_costs.subspan(row * clocks_.size(), clocks_.size());
    times_s_.insert(times_s_.end(), times_s.begin(), times_s.end());
    rows_.insert(rows_.end(), costs.begin(), costs.end());
    times_s_.resize((row + 1) * stride_, times_s_.back());
    rows_.resize((row + 1) * stride_, rows_.back());
  }
  price_changes();
}

void PricedSequence::price_changes() {
  for (const ChangeKind& kind : sequence_->kinds()) {
    for (const std::uint32_t clock : clocks_) {
      into_.push_back(price_.of(kind.into[clock]));
      groups_.push_back(kind.group_of_clock[clock]);
    }
    into_.resize(padded(into_.size()), infinity);
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

PricedRuns cheapest_open(const PricedSequence& priced, std::optional<std::size_t> first,
                         bool first_of_any_length) {
  const std::vector<bool> exempt(first_of_any_length ? priced.clocks().size() : 0, true);
  ClockSweep sweep(priced, Direction::forward, only(priced, first), exempt, true);
  sweep.run_to_end();
  std::size_t last = 0;
  for (std::size_t c = 1; c < priced.clocks().size(); ++c) {
    if (sweep.open(c) < sweep.open(last)) last = c;
  }
  return {sweep.open(last), sweep.open_runs(last)};
}

PricedRuns cheapest_round(const PricedSequence& priced, std::size_t first) {
  ClockSweep sweep(priced, Direction::forward, only(priced, first), {}, true);
  sweep.run_to_end();
  const std::vector<double> back = change_back(priced, first);
  double best = sweep.open(first);
  std::size_t last = first;
  for (std::size_t c = 0; c < priced.clocks().size(); ++c) {
    if (c == first) continue;
    const double value = sweep.closable(kind_of(priced, c, first), c) + back[c];
    if (!(value < best)) continue;
    best = value;
    last = c;
  }
  return {best, last == first ? sweep.open_runs(last)
                              : sweep.closable_runs(kind_of(priced, last, first), last)};
}

std::vector<double> bounds_by_first_clock(const PricedSequence& priced) {
  const std::size_t clocks = priced.clocks().size();
  const std::span<const ChangeKind> kinds = priced.sequence().kinds();
  const auto swept = [&](Direction direction, bool last_of_any_length) {
    const std::vector<bool> exempt(last_of_any_length ? clocks : 0, true);
    ClockSweep sweep(priced, direction, only(priced, {}), exempt, false);
    sweep.run_to_end();
    return sweep;
  };
  // Either the last run is at the first clock too and may be of any length, or it changes back.
  const ClockSweep begins_there = swept(Direction::backward, true),
                   ends_there = swept(Direction::forward, false),
                   changes_back = swept(Direction::backward, false);
  std::vector<double> bounds(clocks);
  for (std::size_t c = 0; c < clocks; ++c) {
    double change = infinity;
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
      change = std::min(change, priced.into(kind)[c] + priced.before(kind, 0));
    const double same = std::max(begins_there.closable(0, c), ends_there.open(c));
    bounds[c] = std::min(same, changes_back.closable(0, c) + change);
  }
  return bounds;
}

}  // namespace rubato
