// Tables as other programs write them, and what is wrong with some.

#include <string>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/gzip.hpp"
#include "models/measured/measured_table.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

std::string cache_head() {
  return R"({
"device_name": "NVIDIA A100-SXM4-80GB",
"kernel_name": "matmul",
"problem_size": [4096, 4096],
"tune_params_keys": ["block_size_x", "tile", "nvml_gr_clock"],
"tune_params": {"block_size_x": [64, 128], "tile": [4], "nvml_gr_clock": [510, 1410]},
"cache": {
"64,4,510": {"block_size_x": 64, "tile": 4, "nvml_gr_clock": 510, "time": 20.5, "times": [20, 21],
  "nvml_energy": 3.0, "core_freq": 509.7},
"64,4,1410": {"block_size_x": 64, "tile": 4, "nvml_gr_clock": 1410, "time": 10.0, "nvml_energy": 4.0},
"128,4,510": {"block_size_x": 128, "tile": 4, "nvml_gr_clock": 510, "time": "InvalidConfig"},
"128,4,1410": {"block_size_x": 128, "tile": 4, "nvml_gr_clock": 1410, "time": 8.0, "nvml_energy": 4.4,
  "nvml_power": 500.0},)";
}

Sweep read(const std::string& text, const SweepColumns& columns = {}) {
  return parse_sweep(text, "cache.json", load_gpu_spec("a100-sxm4-80gb"), columns);
}

std::string whole_cache() {
  std::string text = cache_head();
  text.pop_back();
  return text.append("}}");
}

TEST(KernelTunerTables, AreSweepsOfTheParametersThatVary) {
  const Sweep sweep = read(whole_cache());
  EXPECT_EQ(sweep.gpu, "NVIDIA A100-SXM4-80GB");
  EXPECT_FALSE(sweep.applied_clocks);
  ASSERT_EQ(sweep.kernels.size(), 2U);
  EXPECT_EQ(sweep.kernels[0].name, "matmul block_size_x=64");
  ASSERT_EQ(sweep.kernels[0].points.size(), 2U);
  const SweepPoint& slow = sweep.kernels[0].points[0];
  EXPECT_EQ(slow.clock.core_mhz, 510.0);
  EXPECT_DOUBLE_EQ(*slow.time_s, 0.0205);
  EXPECT_DOUBLE_EQ(*slow.power_w, 3.0 / 0.0205);
  // The energy counts where both were observed: power is sampled.
  EXPECT_DOUBLE_EQ(*sweep.kernels[1].points[0].power_w, 4.4 / 0.008);
  ASSERT_EQ(sweep.left_out.size(), 1U);
  EXPECT_EQ(sweep.left_out[0], "1 of 4 configurations of matmul: no time, clock, or energy");
}

// A tuned parameter may be called what a sweep's columns are called: it is none of them.
TEST(KernelTunerTables, ParametersAreNoColumnsOfSweeps) {
  const Sweep sweep = read(R"({"kernel_name": "k",
    "tune_params_keys": ["count", "pass", "dram_bytes", "stage"], "cache": {
    "1": {"count": 3, "pass": 1, "dram_bytes": 7, "stage": 2, "time": 2.0, "nvml_power": 200.0,
          "core_freq": 1410},
    "2": {"count": 5, "pass": 1, "dram_bytes": 7, "stage": 2, "time": 2.0, "nvml_power": 200.0,
          "core_freq": 1410}}})");
  ASSERT_EQ(sweep.kernels.size(), 2U);
  EXPECT_EQ(sweep.kernels[0].name, "k count=3");
  EXPECT_EQ(sweep.kernels[0].count, 1U);
  EXPECT_EQ(sweep.kernels[0].points[0].dram_bytes, std::nullopt);
}

TEST(Sweeps, AreReadCompressed) {
  const TemporaryFolder folder;
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const std::string csv = "kernel,core_mhz,time_s,power_w\na,510,2,100\na,1410,1,200\n";
  const Sweep sweep = read_sweep(folder.file("t.csv.gz", gzip(csv)), spec);
  ASSERT_EQ(sweep.points(), 2U);
  EXPECT_EQ(sweep.kernels[0].points[1].time_s, 1.0);
  EXPECT_EQ(read_sweep(folder.file("c.json.gz", gzip(whole_cache())), spec).points(), 3U);
  expect_error<DataError>(
      [&] { (void)read_sweep(folder.file("half.csv.gz", gzip(csv).substr(0, 20)), spec); },
      "half.csv.gz: the gzip data end early");
}

TEST(KernelTunerTables, AreReadUnfinished) {
  const Sweep whole = read(whole_cache());
  const Sweep cut = read(cache_head());
  ASSERT_EQ(cut.kernels.size(), whole.kernels.size());
  EXPECT_EQ(cut.points(), whole.points());
  expect_error<DataError>([] { (void)read(cache_head().append("\"128,4")); }, "cache.json");
}

TEST(KernelTunerTables, ParametersChooseRows) {
  const Sweep sweep = read(whole_cache(), {.where = {{"block_size_x", "64"}}});
  ASSERT_EQ(sweep.kernels.size(), 1U);
  const MeasuredTable table =
      measured_table(sweep, load_gpu_spec("a100-sxm4-80gb"), {}, MissingCells::leave_out);
  EXPECT_EQ(table.clocks.size(), 2U);
}

TEST(KernelTunerTables, ObservedClocksStandInForThoseThatWereNotSet) {
  const Sweep sweep = read(R"({"kernel_name": "k", "tune_params_keys": ["n"], "cache": {
    "1": {"n": 1, "time": 2.0, "nvml_power": 200.0, "core_freq": 1409.6, "mem_freq": 1593.2}}})");
  EXPECT_TRUE(sweep.applied_clocks);
  EXPECT_EQ(sweep.kernels.at(0).name, "k");
  EXPECT_EQ(sweep.kernels.at(0).points.at(0).clock.core_mhz, 1410.0);
}

