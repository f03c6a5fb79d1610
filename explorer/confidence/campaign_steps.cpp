#include "explorer/confidence/campaign_steps.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rubato {

SweptClocks::SweptClocks(GpuSpec spec, const Sweep& sweep) : spec_(std::move(spec)) {
  constexpr double step_mhz = 0.1;  // sweeps log clocks between the steps
  spec_.core.step_mhz = step_mhz;
  double& limit_w = spec_.power_limit.limit_w;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points) {
      limit_w = std::max(limit_w, point.power_cap_w.value_or(0.0));
      spec_.core.max_mhz = std::max(spec_.core.max_mhz, point.clock.core_mhz.value_or(0.0));
    }
  }
  for (const MemState& state : spec_.mem_states)
    boosts_mhz_.push_back(
        std::min(std::round(state.boost_mhz / step_mhz) * step_mhz, spec_.core.max_mhz));
  spec_.power_limit.max_w = std::max(spec_.power_limit.max_w, limit_w);
  if (!sweep.applied_clocks) return;
  for (MemState& state : spec_.mem_states) {
    state.boost_mhz = 2.0 * spec_.core.max_mhz;
    state.max_core_mhz.reset();
  }
}

GpuSpec SweptClocks::spec(const std::vector<ClockPair>& clocks) const {
  GpuSpec spec = spec_;
  spec.default_clock = applied(*std::ranges::max_element(clocks, {}, [&](const ClockPair& clock) {
    return std::pair{spec.mem_states[index(clock.mem)].mem_mhz, *applied(clock).core_mhz};
  }));
  return spec;
}

std::vector<const SweepKernel*> drawn_kernels(const Sweep& sweep, std::mt19937_64& random) {
  std::vector<const SweepKernel*> kernels;
  for (const SweepKernel& kernel : sweep.kernels) {
    if (random() % 2 == 0) kernels.push_back(&kernel);
  }
  if (kernels.empty()) kernels.push_back(&sweep.kernels[random() % sweep.kernels.size()]);
  return kernels;
}

Kernel launched_kernel(const SweepKernel& kernel) {
  Kernel launched;
  launched.name = kernel.name;
  launched.kind = kernel.kind;
  return launched;
}

std::vector<std::uint32_t> drawn_launches(const std::vector<const SweepKernel*>& kernels,
                                          double of_longest, double most, std::mt19937_64& random) {
  const auto time_s = [](const SweepKernel* k) { return k->points.front().time_s.value(); };
  const double longest_s = time_s(*std::ranges::max_element(kernels, {}, time_s));
  std::vector<std::uint32_t> launches;
  for (const SweepKernel* kernel : kernels) {
    const double each = of_longest * longest_s / time_s(kernel);
    const double share = static_cast<double>(1 + random() % 5) / 3.0;
    launches.push_back(static_cast<std::uint32_t>(std::clamp(std::round(each * share), 1.0, most)));
  }
  return launches;
}

std::optional<Cost> measured_cost(const SweepKernel& kernel, const ClockPair& clock) {
  const auto found = std::ranges::find(kernel.points, clock, &SweepPoint::clock);
  if (found == kernel.points.end()) return std::nullopt;
  return Cost{*found->time_s, *found->time_s * *found->power_w};
}

std::vector<ClockPair> common_clocks(const std::vector<const SweepKernel*>& kernels) {
  std::vector<ClockPair> clocks;
  for (const SweepPoint& point : kernels.front()->points) {
    const bool everywhere = std::ranges::all_of(
        kernels, [&](const SweepKernel* k) { return measured_cost(*k, point.clock).has_value(); });
    if (everywhere && std::ranges::find(clocks, point.clock) == clocks.end())
      clocks.push_back(point.clock);
  }
  return clocks;
}

Cost measured_total(std::span<const std::uint32_t> launches,
                    const std::vector<const SweepKernel*>& kernels,
                    const std::vector<ClockPair>& clocks) {
  Cost sum;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const Cost cost = measured_cost(*kernels[k], clocks[k]).value();
    sum.time_s += launches[k] * cost.time_s;
    sum.energy_j += launches[k] * cost.energy_j;
  }
  return sum;
}

}  // namespace rubato
