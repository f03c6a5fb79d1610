#include "explorer/graph/contention/even_arrivals.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/graph/uniform_sweep.hpp"
#include "tests/small_graph.hpp"

namespace rubato {
namespace {

constexpr int layers = 4, pairs_of_launches = 10;

// Two ranks with an all-reduce behind each layer but the last; every launch of rank 1 takes 5 %
// longer. Launches take turns: bound by the core, bound by memory.
ExecutionGraph two_ranks() {
  SmallGraph made(2);
  for (int layer = 0; layer < layers; ++layer) {
    std::vector<std::vector<SmallGraph::After>> after;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const double factor = rank == 0 ? 1.0 : 1.05;
      DraftId last{};
      for (int i = 0; i < pairs_of_launches; ++i) {
        made.launch(2 * rank, "gemm", KernelClass::gemm, 1e-3 * factor);
        last = made.launch(2 * rank, "add", KernelClass::elementwise, 1e-3 * factor);
      }
      after.push_back({{last}});
    }
    if (layer + 1 < layers) made.collective({1, 3}, after, 1e-4);
  }
  return std::move(made).build();
}

struct Replay {
  std::vector<ClockId> clock_of_unit;
  double span_s, energy_j, waited_s;
};

class EvenArrivals : public testing::Test {
 protected:
  EvenArrivals()
      : graph_(two_ranks()),
        model_(graph_, small_graph_spec(), small_graph_spec().default_clock),
        grid_(make_clock_grid(small_graph_spec(), "mem=1593 core=600:1410:30")),
        costs_(model_, grid_),
        units_(costs_, launches(), units_of_launches()) {}

  [[nodiscard]] std::uint32_t launches() const {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < graph_.size(); ++i) count += costs_.is_clocked(i);
    return count;
  }
  [[nodiscard]] std::vector<std::uint32_t> units_of_launches() const {
    std::vector<std::uint32_t> unit(graph_.size(), 0);
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < graph_.size(); ++i)
      if (costs_.is_clocked(i)) unit[i] = next++;
    return unit;
  }

  // Between arrival and the start of the transfer, over all ranks.
  [[nodiscard]] double waited_s(const GraphRun& run) const {
    double sum_s = 0.0;
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      if (graph_.activities()[i].kind != ActivityKind::transfer) continue;
      for (const GraphArc& arc : graph_.arcs_into(ActivityId{i}))
        sum_s += run.start_s[i] - run.start_s[index(arc.from)];
    }
    return sum_s;
  }

  [[nodiscard]] std::vector<Replay> replays(double slack_frac) {
    GraphSimulator simulator(model_, grid_);
    std::vector<Replay> all;
    GraphRun run;
    const UnitReplay replay = [&](const std::vector<ClockId>& clock_of_unit) -> const GraphRun& {
      GraphPlan plan = uniform_plan(graph_, grid_.default_clock());
      for (std::size_t i = 0; i < graph_.size(); ++i)
        if (costs_.is_clocked(i)) plan.clock_of_activity[i] = clock_of_unit[units_.unit_of(i)];
      run = simulator.run(plan);
      all.push_back({clock_of_unit, run.span_s, run.total_energy_j, waited_s(run)});
      return run;
    };
    const std::vector<ClockId> defaults(units_.size(), grid_.default_clock());
    const double span_s = replay(defaults).span_s;
    try_even_arrivals(costs_, gpu_lanes(costs_), units_, defaults, span_s * (1.0 + slack_frac),
                      replay);
    return all;
  }

  ExecutionGraph graph_;
  GraphModel model_;
  ClockGrid grid_;
  LaunchCosts costs_;
  LaunchUnits units_;
};

TEST_F(EvenArrivals, RanksHardlyWait) {
  constexpr double slack_frac = 0.1;
  const std::vector<Replay> all = replays(slack_frac);
  const Replay& begun = all.front();
  const double deadline_s = begun.span_s * (1.0 + slack_frac);
  const Replay* best = &begun;
  for (const Replay& one : all) {
    if (one.span_s <= deadline_s * (1.0 + rounding) && one.energy_j < best->energy_j) best = &one;
  }
  EXPECT_LT(best->waited_s, 0.01 * begun.waited_s);
  EXPECT_GT(best->span_s, 0.99 * deadline_s);
  for (const UniformRun& one : sweep_uniform(model_, grid_)) {
    if (one.span_s > deadline_s) continue;
    EXPECT_LT(best->energy_j, 1.01 * one.energy_j);
  }
}

// Launches bound by memory lose less time for what they save.
TEST_F(EvenArrivals, TimeGoesWhereASecondSavesMost) {
  const Replay moved = replays(0.0).at(2);  // the first two are as begun
  double gemm_mhz = 0.0, add_mhz = 0.0;
  for (std::uint32_t i = 0; i < graph_.size(); ++i) {
    const Activity& launch = graph_.activities()[i];
    if (!costs_.is_clocked(i) || *launch.stream != 0) continue;
    const bool gemm = graph_.kernels()[index(launch.kernel)].name == "gemm";
    (gemm ? gemm_mhz : add_mhz) += *grid_[moved.clock_of_unit[units_.unit_of(i)]].core_mhz;
  }
  EXPECT_LT(add_mhz, 0.9 * gemm_mhz);
}

}  // namespace
}  // namespace rubato
