#include "explorer/results/measurements.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "explorer/results/store.hpp"
#include "models/gpu/clock_grid.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

TEST(ReplayStore, KeepsEveryRowAndVerdict) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  Capture capture;
  capture.name = "run";
  capture.devices.resize(1);
  capture.streams.resize(1);
  capture.kernels.resize(2);
  capture.kernels[0].name = "copy";
  capture.kernels[0].kind = KernelClass::elementwise;
  capture.kernels[0].flops = 1e3;
  capture.kernels[0].dram_bytes = 1e9;
  capture.kernels[1].name = "bare";
  for (std::uint32_t k = 0; k < 2; ++k) {
    CapturedLaunch launch;
    launch.kernel = KernelId{k};
    launch.start_ns = 10'000'000 * std::int64_t{k};
    launch.duration_ns = 10'000'000;
    launch.step = 0;
    capture.launches.push_back(launch);
  }
  capture.steps = {{"first", 0, 20'000'000}};
  const CaptureReplay replay(capture, spec, spec.default_clock);
  const ReplayComparison comparison = compare(replay, run_all(replay, spec.default_clock));

  const TemporaryFolder folder;
  const auto path = folder / "r.db";
  EXPECT_EQ(
      store_replay(path, {"run.json", "1593/auto", "1593/auto", "cmd"}, replay, comparison, {}), 1);
  EXPECT_EQ(
      store_replay(path, {"run.json", "1593/auto", "1593/auto", "cmd"}, replay, comparison, {}), 2);
  {
    const ResultStore store = ResultStore::open_read_only(path);
    const QueryResult rows = store.query(
        "SELECT name, verdict, source, time_error_pct FROM measurement_rows WHERE measurement_id = "
        "2 AND part = 'kernel' ORDER BY row_id");
    ASSERT_EQ(rows.rows.size(), 2U);
    EXPECT_EQ(std::get<std::string>(rows.rows[0][1]), "off");  // 0.6 ms of 10
    EXPECT_EQ(std::get<std::string>(rows.rows[1][1]), "not predicted");
    EXPECT_TRUE(std::holds_alternative<std::monostate>(rows.rows[1][2]));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(rows.rows[1][3]));
    const QueryResult step = store.query(
        "SELECT measured_time_s, measured_energy_j FROM measurement_rows WHERE part = 'step'");
    ASSERT_EQ(step.rows.size(), 2U);
    EXPECT_DOUBLE_EQ(std::get<double>(step.rows[0][0]), 0.02);
  }
}

}  // namespace
}  // namespace rubato
