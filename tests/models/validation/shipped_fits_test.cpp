#include "models/validation/shipped_fits.hpp"

#include <algorithm>
#include <cctype>
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"

namespace rubato {

void PrintTo(const ShippedFit& fit, std::ostream* out) { *out << fit.spec; }

namespace {

class ShippedFits : public testing::TestWithParam<ShippedFit> {};

// Each spec is what the code makes of the shipped numbers. Other processors round otherwise on the
// way to a flat minimum, so predictions are compared, where they were measured.
TEST_P(ShippedFits, AreMadeAgain) {
  const ShippedFit& fit = GetParam();
  const GpuSpec shipped = load_gpu_spec(fit.spec);
  const GpuSpec made = fit_again(fit, source_dir(), {});
  EXPECT_EQ(made.calibrated, shipped.calibrated);
  EXPECT_EQ(made.sources.at("core_power"),
            shipped.sources.at("core_power").substr(0, made.sources.at("core_power").size()));
  const SpecDifference d = difference(fit, source_dir(), shipped, made);
  EXPECT_GT(d.energy.count, 8U);
  EXPECT_EQ(d.time.count, d.energy.count);
  EXPECT_LE(d.time.mean, 0.2);
  EXPECT_LE(d.energy.mean, 0.3);
  EXPECT_LE(d.time.worst, 2.0);
  EXPECT_LE(d.energy.worst, 3.0);
}

INSTANTIATE_TEST_SUITE_P(Specs, ShippedFits,
                         testing::ValuesIn(shipped_fits().begin(), shipped_fits().end()),
                         [](const testing::TestParamInfo<ShippedFit>& info) {
                           std::string name(info.param.spec);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// A difference is seen: the same kernels on a board that draws more at rest.
TEST(ShippedFitsDifference, IsThatOfTheirPredictions) {
  const ShippedFit& fit = shipped_fit("v100-sxm2");
  const GpuSpec shipped = load_gpu_spec(fit.spec);
  GpuSpec other = shipped;
  for (MemState& state : other.mem_states) state.base_power_w *= 1.5;
  const SpecDifference same = difference(fit, source_dir(), shipped, shipped),
                       apart = difference(fit, source_dir(), shipped, other);
  EXPECT_EQ(same.time.worst, 0.0);
  EXPECT_EQ(same.energy.worst, 0.0);
  EXPECT_GT(apart.energy.mean, 1.0);
}

// Whatever says that it was fitted can be fitted again; of the rest there are constants only.
TEST(ShippedFitsList, NamesEverySpecThatWasFitted) {
  std::set<std::string> named;
  for (const ShippedFit& fit : shipped_fits()) named.emplace(fit.spec);
  EXPECT_EQ(named.size(), shipped_fits().size());
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    // Specs without kernels were fitted to operators (docs/gpus.md).
    // Fitted once, to a paper (paper_test.cpp holds these) and to powers beside utilisations.
    static const std::set<std::string> once{"rtx-3080-ti", "rtx-3080-ti-without-table1",
                                            "gtx-titan-x", "titan-xp", "titan-v"};
    if (once.contains(name)) {
      EXPECT_FALSE(named.contains(name)) << name;
      continue;
    }
    const bool fitted = (spec.calibrated && !spec.kernels.empty()) || !spec.fit_errors.empty();
    EXPECT_EQ(named.contains(name), fitted) << name;
  }
  expect_error<UsageError>([] { (void)shipped_fit("v100-sxm"); }, "did you mean 'v100-sxm2'");
}

}  // namespace
}  // namespace rubato
