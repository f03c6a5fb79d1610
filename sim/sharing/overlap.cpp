#include "sim/sharing/overlap.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

namespace {

void check(const OverlappedSequence& sequence) {
  const std::size_t kernels = sequence.kernels.size();
  if (sequence.sm_share.size() != kernels) {
    throw UsageError(fmt::format("an overlapped sequence has {} kernels and {} SM shares", kernels,
                                 sequence.sm_share.size()));
  }
  if (sequence.first > sequence.end || sequence.end > kernels) {
    throw UsageError(
        fmt::format("a collective beside kernels {} to {} of {}; expected first <= end <= {}",
                    sequence.first, sequence.end, kernels, kernels));
  }
}

// Plays the sequence: one kernel, or the collective, or both at a time.
class Overlap {
 public:
  Overlap(SharedGpu& gpu, std::uint32_t collective) : gpu_(gpu), collective_(collective) {}

  void idle(double for_s) { pass(gpu_.at({}), for_s); }

  void run_alone(std::uint32_t kernel, double launches) {
    const Sharing& now = gpu_.at({&kernel, 1});
    pass(now, launches / now.launches_per_s[0]);
  }

  // Runs one launch, beside the collective until either is over.
  void run_beside(std::uint32_t kernel) {
    if (collective_left_ <= 0.0) return run_alone(kernel, 1.0);
    const std::array<std::uint32_t, 2> both{kernel, collective_};
    const Sharing& now = gpu_.at(both);
    const double kernel_s = 1.0 / now.launches_per_s[0];
    const double collective_s = collective_left_ / now.launches_per_s[1];
    if (kernel_s <= collective_s) {
      pass(now, kernel_s);
      collective_left_ -= kernel_s * now.launches_per_s[1];
      return;
    }
    pass(now, collective_s);
    collective_left_ = 0.0;
    run_alone(kernel, 1.0 - collective_s / kernel_s);
  }

  void finish_collective() {
    if (collective_left_ > 0.0) run_alone(collective_, collective_left_);
    collective_left_ = 0.0;
  }

  [[nodiscard]] OverlapCost cost() const { return cost_; }

 private:
  void pass(const Sharing& now, double for_s) {
    cost_.time_s += for_s;
    cost_.energy_j += now.power_w() * for_s;
  }

  SharedGpu& gpu_;
  std::uint32_t collective_;
  double collective_left_ = 1.0;
  OverlapCost cost_;
};

}  // namespace

OverlapCost overlap_cost(const GpuSpec& spec, const CollectiveSharing& sharing,
                         const OverlappedSequence& sequence, const HeldCollective& collective,
                         const ClockPair& clock, double power_limit_w) {
  check(sequence);
  std::vector<KernelCoefficients> kernels = sequence.kernels;
  std::vector<SmDemand> demands;
  for (const double share : sequence.sm_share) demands.push_back({.share = share, .held = 0.0});
  kernels.push_back(collective.coefficients);
  demands.push_back({.share = collective.comm_sms / spec.sm_count, .held = collective.comm_sms});
  SharedGpu gpu(spec, std::move(kernels), std::move(demands), clock, power_limit_w, sharing);
  Overlap overlap(gpu, static_cast<std::uint32_t>(sequence.kernels.size()));
  if (sequence.host_s > 0.0) overlap.idle(sequence.host_s);
  for (std::uint32_t k = 0; k < sequence.kernels.size(); ++k) {
    if (k == sequence.end) overlap.finish_collective();
    if (k >= sequence.first && k < sequence.end) {
      overlap.run_beside(k);
    } else {
      overlap.run_alone(k, 1.0);
    }
  }
  overlap.finish_collective();
  return overlap.cost();
}

std::vector<OverlapPoint> overlap_grid(const GpuSpec& spec, const CollectiveSharing& sharing,
                                       const OverlappedSequence& sequence,
                                       std::span<const HeldCollective> collectives,
                                       std::span<const ClockPair> clocks, double power_limit_w) {
  std::vector<OverlapPoint> points;
  for (const ClockPair& clock : clocks) {
    for (const HeldCollective& collective : collectives) {
      points.push_back({collective.comm_sms, clock,
                        overlap_cost(spec, sharing, sequence, collective, clock, power_limit_w)});
    }
  }
  return points;
}

}  // namespace rubato