// Any observer of the GPU's energy or power, and none of the host's.
TEST(KernelTunerTables, EnergiesAreThoseOfAnyObserver) {
  const auto cache = [](const std::string& values) {
    return read(R"({"kernel_name": "k", "tune_params_keys": ["nvml_gr_clock"], "cache": {
      "510": {"nvml_gr_clock": 510, "time": 100.0, )" +
                values + "}}}");
  };
  for (const char* values :
       {R"("ps_energy": 20.0)", R"("ps_power": 200.0)", R"("energy": 20.0)",
        R"("pmt_energy": 20.0, "rapl_energy": 3.0)", R"("nvml_power": 200.0, "ps_energy": 25.0)"}) {
    const Sweep sweep = cache(values);
    EXPECT_DOUBLE_EQ(sweep.kernels.at(0).points.at(0).power_w.value_or(0.0), 200.0) << values;
    EXPECT_FALSE(sweep.notes.empty()) << values;
  }
  EXPECT_TRUE(cache(R"("nvml_energy": 20.0)").notes.empty());
  expect_error<DataError>([&] { (void)cache(R"("rapl_energy": 20.0)"); }, "no configuration");
  expect_error<DataError>([&] { (void)cache(R"("nvml_energy": 2e4)"); },
                          "energy_j over time_s is 200000 W", "--column energy_j=energy_j:mJ");
}

TEST(KernelTunerTables, AMemoryClockThatWasNotTunedIsTheDefaultOne) {
  const GpuSpec spec = load_gpu_spec("rtx-a4000");
  const Sweep sweep = parse_sweep(
      R"({"device_name": "NVIDIA RTX A4000", "kernel_name": "k", "tune_params_keys": [], "cache": {
        "": {"time": 100.0, "core_freq": 1530, "nvml_power": 100.0}}})",
      "cache.json", spec);
  EXPECT_EQ(sweep.kernels.at(0).points.at(0).clock.mem, spec.default_clock.mem);
  EXPECT_EQ(sweep.notes.size(), 1U);
}

TEST(KernelTunerTables, WithoutEnergyOrClocksAreRefused) {
  expect_error<DataError>(
      [] {
        (void)read(R"({"kernel_name": "k", "tune_params_keys": [], "cache": {
          "": {"time": 2.0, "core_freq": 1410}}})");
      },
      "cache.json: cache: no configuration has 'time', a clock, and an energy or power such as "
      "'nvml_energy'",
      "NVMLObserver");
  expect_error<DataError>([] { (void)read("{\"kernel_name\": \"k\"}"); }, "tune_params_keys");
  // Its results for others (schema T4) name neither.
  expect_error<DataError>([] { (void)read(R"({"results": [{"configuration": {}}]})"); },
                          "cache.json: is what Kernel Tuner's store_output_file writes",
                          "tune_kernel(..., cache=");
}

// Zeus writes a row per rank; instructions are passes.
TEST(ZeusProfiles, RanksAreRepeatsAndInstructionsArePasses) {
  const Sweep sweep = read(
      "rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n"
      "0,0,0,0,0,forward,1410,0.10,30\n1,1,0,0,0,forward,1410,0.11,32\n"
      "0,0,0,0,0,backward,1410,0.2,60\n0,0,0,0,0,load,1410,0.01,1\n");
  ASSERT_EQ(sweep.kernels.size(), 3U);
  EXPECT_EQ(sweep.kernels[0].name, "0:forward");
  EXPECT_EQ(sweep.kernels[0].pass, Pass::forward);
  EXPECT_EQ(sweep.kernels[1].pass, Pass::backward);
  EXPECT_EQ(sweep.kernels[2].pass, Pass::unknown);
  const MeasuredTable table =
      measured_table(sweep, load_gpu_spec("a100-sxm4-80gb"), {}, MissingCells::leave_out);
  EXPECT_DOUBLE_EQ(table.cells->find(KernelId{0}, {MemStateId{0}, 1410.0})->time_s, 0.105);
  EXPECT_EQ(table.noise->repeats, 1U);
}

TEST(SweepRows, EnergyThatContradictsTimeAndPowerIsRefused) {
  const std::string header = "kernel,core_mhz,time_s,power_w,energy_j\n";
  EXPECT_EQ(read(header + "a,510,2,100,209\n").points(), 1U);
  expect_error<DataError>([&] { (void)read(header + "a,510,2,100,200\na,1410,1,200,0.2\n"); },
                          "cache.json:3: energy is 0.2 J, but 1 s at 200 W are 200 J; expected "
                          "agreement within 10 %",
                          "--column energy_j=NAME:mJ");
  EXPECT_EQ(
      read(header + "a,510,2,100,200000\n", {.renamed = {{"energy_j", "energy_j:mJ"}}}).points(),
      1U);
}

TEST(SweepRows, OfTwoGpusAndUnknownUnitsAreRefused) {
  expect_error<DataError>(
      [] { (void)read("kernel,gpu,core_mhz,time_s,power_w\na,A,510,2,100\na,B,510,2,100\n"); },
      "gpu is 'B' after rows of 'A'; expected one GPU", "--where 'gpu=A'");
  expect_error<UsageError>(
      [] {
        (void)read("kernel,core_mhz,time_s,power_w\na,510,2,100\n",
                   {.renamed = {{"time_s", "time_s:fortnights"}}});
      },
      "unit 'fortnights' of column time_s is not known");
}

}  // namespace
}  // namespace rubato
