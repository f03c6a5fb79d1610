// What campaigns say of kernels: their classes, their own errors, and how many there are.

#include "explorer/confidence/campaigns.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/coverage.hpp"
#include "models/validation/shipped_fits.hpp"
#include "tests/paths.hpp"

namespace rubato {
namespace {

// Sweeps may say the classes of their kernels: campaigns and captured steps find them all the same.
TEST(Campaigns, KernelsMayHaveClasses) {
  const GpuSpec spec = load_gpu_spec("v100-sxm2");
  Sweep sweep = usable_points(read_sweep(source_dir() / shipped_fit("v100-sxm2").data, spec));
  sweep.kernels.resize(8);
  const auto predicted = [&] {
    const CoverageRow row =
        measure_coverage(spec, sweep, {.points = {1}, .groups = 2, .fit = {.ensemble = 4}}).front();
    return std::array{row.cells.count, row.plans.count, row.captured.count};
  };
  const auto without = predicted();
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k)
    sweep.kernels[k].kind = k % 2 == 0 ? KernelClass::gemm : KernelClass::elementwise;
  const auto with = predicted();
  EXPECT_EQ(with[0], without[0]);
  EXPECT_GT(with[1], 0U);
  EXPECT_GT(with[2], 0U);
}

// Of kernels 'a', 'b' ... at three clocks, off by -1, 0 and 1 % in turn.
std::vector<ValidatedPoint> made_points(int kernels) {
  std::vector<ValidatedPoint> points;
  for (int k = 0; k < kernels; ++k) {
    for (const double mhz : {1600.0, 1800.0, 2000.0}) {
      ValidatedPoint& point = points.emplace_back();
      point.kernel = std::string(1, static_cast<char>('a' + k));
      point.measured.clock.core_mhz = mhz;
      point.measured.time_s = 1.0 + 0.01 * static_cast<double>(k % 3 - 1);
      point.measured.power_w = 100.0;
      point.predicted.time_s = 1.0;
      point.predicted.energy_j = 100.0;
    }
  }
  return points;
}

double time_width_s(const ValidatedPoint& point) {
  return point.time_90_s->high - point.time_90_s->low;
}

// The interval of a kernel does not know its own errors, those of the others do.
TEST(Campaigns, AKernelDoesNotWidenItsOwnIntervals) {
  const GpuSpec spec = load_gpu_spec("gtx-1080-ti");
  std::vector<ValidatedPoint> points = made_points(8);
  const ValidationOptions options{.holdout = Holdout::folds, .fit = {}};
  std::vector<ValidatedPoint> wild = points;
  for (ValidatedPoint& point : wild) {
    if (point.kernel == "a") point.measured.time_s = 3.0;
  }
  add_intervals(spec, options, points);
  add_intervals(spec, options, wild);
  EXPECT_EQ(time_width_s(wild.front()), time_width_s(points.front()));
  EXPECT_GT(time_width_s(wild.back()), 2.0 * time_width_s(points.back()));
}

// Equal errors of six kernels say less than those of two dozen; one kernel alone says nothing, and
// is as a GPU that was never fitted.
TEST(Campaigns, FewKernelsMakeWideIntervals) {
  const GpuSpec spec = load_gpu_spec("gtx-1080-ti");
  const ValidationOptions options{.holdout = Holdout::folds, .fit = {}};
  std::vector<ValidatedPoint> few = made_points(7), many = made_points(25), one = made_points(1);
  for (std::vector<ValidatedPoint>* points : {&few, &many, &one})
    add_intervals(spec, options, *points);
  EXPECT_GT(time_width_s(few.front()), 1.05 * time_width_s(many.front()));
  EXPECT_GT(time_width_s(one.front()), 2.0 * time_width_s(few.front()));
}

// From so many points the spec's scale of so many counts.
TEST(Campaigns, IntervalsTakeTheScaleOfTheirPoints) {
  GpuSpec spec = load_gpu_spec("gtx-1080-ti");
  write_scales({{1.0, 1.0}, {1.0, 1.0}}, 1, spec);
  write_scales({{3.0, 3.0}, {1.0, 1.0}}, 5, spec);
  std::vector<ValidatedPoint> one = made_points(2), five = one;
  add_intervals(spec, {.holdout = Holdout::few_points, .points = 1, .fit = {}}, one);
  add_intervals(spec, {.holdout = Holdout::few_points, .points = 5, .fit = {}}, five);
  EXPECT_NEAR(time_width_s(five.front()) / time_width_s(one.front()), 3.0, 0.1);
}

}  // namespace
}  // namespace rubato
