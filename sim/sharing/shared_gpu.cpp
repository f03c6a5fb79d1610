#include "sim/sharing/shared_gpu.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rubato {

namespace {

constexpr double least_sms_left = 0.02;  // share of all SMs that collectives never hold

double drawn_out(double use, double factor) { return 1.0 - use + use * factor; }

// Hash of a set of kernels (Fibonacci hashing: multiplied by 2^64 / golden ratio).
std::uint64_t hash_of(std::span<const std::uint32_t> set) {
  std::uint64_t hash = set.size();
  for (const std::uint32_t kernel : set) {
    hash = (hash ^ kernel) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32U;
  }
  return hash;
}

}  // namespace

SmDemand sm_demand(const Kernel& kernel, double sm_count) {
  constexpr double channels = 16.0;  // of NCCL, one block each; it uses 8 to 32 on current GPUs
  const bool collective = kernel.kind == KernelClass::communication;
  double blocks = collective ? channels : sm_count;
  if (kernel.launch) {
    blocks = 1.0;
    for (const std::uint32_t extent : kernel.launch->grid) blocks *= extent;
  }
  blocks = std::clamp(blocks, 1.0, sm_count);
  return {.share = blocks / sm_count, .held = collective ? blocks : 0.0};
}

double copy_time_s(const CollectiveSharing& sharing, double traffic_bytes, double comm_sms,
                   double block_threads) {
  const double of_one =
      sharing.sm_gbs * 1e9 *
      std::pow(block_threads / sharing.reference_threads, sharing.threads_exponent);
  return traffic_bytes / (of_one * comm_sms);
}

KernelCoefficients collective_on_sms(const CollectiveSharing& sharing, double latency_s,
                                     double traffic_bytes, double comm_sms, double block_threads) {
  constexpr double touches = 4.0;  // a byte sent is read and written here, one received as well
  constexpr double sharp = 10.0;   // its DRAM time is hidden behind the link
  const double busy_s = copy_time_s(sharing, traffic_bytes, comm_sms, block_threads);
  return {.core_cycles = sharing.core_share * busy_s * sharing.reference_mhz * 1e6,
          .dram_bytes = touches * traffic_bytes,
          .fixed_s = latency_s + (1.0 - sharing.core_share) * busy_s,
          .core_j = sharing.sm_w * comm_sms * (latency_s + busy_s),
          .overlap_scale = sharp};
}

KernelCoefficients copying_longer(const CollectiveSharing& sharing, const KernelCoefficients& known,
                                  double added_s) {
  constexpr double least = 0.01;  // of what was there: nothing may vanish
  KernelCoefficients moved = known;
  const double cycles_per_s = sharing.core_share * sharing.reference_mhz * 1e6;
  moved.core_cycles =
      std::max(known.core_cycles + added_s * cycles_per_s, least * known.core_cycles);
  moved.fixed_s =
      std::max(known.fixed_s + (1.0 - sharing.core_share) * added_s, least * known.fixed_s);
  return moved;
}

double Sharing::power_w() const {
  return std::accumulate(active_w.begin(), active_w.end(), idle_w);
}

double stretch(std::span<const double> uses) {
  constexpr int most_steps = 50;
  constexpr double close_enough = 1e-13;
  double factor = 1.0;
  if (uses.size() < 2) return factor;
  // What is granted falls with the factor and is convex: Newton's method never passes the root.
  for (int i = 0; i < most_steps; ++i) {
    double granted = 0.0, slope = 0.0;
    for (const double use : uses) {
      const double share = use / drawn_out(use, factor);
      granted += share;
      slope += share * share;
    }
    if (granted <= 1.0) break;
    const double step = (granted - 1.0) / slope;
    factor += step;
    if (step <= close_enough * factor) break;
  }
  return factor;
}

SharedGpu::SharedGpu(const GpuSpec& spec, std::vector<KernelCoefficients> kernels,
                     std::vector<SmDemand> demands, const ClockPair& clock, double power_limit_w,
                     const CollectiveSharing& collectives)
    : spec_(&spec),
      kernels_(std::move(kernels)),
      demands_(std::move(demands)),
      clock_(clock),
      power_limit_w_(clock.power_limit_w.value_or(power_limit_w)),
      collectives_(collectives),
      requested_(clock_state(spec, clock, false)),
      slots_(64, 0) {}

const Sharing& SharedGpu::at(std::span<const std::uint32_t> running) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(running) & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const Answer& known = answers_[slots_[slot] - 1];
    const auto key = keys_.begin() + static_cast<std::ptrdiff_t>(known.key);
    if (known.size == running.size() && std::equal(running.begin(), running.end(), key))
      return known.sharing;
  }
  answers_.push_back({keys_.size(), running.size(), limited(running)});
  answers_.back().sharing.idle_w *= power_factor_;
  for (double& watts : answers_.back().sharing.active_w) watts *= power_factor_;
  keys_.insert(keys_.end(), running.begin(), running.end());
  slots_[slot] = static_cast<std::uint32_t>(answers_.size());
  if (2 * answers_.size() > slots_.size()) grow();
  return answers_.back().sharing;
}

