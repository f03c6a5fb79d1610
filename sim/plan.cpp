#include "sim/plan.hpp"

namespace rubato {

std::vector<Site> sites(const Trace& trace, const Plan& plan) {
  return sites(plan.segments_of(trace));
}

Plan uniform_plan(const Trace& trace, ClockId clock) {
  return {std::vector<ClockId>(sites(trace).size(), clock)};
}

Plan plan_by_kernel(const Trace& trace, const std::vector<ClockId>& clock_of_kernel) {
  Plan plan;
  for (const Site& site : sites(trace))
    plan.clock_of_site.push_back(clock_of_kernel[index(site.kernel)]);
  return plan;
}

}  // namespace rubato
