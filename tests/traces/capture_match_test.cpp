#include "traces/capture_match.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace rubato {
namespace {

// Length of a longest common subsequence by the usual table.
std::size_t longest_common(const std::vector<std::uint32_t>& a,
                           const std::vector<std::uint32_t>& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1,
                                              std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      table[i + 1][j + 1] =
          a[i] == b[j] ? table[i][j] + 1 : std::max(table[i][j + 1], table[i + 1][j]);
    }
  }
  return table[a.size()][b.size()];
}

// Few symbols, so that they collide often.
RC_GTEST_PROP(MatchedPositions, AreALongestCommonSubsequence, ()) {
  const auto sequence = [] {
    return *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, 4));
  };
  const std::vector<std::uint32_t> a = sequence(), b = sequence();
  const auto matched = matched_positions(a, b);
  RC_ASSERT(matched.size() == a.size());
  std::size_t pairs = 0;
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!matched[i]) continue;
    RC_ASSERT(a[i] == b[*matched[i]]);
    RC_ASSERT(!last || *last < *matched[i]);
    last = matched[i];
    ++pairs;
  }
  RC_ASSERT(pairs == longest_common(a, b));
}

Kernel named(const char* name, std::uint32_t blocks) {
  Kernel kernel;
  kernel.name = kernel.label = name;
  kernel.launch = LaunchShape{.grid = {blocks, 1, 1}, .block = {32, 1, 1}};
  return kernel;
}

// Two steps of a, b, a; the second capture misses the first a of its first step. Its kernels have
// other numbers, and one is of another grid.
TEST(TypicalTimes, ByNameGridAndPosition) {
  Trace reference;
  reference.kernels = {named("a", 1), named("b", 1), named("c", 1)};
  reference.segments = {{"s", 1, {KernelId{0}, KernelId{1}, KernelId{0}, KernelId{2}}}};
  Capture capture;
  capture.devices.resize(1);
  capture.streams.resize(1);
  capture.kernels = {named("b", 1), named("a", 1), named("a", 2)};
  capture.steps.resize(2);
  std::int64_t now_ns = 0;
  const auto add = [&](std::uint32_t kernel, std::int64_t duration_ns, std::uint32_t step) {
    CapturedLaunch launch;
    launch.kernel = KernelId{kernel};
    launch.start_ns = now_ns;
    launch.duration_ns = duration_ns;
    launch.step = step;
    capture.launches.push_back(launch);
    now_ns += duration_ns;
  };
  add(0, 200, 0);
  add(1, 3000, 0);
  add(2, 7, 0);
  add(1, 1000, 1);
  add(0, 220, 1);
  add(1, 3000, 1);
  EXPECT_EQ(same_kernels(reference, capture)[1], KernelId{0});
  EXPECT_FALSE(same_kernels(reference, capture)[2]);
  const auto typical = typical_times(reference, capture);
  ASSERT_EQ(typical.size(), 3U);
  // First position 1000, last position 3000: each counts once.
  EXPECT_NEAR(typical[0]->time_s, 2e-6, 1e-15);
  EXPECT_EQ(typical[0]->launches, 3U);
  EXPECT_NEAR(typical[1]->time_s, 0.21e-6, 1e-15);  // of 200 and 220 ns
  EXPECT_FALSE(typical[2]);
}

}  // namespace
}  // namespace rubato
