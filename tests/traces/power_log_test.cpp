#include "traces/power_log.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

// 2024-05-22 17:15:22 of a calendar, in seconds: date -u -d '2024-05-22 17:15:22' +%s
constexpr double noon_s = 1716398122.0;

TEST(PowerLog, NvidiaSmiWithUnitsGapsSeveralGpusAndACutLine) {
  constexpr const char* text =
      "timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks.current.memory [MHz]\n"
      "2024/05/22 17:15:22.000, 0, 100.50 W, 1410 MHz, 1593 MHz\n"
      "2024/05/22 17:15:22.000, 1, 61.00 W, 210 MHz, 1593 MHz\n"
      "2024/05/22 17:15:22.100, 0, [N/A], 1410 MHz, 1593 MHz\n"
      "2024/05/22 17:15:22.200, 0, 300.25 W, [N/A], 1593 MHz\n"
      "2024/05/22 17:15:22.200, 1, 62.00 W, 210 MHz, 1593 MHz\n"
      "2024/05/22 17:15:22.30";
  const PowerLog log = parse_power_log(text, "smi.csv", {.gpu = 0});
  EXPECT_EQ(log.kind, PowerLogKind::nvidia_smi);
  EXPECT_EQ(log.base, TimeBase::local);
  EXPECT_FALSE(log.instantaneous);
  ASSERT_EQ(log.samples.size(), 2U);
  EXPECT_DOUBLE_EQ(log.samples[0].time_s, noon_s);
  EXPECT_DOUBLE_EQ(log.samples[0].power_w, 100.5);
  EXPECT_EQ(log.samples[0].core_mhz, 1410.0);
  EXPECT_DOUBLE_EQ(log.samples[1].power_w, 300.25);
  EXPECT_FALSE(log.samples[1].core_mhz);
  ASSERT_EQ(log.left_out.size(), 2U);
  EXPECT_EQ(log.left_out[0], "line 7: cut off");
  EXPECT_EQ(log.left_out[1], "1 samples without power");
  EXPECT_DOUBLE_EQ(parse_power_log(text, "smi.csv", {.gpu = 1}).samples[1].power_w, 62.0);
  expect_error<UsageError>([&] { (void)parse_power_log(text, "smi.csv"); },
                           "interleaved samples of GPU 0, 1", "--power-gpu");
  expect_error<UsageError>([&] { (void)parse_power_log(text, "smi.csv", {.gpu = 7}); }, "GPU 0, 1");
}

TEST(PowerLog, NvidiaSmiInstantWithoutUnits) {
  const PowerLog log = parse_power_log(
      "timestamp, power.draw.instant [W]\n2024/05/22 17:15:22.5, 100\n2024/05/22 17:15:23.5, 110\n",
      "smi.csv");
  EXPECT_TRUE(log.instantaneous);
  EXPECT_DOUBLE_EQ(log.period_s(), 1.0);
  EXPECT_DOUBLE_EQ(log.samples[0].time_s, noon_s + 0.5);
}

