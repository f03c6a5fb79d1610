// The power that the limit holds concurrent kernels at.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/gpu/clock_grid.hpp"
#include "sim/sharing/shared_gpu.hpp"
#include "tests/uniform.hpp"

namespace rubato {
namespace {

struct Limited {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  ClockPair clock = parse_clock_pair(spec, "1593/1410");
  std::vector<KernelCoefficients> kernels;

  [[nodiscard]] Sharing at(const std::vector<std::uint32_t>& running, double limit_w) const {
    SharedGpu gpu(spec, kernels, std::vector<SmDemand>(kernels.size(), {0.3, 0.0}), clock, limit_w);
    return gpu.at(running);
  }
  [[nodiscard]] double free_w(const std::vector<std::uint32_t>& running) const {
    return at(running, 1e6).power_w();
  }
};

// Each kernel alone is held at its own limit_scale times the limit; together at the mean of these,
// one that runs twice counted twice.
RC_GTEST_PROP(SharedLimit, HoldsKernelsAtTheMeanOfTheirScales, ()) {
  static Limited made;
  made.kernels.clear();
  for (int k = 0; k < 3; ++k)
    made.kernels.push_back({.core_cycles = uniform(1e5, 1e6),
                            .dram_bytes = uniform(1e6, 1e8),
                            .fixed_s = 1e-6,
                            .core_j = uniform(0.05, 0.1),
                            .limit_scale = uniform(0.7, 1.1)});
  std::vector<std::uint32_t> running;
  double scales = 0.0;
  const int count = *rc::gen::inRange(2, 5);
  for (int i = 0; i < count; ++i) {
    running.push_back(*rc::gen::inRange<std::uint32_t>(0, 3));
    scales += made.kernels[running.back()].limit_scale;
  }
  const double mean = scales / count;
  const double held_w = 0.9 * made.free_w(running);
  const double limit_w = held_w / (made.spec.power_limit.regulated_frac * mean);
  const Sharing tight = made.at(running, limit_w);
  RC_ASSERT(tight.power_limited);
  RC_ASSERT(std::abs(tight.power_w() / held_w - 1.0) < 1e-6);
  // A limit that is just met does not bind.
  RC_ASSERT(!made.at(running, limit_w / 0.9 * 1.0001).power_limited);
  RC_ASSERT(made.at(running, limit_w / 0.9 * 0.9999).power_limited);
}

}  // namespace
}  // namespace rubato
