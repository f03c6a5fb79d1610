// Longest times of launches against every set of kernels that can run.

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/gpu/clock_grid.hpp"
#include "sim/sharing/shared_gpu.hpp"
#include "tests/uniform.hpp"

namespace rubato {
namespace {

struct ManyStreams {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  std::vector<KernelCoefficients> kernels;
  std::vector<SmDemand> demands;
  std::vector<std::vector<std::uint32_t>> streams;

  void add(std::size_t stream, bool collective) {
    kernels.push_back({.core_cycles = uniform(0.0, 1e6),
                       .dram_bytes = uniform(0.0, 1e9),
                       .fixed_s = uniform(1e-6, 1e-4),
                       .core_j = uniform(0.0, 0.2),
                       .limit_scale = uniform(0.7, 1.1)});
    const double blocks = uniform(1.0, 60.0);
    demands.push_back({.share = uniform(0.05, 1.0), .held = collective ? blocks : 0.0});
    if (streams.size() <= stream) streams.resize(stream + 1);
    streams[stream].push_back(static_cast<std::uint32_t>(kernels.size() - 1));
  }

  // The longest in any set, shape as streams.
  [[nodiscard]] std::vector<std::vector<double>> tried_s(SharedGpu& gpu) const {
    std::vector<std::vector<double>> longest_s;
    std::size_t sets = 1;
    for (const auto& stream : streams) {
      longest_s.emplace_back(stream.size(), 0.0);
      sets *= stream.size() + 1;
    }
    for (std::size_t set = 1; set < sets; ++set) {
      std::vector<std::uint32_t> running;  // kernels rise from stream to stream
      std::size_t left = set;
      for (const auto& stream : streams) {
        const std::size_t one = left % (stream.size() + 1);
        if (one > 0) running.push_back(stream[one - 1]);
        left /= stream.size() + 1;
      }
      const Sharing& sharing = gpu.at(running);
      for (std::size_t r = 0; r < running.size(); ++r) {
        for (std::size_t s = 0; s < streams.size(); ++s) {
          const auto at = std::ranges::find(streams[s], running[r]) - streams[s].begin();
          if (at == std::ssize(streams[s])) continue;
          double& of = longest_s[s][static_cast<std::size_t>(at)];
          of = std::max(of, 1.0 / sharing.launches_per_s[r]);
        }
      }
    }
    return longest_s;
  }
};

// Up to four streams at any clock, below any power limit: none of all sets has a launch take
// longer.
RC_GTEST_PROP(LongestTimes, NoSetOfKernelsTakesLonger, ()) {
  ManyStreams many;
  const auto streams = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t s = 0; s < streams; ++s) {
    for (int k = *rc::gen::inRange(1, 4); k > 0; --k) many.add(s, *rc::gen::inRange(0, 3) == 0);
  }
  const ClockGrid grid = make_clock_grid(many.spec, "full");
  const ClockPair clock = grid[id_at<ClockId>(*rc::gen::inRange<std::size_t>(0, grid.size()))];
  const double limit_w = *rc::gen::element(1e4, 400.0, 250.0, 150.0, 90.0);
  many.spec.power_limit.regulated_frac = *rc::gen::element(1.0, 0.8);
  SharedGpu gpu(many.spec, many.kernels, many.demands, clock, limit_w);
  const auto longest_s = gpu.longest_s(many.streams), tried_s = many.tried_s(gpu);
  bool limited = false;
  for (std::size_t s = 0; s < streams; ++s) {
    for (std::size_t k = 0; k < many.streams[s].size(); ++k) {
      RC_ASSERT(tried_s[s][k] <= longest_s[s][k] * (1.0 + 1e-9));
      limited |= gpu.at(std::vector{many.streams[s][k]}).power_limited;
    }
  }
  RC_CLASSIFY(limited, "the power limit holds one alone");
}

// One kernel a stream that are no collectives, without a power limit (a launch of a microsecond may
// draw kilowatts here): all of them together are
// the slowest set, and that is the answer.
RC_GTEST_PROP(LongestTimes, OfOneKernelAStreamIsWhatTheyTakeTogether, ()) {
  ManyStreams many;
  const auto streams = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t s = 0; s < streams; ++s) many.add(s, false);
  SharedGpu gpu(many.spec, many.kernels, many.demands, many.spec.default_clock, 1e9);
  const auto longest_s = gpu.longest_s(many.streams), tried_s = many.tried_s(gpu);
  for (std::size_t s = 0; s < streams; ++s)
    RC_ASSERT(std::abs(longest_s[s][0] / tried_s[s][0] - 1.0) <= 1e-9);
}

// Two that need all SMs all the time take twice as long together, at the lowest clock too.
TEST(LongestTimes, OfTwoThatWantAllSmsIsTwiceThatOfOne) {
  ManyStreams many;
  for (std::size_t s = 0; s < 2; ++s) {
    many.kernels.push_back(
        {.core_cycles = 1e6, .dram_bytes = 1.0, .fixed_s = 1e-12, .core_j = 0.2});
    many.demands.push_back({.share = 1.0, .held = 0.0});
    many.streams.push_back({static_cast<std::uint32_t>(s)});
  }
  SharedGpu gpu(many.spec, many.kernels, many.demands, many.spec.default_clock, 1.0);
  const double alone_s = 1e6 / (many.spec.core.min_mhz * 1e6);
  for (const auto& of_stream : gpu.longest_s(many.streams))
    EXPECT_NEAR(of_stream[0] / (2.0 * alone_s), 1.0, 1e-6);
}

}  // namespace
}  // namespace rubato
