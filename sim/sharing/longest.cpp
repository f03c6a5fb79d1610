// Upper bounds: how long launches take at most beside others.

#include <algorithm>
#include <numeric>

#include "sim/sharing/shared_gpu.hpp"

namespace rubato {

// Bounds at any clock from the slowest to the one requested. A lower clock makes a launch and its
// parts longer. SMs that others hold make its core part longer, and that a larger share of it.
SharedGpu::Most SharedGpu::most(std::uint32_t kernel, double held_frac,
                                const ClockState& slowest) const {
  const Alone held = alone(slowest, kernel, held_frac), free = alone(slowest, kernel, 0.0);
  Most most{.time_s = held.point.time_s,
            .core_s = held.core_use * held.point.time_s,
            .dram_s = free.dram_use * free.point.time_s,
            .core_use = held.core_use,
            .dram_use = free.dram_use};
  if (slowest.core_mhz >= requested_.core_mhz) return most;
  const double least_s = alone(requested_, kernel, 0.0).point.time_s;
  most.core_use = std::min(most.core_s / least_s, 1.0);
  most.dram_use = std::min(most.dram_s / least_s, 1.0);
  return most;
}

// Most power beyond idle that a kernel draws: it runs no faster than alone on all SMs it can fill.
double SharedGpu::most_active_w(std::uint32_t kernel) const {
  const OperatingPoint point = alone(requested_, kernel, 0.0).point;
  return point.energy_j / point.time_s - requested_.idle_w * kernels_[kernel].idle_scale;
}

// Bound of one kernel beside one of each other stream, at any clock from the slowest to the one
// requested.
double SharedGpu::longest_s(std::uint32_t kernel, const Most& own,
                            std::span<const Most> others) const {
  std::vector<double> core_uses{own.core_use}, dram_uses{own.dram_use};
  for (const Most& other : others) {
    core_uses.push_back(other.core_use);
    dram_uses.push_back(other.dram_use);
  }
  const double dram_longer_s = own.dram_s * (stretch(dram_uses) - 1.0);
  if (demands_[kernel].held > 0.0)
    return (1.0 + collectives_.load_slowdown) * (own.time_s + dram_longer_s);
  return own.time_s + std::max(own.core_s * (stretch(core_uses) - 1.0), dram_longer_s);
}

void SharedGpu::raise_longest(std::span<const std::vector<std::uint32_t>> streams,
                              const ClockState& slowest,
                              std::vector<std::vector<double>>& longest) const {
  std::vector<double> held(streams.size(), 0.0), active_w(streams.size(), 0.0);
  double idle_scale = 0.0, limit_scale = 1.0;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    for (const std::uint32_t k : streams[s]) {
      held[s] = std::max(held[s], demands_[k].held / spec_->sm_count);
      active_w[s] = std::max(active_w[s], most_active_w(k));
      idle_scale = std::max(idle_scale, kernels_[k].idle_scale);
      limit_scale = std::min(limit_scale, kernels_[k].limit_scale);
    }
  }
  const double limit_w = power_limit_w_ * spec_->power_limit.regulated_frac * limit_scale;
  const bool limited = slowest.core_mhz < requested_.core_mhz;
  const double held_by_all = std::accumulate(held.begin(), held.end(), 0.0);
  const double of_all_w =
      requested_.idle_w * idle_scale + std::accumulate(active_w.begin(), active_w.end(), 0.0);
  std::vector<std::vector<Most>> most_of(streams.size());
  std::vector<Most> of_stream(streams.size());
  for (std::size_t s = 0; s < streams.size(); ++s) {
    for (const std::uint32_t k : streams[s]) {
      const double held_frac = held_by_all - held[s] + demands_[k].held / spec_->sm_count;
      const Most& own = most_of[s].emplace_back(most(k, held_frac, slowest));
      of_stream[s].core_use = std::max(of_stream[s].core_use, own.core_use);
      of_stream[s].dram_use = std::max(of_stream[s].dram_use, own.dram_use);
    }
  }
  for (std::size_t s = 0; s < streams.size(); ++s) {
    std::vector<Most> others = of_stream;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(s));
    for (std::size_t n = 0; n < streams[s].size(); ++n) {
      const std::uint32_t k = streams[s][n];
      if (limited && of_all_w - active_w[s] + most_active_w(k) <= limit_w) continue;
      longest[s][n] = std::max(longest[s][n], longest_s(k, most_of[s][n], others));
    }
  }
}

// The larger of two bounds: at the clock requested, and, for launches that the power limit may slow
// down, at any clock down to the lowest.
std::vector<std::vector<double>> SharedGpu::longest_s(
    std::span<const std::vector<std::uint32_t>> streams) const {
  std::vector<std::vector<double>> longest;
  for (const std::vector<std::uint32_t>& stream : streams) longest.emplace_back(stream.size(), 0.0);
  raise_longest(streams, requested_, longest);
  const double lowest_mhz = std::min(spec_->core.min_mhz, requested_.core_mhz);
  if (lowest_mhz < requested_.core_mhz) {
    raise_longest(streams, clock_state(*spec_, spec_->mem_states[index(clock_.mem)], lowest_mhz),
                  longest);
  }
  return longest;
}

}  // namespace rubato
