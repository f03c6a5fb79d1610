#pragma once
// Kernels that run at the same time on one GPU: they share SMs, DRAM bandwidth
// and the power limit. docs/replay.md, section 4.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "models/gpu/spec.hpp"

namespace rubato {

/// How fast each of some running kernels gets on, and what the board draws.
struct Sharing {
  std::vector<double> launches_per_s;  ///< in the order asked for
  std::vector<double> active_w;        ///< above idle, in the order asked for
  double idle_w = 0.0;
  double core_mhz = 0.0;  ///< in effect
  bool power_limited = false;

  [[nodiscard]] double power_w() const;
};

/// The kernels of a capture on one GPU at one requested clock. Answers are kept,
/// so one object serves one thread.
class SharedGpu {
 public:
  /// @param kernels   coefficients, shape [kernels]
  /// @param sm_share  share of the SMs a launch can fill, in (0, 1], shape [kernels]
  SharedGpu(const GpuSpec& spec, std::vector<KernelCoefficients> kernels,
            std::vector<double> sm_share, const ClockPair& clock, double power_limit_w);

  /// @param running  indices of kernels, repeats allowed; may be empty (idle)
  [[nodiscard]] const Sharing& at(const std::vector<std::uint32_t>& running);

 private:
  [[nodiscard]] Sharing unlimited(std::span<const std::uint32_t> running, double core_mhz) const;
  [[nodiscard]] Sharing limited(std::span<const std::uint32_t> running) const;

  const GpuSpec* spec_;
  std::vector<KernelCoefficients> kernels_;
  std::vector<double> sm_share_;
  ClockPair clock_;
  double power_limit_w_;
  std::map<std::vector<std::uint32_t>, Sharing> known_;
};

/// Factor by which the use of one resource is drawn out when its users want more than
/// there is: s >= 1 with sum of u / (1 - u + u * s) = 1; 1 if the uses fit.
/// @param uses  share of its time alone a kernel uses the resource, each in [0, 1]
[[nodiscard]] double stretch(std::span<const double> uses);

}  // namespace rubato
