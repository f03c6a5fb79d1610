#include "explorer/free_cost.hpp"

#include <algorithm>

#include "common/numbers.hpp"
#include "models/table/fill.hpp"
#include "sim/repeated_sum.hpp"

namespace rubato {

namespace {

// Every kernel at every clock that a plan uses, filled as tables are.
class PlanCells {
 public:
  PlanCells(const GpuModel& model, const ClockGrid& grid, const Plan& plan)
      : clocks_(plan.clock_of_site) {
    std::ranges::sort(clocks_);
    clocks_.erase(std::unique(clocks_.begin(), clocks_.end()), clocks_.end());
    std::vector<ClockPair> pairs;
    for (const ClockId clock : clocks_) pairs.push_back(grid[clock]);
    time_s_.resize(model.kernels() * pairs.size());
    energy_j_.resize(time_s_.size());
    (void)fill_cells({model.spec(), model.coefficients(), model.power_limit_w()}, {pairs},
                     time_s_.data(), energy_j_.data());
  }

  [[nodiscard]] Cost cost(KernelId kernel, ClockId clock) const {
    const auto at = std::ranges::lower_bound(clocks_, clock) - clocks_.begin();
    const std::size_t cell = index(kernel) * clocks_.size() + static_cast<std::size_t>(at);
    return {time_s_[cell], energy_j_[cell]};
  }

 private:
  std::vector<ClockId> clocks_;  // ascending
  std::vector<double> time_s_, energy_j_;
};

// Calls visit(kernel, cost, count) for each launch of a plan and how often it comes, in order.
template <class Visit>
void for_each_launch(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                     const Plan& plan, const Visit& visit) {
  const PlanCells cells(model, grid, plan);
  const std::vector<Site> launches = sites(trace, plan);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const auto& [kernel, segment, repeat] = launches[i];
    visit(index(kernel), cells.cost(kernel, plan.clock_of_site[i]), repeat);
  }
}

struct CompensatedCost {
  CompensatedSum time_s, energy_j;

  void add(const Cost& cost, std::uint32_t count) {
    add_times(time_s, cost.time_s, count);
    add_times(energy_j, cost.energy_j, count);
  }
  [[nodiscard]] Cost value() const { return {time_s.value(), energy_j.value()}; }
};

}  // namespace

Cost free_cost(const Trace& trace, const GpuModel& model, const ClockGrid& grid, const Plan& plan) {
  CompensatedCost sum;
  for_each_launch(
      trace, model, grid, plan,
      [&](std::size_t, const Cost& cost, std::uint32_t count) { sum.add(cost, count); });
  return sum.value();
}

std::vector<Cost> free_costs(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                             const Plan& plan) {
  std::vector<CompensatedCost> sums(trace.kernels.size());
  for_each_launch(trace, model, grid, plan,
                  [&](std::size_t kernel, const Cost& cost, std::uint32_t count) {
                    sums[kernel].add(cost, count);
                  });
  std::vector<Cost> costs;
  for (const CompensatedCost& sum : sums) costs.push_back(sum.value());
  return costs;
}

}  // namespace rubato
