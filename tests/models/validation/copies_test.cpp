#include "models/validation/copies.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/validation/shipped_fits.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

SweepKernel kernel(const char* name, double factor) {
  SweepKernel made{.name = name, .points = {}};
  for (int i = 0; i < 5; ++i) {
    SweepPoint& point = made.points.emplace_back();
    point.clock.core_mhz = 1000.0 + 100.0 * i;
    point.time_s = factor * (2.0 - 0.1 * i);
    point.power_w = 100.0 + 20.0 * i;
  }
  return made;
}

std::vector<std::string> kept_of(Sweep sweep) {
  std::vector<std::string> names;
  for (const SweepKernel& each : without_copies(std::move(sweep)).kernels)
    names.push_back(each.name);
  return names;
}

TEST(Copies, DifferByOneFactor) {
  Sweep sweep;
  sweep.kernels = {kernel("a", 1.0), kernel("longer", 3.0), kernel("slower", 1.0),
                   kernel("hotter", 1.0), kernel("few", 1.0)};
  *sweep.kernels[2].points.back().time_s *= 1.01;
  *sweep.kernels[3].points.back().power_w *= 1.01;
  sweep.kernels[4].points.pop_back();
  EXPECT_EQ(kept_of(sweep), (std::vector<std::string>{"a", "slower", "hotter", "few"}));
}

TEST(Copies, AreAtTheSameClocksAndCaps) {
  Sweep sweep;
  sweep.kernels = {kernel("a", 1.0), kernel("clocks", 1.0), kernel("caps", 1.0)};
  for (SweepPoint& point : sweep.kernels[1].points) *point.clock.core_mhz += 1.0;
  for (SweepPoint& point : sweep.kernels[2].points) point.power_cap_w = 200.0;
  EXPECT_EQ(kept_of(sweep).size(), 3U);
}

// Sixteen stages of one network are four curves; one pair of kernels in all other sweeps that are
// shipped is as close, of the 112 on the RTX 8000.
TEST(Copies, AreInOneShippedSweep) {
  std::size_t kernels = 0, kept = 0;
  for (const ShippedFit& fit : shipped_fits()) {
    if (!fit.where.empty()) continue;
    SCOPED_TRACE(fit.spec);
    Sweep sweep = read_sweep(source_dir() / fit.data, load_gpu_spec(fit.spec));
    for (SweepKernel& each : sweep.kernels)
      std::erase_if(each.points, [](const SweepPoint& p) { return !p.time_s || !p.power_w; });
    const std::size_t all = sweep.kernels.size();
    const std::size_t distinct = without_copies(std::move(sweep)).kernels.size();
    if (fit.spec == "a40") {
      EXPECT_EQ(all, 16U);
      EXPECT_EQ(distinct, 4U);
    } else {
      kernels += all;
      kept += distinct;
    }
  }
  EXPECT_GT(kernels, 300U);
  EXPECT_EQ(kernels - kept, 1U);
}

}  // namespace
}  // namespace rubato