TEST(PowerLog, DcgmNeedsAPeriodUnlessLinesHaveTimes) {
  constexpr const char* text =
      "#Entity   POWER   SMCLK\nID\nGPU 0     341.6   1410\nGPU 1  50.1  N/A\nGPU 0   300.0  N/A\n"
      "GPU 1  50.2 210\nGPU 0 12";
  expect_error<UsageError>([&] { (void)parse_power_log(text, "dmon.txt", {.gpu = 0}); },
                           "dmon.txt:1: the rows of dcgmi dmon have no times", "--power-period");
  const PowerLog log = parse_power_log(text, "dmon.txt", {.gpu = 0, .period_s = 0.1});
  EXPECT_EQ(log.base, TimeBase::relative);
  ASSERT_EQ(log.samples.size(), 2U);
  EXPECT_NEAR(log.period_s(), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(log.samples[1].power_w, 300.0);
  EXPECT_EQ(log.samples[0].core_mhz, 1410.0);
  const PowerLog dated = parse_power_log(
      "#Entity POWER\n2024-05-22 17:15:22 GPU 0 100\n2024-05-22 17:15:23 GPU 0 120\n", "dmon.txt");
  EXPECT_EQ(dated.base, TimeBase::local);
  EXPECT_DOUBLE_EQ(dated.samples[1].time_s, noon_s + 1.0);
}

TEST(PowerLog, UnixSecondsAndOtherUnits) {
  const PowerLog own = parse_power_log(
      "timestamp,power_w,core_mhz,mem_mhz\n1716398122.25,100,1410,1593\n1716398122.5,200,1400,\n",
      "own.csv");
  EXPECT_EQ(own.kind, PowerLogKind::samples);
  EXPECT_EQ(own.base, TimeBase::utc);
  EXPECT_DOUBLE_EQ(own.samples[0].time_s, noon_s + 0.25);
  EXPECT_FALSE(own.samples[1].mem_mhz);
  const PowerLog zeus = parse_power_log("Time,Power0,Power1\n1716398122,100,7\n1716398123,200,8\n",
                                        "zeus.csv", {.gpu = 1});
  EXPECT_EQ(zeus.kind, PowerLogKind::zeus);
  EXPECT_DOUBLE_EQ(zeus.samples[1].power_w, 8.0);
  EXPECT_EQ(parse_power_log("time_s,power_w\n0,1\n1,2\n", "x").base, TimeBase::relative);
  // Nanoseconds since 1970, out of order and once repeated.
  const PowerLog nanoseconds = parse_power_log(
      "timestamp,power_w\n1716398123000000000,3\n1716398122000000000,1\n1716398122000000000,2\n",
      "x");
  ASSERT_EQ(nanoseconds.samples.size(), 2U);
  EXPECT_NEAR(nanoseconds.samples[0].time_s, noon_s, 1e-6);
}

// As `capture trace` writes them.
TEST(PowerLog, OfOurOwnRecorder) {
  const PowerLog log = parse_power_log(
      "timestamp_s,power_w,energy_j,core_mhz,mem_mhz,temperature_c,throttled\n"
      "1716398122.000000,100.5,1.0,1410,1593,40,\n1716398122.020000,,3.0,1410,1593,40,power\n"
      "1716398122.040000,200,5.0,1395,1593,41,\n",
      "gpt3-xl.power.csv");
  EXPECT_EQ(log.base, TimeBase::utc);
  ASSERT_EQ(log.samples.size(), 2U);  // one without power
  EXPECT_NEAR(log.samples[1].time_s, noon_s + 0.04, 1e-6);
  EXPECT_DOUBLE_EQ(log.samples[1].power_w, 200.0);
  EXPECT_EQ(log.samples[1].core_mhz, 1395.0);
}

TEST(PowerLog, ErrorsSayWhereAndWhat) {
  const auto parse = [](const char* text) { return [=] { (void)parse_power_log(text, "p.csv"); }; };
  expect_error<DataError>(parse(""), "p.csv: not a power log", "nvidia-smi");
  expect_error<DataError>(parse("a,b\n1,2\n"), "p.csv: not a power log");
  expect_error<DataError>(parse("timestamp,power_w\n1,abc\n2,1\n"), "p.csv:2: power is 'abc'");
  expect_error<DataError>(parse("timestamp,power_w\n1,-4\n2,1\n"), "p.csv:2: power is '-4'");
  expect_error<DataError>(parse("timestamp,power_w\n1,2,3\n2,1\n"), "p.csv:2: 3 cells; expected 2");
  expect_error<DataError>(parse("timestamp,power_w\n2024/13/22 17:15:22,3\n"), "the time is");
  expect_error<DataError>(parse("timestamp,power_w\n1,3\n"), "1 samples with power");
  expect_error<DataError>(parse("start_time,window_name,elapsed_time,gpu0_energy\n1,a,2,3\n"),
                          "a window log of Zeus", "PowerMonitor");
  expect_error<DataError>(parse("#Entity SMCLK\nGPU 0 1\n"), "no column POWER");
}

}  // namespace
}  // namespace rubato
