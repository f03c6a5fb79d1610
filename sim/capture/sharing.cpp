#include "sim/capture/sharing.hpp"

#include <algorithm>
#include <numeric>

#include "models/kernel/model.hpp"

namespace rubato {

namespace {

constexpr int halvings = 40;  // of a clock range or a stretch: far below any effect

double drawn_out(double use, double factor) { return 1.0 - use + use * factor; }

}  // namespace

double Sharing::power_w() const {
  return std::accumulate(active_w.begin(), active_w.end(), idle_w);
}

double stretch(std::span<const double> uses) {
  const auto granted = [&](double factor) {
    double sum = 0.0;
    for (const double use : uses) sum += use / drawn_out(use, factor);
    return sum;
  };
  if (uses.size() < 2 || granted(1.0) <= 1.0) return 1.0;
  double low = 1.0, high = 2.0;
  while (granted(high) > 1.0) high *= 2.0;
  for (int i = 0; i < halvings; ++i) {
    const double middle = 0.5 * (low + high);
    (granted(middle) > 1.0 ? low : high) = middle;
  }
  return high;
}

SharedGpu::SharedGpu(const GpuSpec& spec, std::vector<KernelCoefficients> kernels,
                     std::vector<double> sm_share, const ClockPair& clock, double power_limit_w)
    : spec_(&spec),
      kernels_(std::move(kernels)),
      sm_share_(std::move(sm_share)),
      clock_(clock),
      power_limit_w_(power_limit_w) {}

const Sharing& SharedGpu::at(const std::vector<std::uint32_t>& running) {
  const auto found = known_.find(running);
  if (found != known_.end()) return found->second;
  return known_.emplace(running, limited(running)).first->second;
}

Sharing SharedGpu::unlimited(std::span<const std::uint32_t> running, double core_mhz) const {
  const ClockState state = clock_state(*spec_, spec_->mem_states[index(clock_.mem)], core_mhz);
  std::vector<OperatingPoint> alone;
  std::vector<double> core_use, dram_use;
  double idle_scale = running.empty() ? 1.0 : 0.0;
  for (const std::uint32_t k : running) {
    const KernelCoefficients& kernel = kernels_[k];
    const OperatingPoint point = unlimited_point(state, kernel);
    alone.push_back(point);
    core_use.push_back(sm_share_[k] * kernel.core_cycles / (core_mhz * 1e6) / point.time_s);
    dram_use.push_back(kernel.dram_bytes / state.dram_bytes_per_s / point.time_s);
    idle_scale = std::max(idle_scale, kernel.idle_scale);
  }
  const double core_stretch = stretch(core_use), dram_stretch = stretch(dram_use);
  Sharing sharing{.launches_per_s = {},
                  .active_w = {},
                  .idle_w = state.idle_w * idle_scale,
                  .core_mhz = core_mhz,
                  .power_limited = false};
  for (std::size_t i = 0; i < running.size(); ++i) {
    const double slower =
        std::max(drawn_out(core_use[i], core_stretch), drawn_out(dram_use[i], dram_stretch));
    const double rate = 1.0 / (alone[i].time_s * slower);
    const double idle_j = state.idle_w * kernels_[running[i]].idle_scale * alone[i].time_s;
    sharing.launches_per_s.push_back(rate);
    sharing.active_w.push_back((alone[i].energy_j - idle_j) * rate);
  }
  return sharing;
}

Sharing SharedGpu::limited(std::span<const std::uint32_t> running) const {
  double limit_scale = running.empty() ? 1.0 : 0.0;
  for (const std::uint32_t k : running)
    limit_scale += kernels_[k].limit_scale / static_cast<double>(running.size());
  const double limit_w = power_limit_w_ * spec_->power_limit.regulated_frac * limit_scale;
  double high_mhz = effective_core_mhz(*spec_, clock_);
  Sharing sharing = unlimited(running, high_mhz);
  if (running.empty() || sharing.power_w() <= limit_w) return sharing;
  double low_mhz = std::min(spec_->core.min_mhz, high_mhz);
  for (int i = 0; i < halvings; ++i) {
    const double middle_mhz = 0.5 * (low_mhz + high_mhz);
    (unlimited(running, middle_mhz).power_w() > limit_w ? high_mhz : low_mhz) = middle_mhz;
  }
  sharing = unlimited(running, low_mhz);
  sharing.power_limited = true;
  return sharing;
}

}  // namespace rubato
