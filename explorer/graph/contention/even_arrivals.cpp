#include "explorer/graph/contention/even_arrivals.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <span>

namespace rubato {

namespace {

// Rounds of a replay and a move: each changes what runs beside what, and so where time is left.
constexpr int most_rounds = 80;
constexpr int most_in_vain = 16;         // rounds in a row
constexpr double least_gain = 1e-4;      // of the energy: a round that gains less is in vain
constexpr double even_tolerance = 1e-9;  // of the deadline, as of the planner
constexpr double overshoot = 1.5;        // a launch's step may be this times the time still to move

// A launch at its next clock.
struct ClockStep {
  std::uint32_t launch = 0;
  ClockId was;  // in the replay
  ClockId clock;
  double longer_s = 0.0;  // negative: shorter
  double price_w = 0.0;   // J saved for each second longer, or spent for each second shorter
};

// The main-stream launches of one GPU between two of its collectives.
struct Stretch {
  std::span<const std::uint32_t> launches;
  std::optional<std::uint32_t> transfer;  // of the collective behind them; nothing: the end
};

class EvenArrivals {
 public:
  EvenArrivals(const LaunchCosts& costs, const std::vector<GpuLanes>& lanes,
               const LaunchUnits& units)
      : costs_(costs), graph_(costs.model().graph()), units_(units) {
    for (const GpuLanes& one : lanes) {
      std::vector<Stretch>& row = rows_.emplace_back();
      std::uint32_t from = 0;
      for (const SideActivity& side : one.side) {
        if (!side.holds || side.first <= from) continue;
        const auto transfer = transfer_of(side.departure);
        if (!transfer) continue;
        row.push_back({std::span(one.main).subspan(from, side.first - from), transfer});
        from = side.first;
      }
      if (from > 0) row.push_back({std::span(one.main).subspan(from), {}});
      collectives_ += from > 0;
    }
  }

  [[nodiscard]] bool matters() const noexcept { return collectives_ > 1; }

  /// Changes clocks so that stretches of a run end together, at `scale` times their last end.
  void move(const GraphRun& run, double scale, std::vector<ClockId>& clock_of_unit) const {
    std::map<std::uint32_t, double> last_s;  // arrival at each transfer
    for (const std::vector<Stretch>& row : rows_) {
      for (const Stretch& one : row) {
        if (!one.transfer) continue;
        double& of_all_s = last_s[*one.transfer];
        of_all_s = std::max(of_all_s, run.end_s[one.launches.back()]);
      }
    }
    for (const std::vector<Stretch>& row : rows_) {
      double before_s = 0.0;  // how much later the stretch before is to end
      for (const Stretch& one : row) {
        double later_s = run.span_s * (scale - 1.0);
        if (one.transfer)
          later_s = last_s.at(*one.transfer) * scale - run.end_s[one.launches.back()];
        draw_out(run, one.launches, later_s - before_s, clock_of_unit);
        before_s = later_s;
      }
    }
  }

 private:
  [[nodiscard]] std::optional<std::uint32_t> transfer_of(std::uint32_t departure) const {
    for (const GraphArc& arc : graph_.arcs_into(ActivityId{departure})) {
      if (graph_[arc.from].kind == ActivityKind::transfer) return index(arc.from);
    }
    return std::nullopt;
  }

  // The next useful clock that is slower, or faster. @param was  the clock in the replay
  [[nodiscard]] std::optional<ClockStep> step_of(const GraphRun& run, std::uint32_t launch,
                                                 ClockId was, ClockId clock, bool slower) const {
    const std::span<const ClockId> useful = costs_.useful_clocks(launch);
    const double time_s = costs_.time_s(launch, clock);
    const auto is_slower = [&](ClockId one) { return costs_.time_s(launch, one) > time_s; };
    const auto is_faster = [&](ClockId one) { return costs_.time_s(launch, one) < time_s; };
    ClockStep step{.launch = launch, .was = was, .clock = clock, .longer_s = 0.0, .price_w = 0.0};
    if (slower) {
      const auto next = std::ranges::find_if(useful, is_slower);
      if (next == useful.end()) return std::nullopt;
      step.clock = *next;
    } else {
      const auto last = std::find_if(useful.rbegin(), useful.rend(), is_faster);
      if (last == useful.rend()) return std::nullopt;
      step.clock = *last;
    }
    const double ran_s = run.end_s[launch] - run.start_s[launch];
    step.longer_s =
        ran_s * (costs_.time_s(launch, step.clock) - time_s) / costs_.time_s(launch, was);
    step.price_w =
        (costs_.cost_j(launch, clock) - costs_.cost_j(launch, step.clock)) / step.longer_s;
    return step;
  }

  // Draws out launches by so much, or speeds them up (negative). First those that save most for a
  // second longer, or spend least for a second less.
  void draw_out(const GraphRun& run, std::span<const std::uint32_t> launches, double by_s,
                std::vector<ClockId>& clock_of_unit) const {
    const bool slower = by_s > 0.0;
    const auto comes_later = [&](const ClockStep& a, const ClockStep& b) {
      if (a.price_w != b.price_w) return slower ? a.price_w < b.price_w : a.price_w > b.price_w;
      return a.launch > b.launch;
    };
    std::priority_queue<ClockStep, std::vector<ClockStep>, decltype(comes_later)> steps(
        comes_later);
    const auto add = [&](std::uint32_t launch, ClockId was, ClockId clock) {
      if (const auto step = step_of(run, launch, was, clock, slower)) steps.push(*step);
    };
    for (const std::uint32_t launch : launches) {
      const std::uint32_t unit = units_.unit_of(launch);
      if (units_.members(unit).front() == launch)
        add(launch, clock_of_unit[unit], clock_of_unit[unit]);
    }
    for (double left_s = std::abs(by_s); left_s > 0.0 && !steps.empty();) {
      const ClockStep step = steps.top();
      steps.pop();
      const double takes_s = std::abs(step.longer_s);
      if (takes_s > overshoot * left_s) continue;
      clock_of_unit[units_.unit_of(step.launch)] = step.clock;
      left_s -= takes_s;
      add(step.launch, step.was, step.clock);
    }
  }

  const LaunchCosts& costs_;
  const ExecutionGraph& graph_;
  const LaunchUnits& units_;
  std::vector<std::vector<Stretch>> rows_;
  std::size_t collectives_ = 0;  // GPUs that have some
};

}  // namespace

void try_even_arrivals(const LaunchCosts& costs, const std::vector<GpuLanes>& lanes,
                       const LaunchUnits& units, std::vector<ClockId> clock_of_unit,
                       double deadline_s, const UnitReplay& replay, const RunContext& context) {
  const EvenArrivals even(costs, lanes, units);
  if (!even.matters()) return;
  double margin = 0.0;  // share of the deadline to stay below, since a plan was late
  double best_j = std::numeric_limits<double>::infinity();
  int in_vain = 0;
  for (int round = 0; round < most_rounds && in_vain < most_in_vain; ++round) {
    if (context.stop_requested()) return;
    const GraphRun& run = replay(clock_of_unit);
    const double late = run.span_s / deadline_s - 1.0;
    const bool in_time = late <= even_tolerance;
    const bool better = in_time && run.total_energy_j < best_j * (1.0 - least_gain);
    if (better) best_j = run.total_energy_j;
    in_vain = better ? 0 : in_vain + 1;
    margin = in_time ? 0.5 * margin : 2.0 * margin + 0.5 * late;
    even.move(run, (1.0 - margin) * deadline_s / run.span_s, clock_of_unit);
  }
}

}  // namespace rubato
