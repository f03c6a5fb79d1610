// How far times of a sweep fall with the clock: by definition, and in every shipped spec.

#include <cstddef>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "explorer/confidence/campaigns.hpp"
#include "models/calibration/sweep.hpp"
#include "models/validation/copies.hpp"
#include "models/validation/shipped_fits.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

// By definition: of 40 points at lower clocks two, 5 %, lie lower than 1 % below; of 20 one.
TEST(Campaigns, FallOfTimesIsThatOfTheLowestTwentieth) {
  Sweep sweep;
  const auto add = [&](SweepKernel& kernel, std::optional<double> core_mhz, double time_s) {
    SweepPoint& point = kernel.points.emplace_back();
    point.clock = {MemStateId{0}, core_mhz};
    point.time_s = time_s;
  };
  for (int k = 0; k < 20; ++k) {
    SweepKernel& kernel = sweep.kernels.emplace_back();
    add(kernel, 1000.0, k == 3 ? 0.98 : k == 4 ? 0.94 : 1.5);
    add(kernel, std::nullopt, 1.0);  // auto is the highest
    add(kernel, 1500.0, k == 5 ? 0.99 : 1.0);
  }
  EXPECT_NEAR(fall_of_times_pct(sweep), 1.0, 1e-9);
  for (SweepKernel& kernel : sweep.kernels) kernel.points.resize(2);
  EXPECT_NEAR(fall_of_times_pct(sweep), 2.0, 1e-9);
  for (SweepKernel& kernel : sweep.kernels) kernel.points.erase(kernel.points.begin());
  EXPECT_EQ(fall_of_times_pct(sweep), 0.0);
}

TEST(Campaigns, ShippedSpecsHaveTheFallOfTheirOwnSweeps) {
  std::size_t tested = 0;
  for (const ShippedFit& fit : shipped_fits()) {
    const GpuSpec spec = load_gpu_spec(fit.spec);
    if (!spec.fit_errors.contains(distinct_kernels_key)) continue;
    SCOPED_TRACE(fit.spec);
    SweepColumns columns;
    for (const std::string_view where : fit.where) {
      const std::size_t at = where.find('=');
      columns.where.emplace(where.substr(0, at), where.substr(at + 1));
    }
    const double fall_pct = fall_of_times_pct(
        without_copies(usable_points(read_sweep(source_dir() / fit.data, spec, columns))));
    const auto known = spec.fit_errors.find(time_fall_key);
    EXPECT_NEAR(known == spec.fit_errors.end() ? -1.0 : known->second, fall_pct, 1e-9);
    ++tested;
  }
  EXPECT_GE(tested, 10U);
}

}  // namespace
}  // namespace rubato
