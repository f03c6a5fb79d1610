#include "explorer/given_plan.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "explorer/published.hpp"
#include "models/gpu/spec.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

StoredPlan plan_of(const std::string& rows, const std::string& grid = "") {
  return parse_given_plan("kernel,mem,core\n" + rows, "p.csv", load_gpu_spec("rtx-3080-ti"), grid);
}

StoredPlan table1() {
  const auto path = source_dir() / "docs/examples/spaan2026-table1.csv";
  return parse_given_plan(read_file(path), path.string(), load_gpu_spec("rtx-3080-ti"), "");
}

TEST(GivenPlan, TheShippedExampleIsThePublishedTable) {
  const Trace trace = load_trace("gpt3-xl");
  const StoredPlan plan = table1();
  const PublishedTable published("kernels");
  ASSERT_EQ(plan.clock_of_kernel.size(), trace.kernels.size());
  ASSERT_EQ(published.rows(), trace.kernels.size());
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    EXPECT_EQ(plan.clock_of_kernel.at(trace.kernels[k].name),
              published.text(k, "best_mem") + "/" + published.text(k, "best_core"))
        << k;
    EXPECT_EQ(trace.kernels[k].label, published.text(k, "name")) << k;
  }
}

// Where all kernels stay at default clocks, nothing changes.
TEST(GivenPlan, IsAppliedKernelByKernel) {
  const Trace trace = load_trace("gpt3-xl");
  std::string rows;
  for (const Kernel& kernel : trace.kernels) rows += kernel.name + ",auto,auto\n";
  const Transfer same = transfer(plan_of(rows), trace);
  EXPECT_DOUBLE_EQ(same.transferred.energy_j, same.baseline.energy_j);
  EXPECT_DOUBLE_EQ(same.known_frac, 1.0);
  // One kernel differs: only its launches change.
  const Transfer one = transfer(plan_of("10_gemm_fc,5001,1470\n"), trace);
  EXPECT_GT(one.transferred.time_s, one.baseline.time_s);
  EXPECT_LT(one.transferred.energy_j, one.baseline.energy_j);
  EXPECT_GT(one.known_frac, 0.05);
  EXPECT_LT(one.known_frac, 0.15);
}

// The published plan saves what Table 2 says on the trace it is for: docs/models.md.
TEST(GivenPlan, ThePublishedPlanSavesAboutWhatWasPublished) {
  const Transfer published = transfer(table1(), load_trace("gpt3-xl"));
  EXPECT_NEAR(change_pct(published.transferred.time_s, published.baseline.time_s), 0.0, 1.0);
  EXPECT_NEAR(change_pct(published.transferred.energy_j, published.baseline.energy_j), -15.64, 1.5);
}

TEST(GivenPlan, RefusesWhatCannotBeApplied) {
  const auto fails = [](const std::string& rows, std::string_view what) {
    expect_error<DataError>([&] { return plan_of(rows); }, what, "");
  };
  fails("a,auto,1475\n", "p.csv:2: rtx-3080-ti has no clock auto/1475 among 'full'");
  fails("a,77,auto\n", "p.csv:2: rtx-3080-ti has no clock 77/auto");
  fails("a,auto,auto\na,auto,1470\n", "p.csv:3: kernel 'a' has a clock in an earlier row");
  fails("", "p.csv has no kernels");
  expect_error<DataError>(
      [] {
        return parse_given_plan("kernel,memory,core\n", "p.csv", load_gpu_spec("rtx-3080-ti"), "");
      },
      "mem");
  const std::vector<Trace> traces{load_trace("gpt3-xl")};
  expect_error<UsageError>(
      [&] { require_known_kernels(plan_of("02_gemm_qvk,auto,1470\n"), traces); },
      "kernel '02_gemm_qvk' is in none of the traces; did you mean '02_gemm_qkv'?");
}

}  // namespace
}  // namespace rubato
