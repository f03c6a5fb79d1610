#include "models/validation/measured_shapes.hpp"

#include <cstddef>

#include <gtest/gtest.h>

#include "models/kernel/model.hpp"

namespace rubato {
namespace {

OperatingPoint at_share(const GpuSpec& spec, const KernelCoefficients& launch, double share) {
  const MemState& memory = spec.mem_states[index(spec.default_clock.mem)];
  return unlimited_point(
      clock_state(spec, memory, share * effective_core_mhz(spec, spec.default_clock)), launch);
}

double stretch_at(const GpuSpec& spec, const KernelShape& shape, double share) {
  return at_share(spec, coefficients_of(spec, shape), share).time_s;
}

// A shape is the kernel but for its size: it slows down alike, and draws as much.
TEST(MeasuredShapes, AreTheirKernelsOfOneSecond) {
  const GpuSpec spec = load_gpu_spec("rtx-8000");
  const std::vector<KernelShape> shapes = shapes_of(spec);
  ASSERT_EQ(shapes.size(), spec.kernels.size());
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const KernelCoefficients own = spec.kernels[k].coefficients;
    const KernelCoefficients made = coefficients_of(spec, shapes[k]);
    const double time_s = at_share(spec, own, 1.0).time_s;
    EXPECT_NEAR(at_share(spec, made, 1.0).time_s, 1.0, 1e-5) << spec.kernels[k].name;
    for (const double share : {0.8, 0.6})
      EXPECT_NEAR(at_share(spec, made, share).time_s, at_share(spec, own, share).time_s / time_s,
                  1e-4)
          << spec.kernels[k].name;
  }
}

TEST(MeasuredShapes, QuantilesAreOrderedByHowMuchALowerClockTakes) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ShapePriors priors(spec);
  double before = 0.0;
  for (int i = 0; i <= 40; ++i) {
    const double now = stretch_at(spec, priors.at(KernelClass::other, i / 40.0), 0.75);
    EXPECT_GE(now, before);
    EXPECT_LE(now, 4.0 / 3.0 + 1e-5);
    before = now;
  }
  // Both ends are there: kernels that follow the clock, and kernels that do not.
  EXPECT_LT(stretch_at(spec, priors.at(KernelClass::other, 0.02), 0.75), 1.03);
  EXPECT_GT(stretch_at(spec, priors.at(KernelClass::other, 0.98), 0.75), 1.3);
}

// Where a time was seen, patterns are of that position.
TEST(MeasuredShapes, OfAKnownPositionFollowTheClockAsMuch) {
  constexpr double of_all = 4.0 / 3.0 - 1.0;
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ShapePriors priors(spec);
  for (const double position : {0.0, 0.3, 0.5, 0.9, 1.0}) {
    for (const double quantile : {0.01, 0.4, 0.99}) {
      const KernelShape& like = priors.at(KernelClass::other, quantile, position);
      EXPECT_NEAR((stretch_at(spec, like, 0.75) - 1.0) / of_all, position, 0.3) << quantile;
    }
  }
}

TEST(MeasuredShapes, ClassesThatWereMeasuredAreNarrower) {
  const auto stretch = [](const char* name, KernelClass kind, double quantile) {
    const GpuSpec spec = load_gpu_spec(name);
    return stretch_at(spec, ShapePriors(spec).at(kind, quantile), 0.75);
  };
  // In its own sweep.
  EXPECT_GT(stretch("rtx-3080-ti", KernelClass::gemm, 0.3), 1.25);
  EXPECT_LT(stretch("rtx-3080-ti", KernelClass::elementwise, 0.7), 1.1);
  // In another GPU's it says less.
  EXPECT_GT(stretch("a100-sxm4-80gb", KernelClass::gemm, 0.5),
            stretch("a100-sxm4-80gb", KernelClass::elementwise, 0.5) + 0.1);
}

// A GPU that was swept knows its kernels best; one that was not has those of all others.
TEST(MeasuredShapes, OwnKernelsCountMost) {
  const auto own_share = [](const char* name) {
    const ShapePriors priors(load_gpu_spec(name));
    int own = 0;
    for (int i = 0; i < 100; ++i)
      own += priors.at(KernelClass::other, (i + 0.5) / 100.0).gpu == std::string(name);
    return own;
  };
  EXPECT_GT(own_share("v100-pcie"), 30);
  EXPECT_EQ(own_share("h100-pcie"), 0);
}

}  // namespace
}  // namespace rubato