void SharedGpu::grow() {
  slots_.assign(2 * slots_.size(), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    std::size_t slot = hash_of({keys_.data() + answers_[i].key, answers_[i].size}) & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
}

// A kernel that would fill more SMs than are left runs its core cycles on those, so takes longer.
SharedGpu::Alone SharedGpu::alone(const ClockState& state, std::uint32_t k,
                                  double held_frac) const {
  KernelCoefficients kernel = kernels_[k];
  const bool collective = demands_[k].held > 0.0;
  const double pool = std::max(1.0 - held_frac, least_sms_left);
  const double of_pool = demands_[k].share / pool;
  if (!collective) kernel.core_cycles *= std::max(of_pool, 1.0);
  const OperatingPoint point = unlimited_point(state, kernel);
  const double core_frac = kernel.core_cycles * state.s_per_cycle / point.time_s;
  const double dram_frac = kernel.dram_bytes * state.s_per_byte / point.time_s;
  return {.point = point,
          .core_use = collective ? 0.0 : std::min(of_pool, 1.0) * core_frac,
          .dram_use = collective ? std::min(collectives_.dram_weight * dram_frac, 1.0) : dram_frac,
          .busy = collective ? 0.0 : 1.0 - kernel.fixed_s / point.time_s};
}

Sharing SharedGpu::unlimited(std::span<const std::uint32_t> running, const ClockState& state) {
  double held_frac = 0.0, idle_scale = running.empty() ? 1.0 : 0.0;
  for (const std::uint32_t k : running) {
    held_frac += demands_[k].held / spec_->sm_count;
    idle_scale = std::max(idle_scale, kernels_[k].idle_scale);
  }
  alone_.clear();
  for (const std::uint32_t k : running) alone_.push_back(alone(state, k, held_frac));
  const auto drawn = [&](double Alone::*use) {
    uses_.clear();
    for (const Alone& one : alone_) uses_.push_back(one.*use);
    return stretch(uses_);
  };
  const double core_stretch = drawn(&Alone::core_use), dram_stretch = drawn(&Alone::dram_use);
  double load = 0.0;
  for (const Alone& one : alone_) load += one.busy;
  const double beside_load = 1.0 + collectives_.load_slowdown * std::min(load, 1.0);
  Sharing sharing{.launches_per_s = {},
                  .active_w = {},
                  .idle_w = state.idle_w * idle_scale,
                  .core_mhz = state.core_mhz,
                  .power_limited = false};
  sharing.launches_per_s.reserve(running.size());
  sharing.active_w.reserve(running.size());
  for (std::size_t i = 0; i < running.size(); ++i) {
    const Alone& one = alone_[i];
    const bool collective = demands_[running[i]].held > 0.0;
    const double slower = collective ? beside_load * drawn_out(one.dram_use, dram_stretch)
                                     : std::max(drawn_out(one.core_use, core_stretch),
                                                drawn_out(one.dram_use, dram_stretch));
    const double rate = 1.0 / (one.point.time_s * slower);
    const double idle_j = state.idle_w * kernels_[running[i]].idle_scale * one.point.time_s;
    sharing.launches_per_s.push_back(rate);
    sharing.active_w.push_back((one.point.energy_j - idle_j) * rate);
  }
  return sharing;
}

Sharing SharedGpu::limited(std::span<const std::uint32_t> running) {
  Sharing sharing = unlimited(running, requested_);
  if (running.empty()) {
    sharing.idle_w =
        waiting_power_w(*spec_, spec_->mem_states[index(clock_.mem)], requested_.core_mhz);
    return sharing;
  }
  double limit_scale = 0.0;
  for (const std::uint32_t k : running)
    limit_scale += kernels_[k].limit_scale / static_cast<double>(running.size());
  const double limit_w = power_limit_w_ * spec_->power_limit.regulated_frac * limit_scale;
  double over_w = sharing.power_w() - limit_w;
  if (over_w <= 0.0) return sharing;
  const auto at_clock = [&](double core_mhz) {
    return unlimited(running, clock_state(*spec_, spec_->mem_states[index(clock_.mem)], core_mhz));
  };
  // Alone, a launch runs at the clock of regulated_point, as in a table. Launches bound by memory
  // may have the same power at several clocks, and both searches must find the same one.
  if (running.size() == 1) {
    const MemState& mem = spec_->mem_states[index(clock_.mem)];
    const double mhz =
        regulated_point(*spec_, kernels_[running.front()], mem, power_limit_w_).core_mhz;
    sharing = at_clock(mhz);
    sharing.power_limited = true;
    return sharing;
  }
  // False position (regula falsi, Illinois variant): an end that stays twice has its excess halved.
  constexpr int most_steps = 60;
  constexpr double close_enough = 1e-9;
  double high_mhz = requested_.core_mhz, low_mhz = std::min(spec_->core.min_mhz, high_mhz);
  sharing = at_clock(low_mhz);
  double under_w = sharing.power_w() - limit_w;
  for (int i = 0, last = 0; i < most_steps && under_w < 0.0; ++i) {
    if (high_mhz - low_mhz <= close_enough * high_mhz) break;
    const double mhz = (low_mhz * over_w - high_mhz * under_w) / (over_w - under_w);
    Sharing tried = at_clock(mhz);
    const double tried_w = tried.power_w() - limit_w;
    if (tried_w > 0.0) {
      high_mhz = mhz;
      over_w = tried_w;
      if (last > 0) under_w *= 0.5;
      last = 1;
    } else {
      low_mhz = mhz;
      under_w = tried_w;
      sharing = std::move(tried);
      if (last < 0) over_w *= 0.5;
      last = -1;
    }
  }
  sharing.power_limited = true;
  return sharing;
}

}  // namespace rubato
