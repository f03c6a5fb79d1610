#pragma once
// Inside GraphPlanner: what plans of many clocks need.

#include <utility>
#include <vector>

#include "explorer/graph/contention/contended_bound.hpp"
#include "explorer/graph/planner.hpp"
#include "explorer/pipeline/contraction.hpp"

namespace rubato {

struct GraphPlanner::Prices {
  // The frontier is swept only as far as bounds need it: to the shortest time wanted, and to a
  // price of the least idle power (bound_of_launches_j).
  Prices(const LaunchCosts& alone_costs, const LaunchCosts& beside, const ClockGrid& grid,
         std::vector<double> wanted_s, const RunContext& context)
      : alone(crash_problem(launch_work(alone_costs))),
        work(launch_work(beside)),
        rounder(work),
        times_s(std::move(wanted_s)),
        frontier(LaunchFrontiers().sweep(
            alone, times_s, times_s.empty() ? all_prices : alone_costs.least_idle_w(), context)),
        contended(alone_costs, grid),
        held(alone_costs, contended.shared_gpus()) {}

  Contraction alone;  // launches alone
  PipelineWork work;  // launches as slow as beside each other at the default clocks
  ClockRounder rounder;
  std::vector<double> times_s;  // of the frontier's plans
  Frontier frontier;
  ContendedBound contended;
  HeldEnergy held;  // true whatever runs beside collectives
};

}  // namespace rubato
