#include "traces/power_log.hpp"

#include <array>
#include <numeric>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

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
  const PowerLog log = parse_power_log(text, "smi.csv", {.gpu = "0"});
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
  EXPECT_DOUBLE_EQ(parse_power_log(text, "smi.csv", {.gpu = "1"}).samples[1].power_w, 62.0);
  expect_error<UsageError>([&] { (void)parse_power_log(text, "smi.csv"); },
                           "interleaved samples of 2 GPUs: index 0; index 1", "--power-gpu");
  expect_error<UsageError>([&] { (void)parse_power_log(text, "smi.csv", {.gpu = "7"}); },
                           "no GPU is '7'; the log has index 0; index 1");
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
  expect_error<UsageError>([&] { (void)parse_power_log(text, "dmon.txt", {.gpu = "0"}); },
                           "dmon.txt:1: the rows of dcgmi dmon have no times", "--power-period");
  const PowerLog log = parse_power_log(text, "dmon.txt", {.gpu = "0", .period_s = 0.1});
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
                                        "zeus.csv", {.gpu = "1"});
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

// The same twelve samples, 100 W to 111 W from noon on, 0.1 s apart, however they are written.
constexpr std::size_t sample_count = 12;
struct Instant {
  double s;  // after noon
  double power_w;
  std::string clock;  // "17:15:22.100"
};
std::array<Instant, sample_count> instants() {
  std::array<Instant, sample_count> all;
  for (std::size_t i = 0; i < sample_count; ++i) {
    const double s = 0.1 * static_cast<double>(i);
    all[i] = {s, 100.0 + static_cast<double>(i), fmt::format("17:15:{:06.3f}", 22.0 + s)};
  }
  return all;
}
template <class Row>
std::string written(std::string text, Row row) {
  for (const Instant& one : instants()) text += row(one) + "\n";
  return text;
}
void expect_the_twelve(const PowerLog& log, TimeBase base, const std::string& what) {
  ASSERT_EQ(log.samples.size(), sample_count) << what;
  EXPECT_EQ(log.base, base) << what;
  for (std::size_t i = 0; i < sample_count; ++i) {
    EXPECT_NEAR(log.samples[i].power_w, instants()[i].power_w, 1e-9) << what;
    const double from_s = base == TimeBase::relative ? log.samples[0].time_s : noon_s;
    EXPECT_NEAR(log.samples[i].time_s - from_s, instants()[i].s, 1e-5) << what;
  }
}

TEST(PowerLog, TimesUnitsAndSeparatorsOfManyTools) {
  struct Way {
    const char* header;
    const char* row;  // {0}: clock, {1}: W, {2}: seconds since 1970, {3}: mW, ms
    TimeBase base;
  };
  constexpr auto utc = TimeBase::utc, local = TimeBase::local, relative = TimeBase::relative;
  const std::array ways{
      Way{"timestamp, index, power.draw [W]\n", "2024/05/22 {0}, 0, {1:.2f} W", local},
      Way{"timestamp, power.draw [mW]\n", "2024/05/22 {0}, {3:.0f} mW", local},
      Way{"timestamp, power.draw\n", "2024/05/22 {0}, {3:.0f} mW", local},
      Way{"time,power_mw\n", "2024-05-22T{0},{3}", local},
      Way{"time,power (mW)\n", "2024-05-22T{0}Z,{3}", utc},
      Way{"time,power_w\n", "2024-05-22T{0}+00:00,{1}", utc},
      Way{"datetime,Power Draw (W)\n", "2024-05-22 {0} UTC,{1}", utc},
      Way{"timestamp,power_w\n", "{2:.3f},{1}", utc},
      Way{"timestamp,power_w\n", "{4:.0f},{1}", utc},
      Way{"timestamp_ms,power_w\n", "{4:.0f},{1}", utc},
      Way{"timestamp,power_w\n", "{4:.0f}000,{1}", utc},
      Way{"timestamp_ns,power_w\n", "{4:.0f}000000,{1}", utc},
      Way{"elapsed_ms,power_w\n", "{5:.0f},{1}", relative},
      Way{",timestamp,power_w\n", "7,{2:.3f},{1}", utc},
      Way{",power_w\n", "2024-05-22 {0},{1}", local},
      Way{"\xEF\xBB\xBFtimestamp;power_w\r\n", "2024/05/22 {0};{1}\r", local},
      Way{"timestamp\tpower_w\n", "2024/05/22 {0}\t{1}", local},
      Way{"\"timestamp\",\"power_w\"\n", "\"2024/05/22 {0}\",\"{1}\"", local},
      Way{"#Date       Time        gpu    pwr   mclk   pclk\n#YYYYMMDD   HH:MM:SS    Idx      W  "
          "  MHz    MHz\n",
          " 20240522   {0}      0    {1}   1593   1410", local},
      Way{"#Date, Time, gpu, pwr, mem\n#YYYYMMDD, HH:MM:SS, Idx, W, %\n",
          "20240522, {0}, 0, {1}, 12", local},
      Way{"#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n", " {0}  0  {1}", relative},
      Way{"", "2024/05/22 {0}, 0, {1:.2f} W, 1410 MHz", local},
      Way{"", "2024/05/22 {0}, 00000000:07:00.0, {1:.2f} W, 35 %, [N/A]", local},
      Way{"timestamp,gpu,uuid,DCGM_FI_DEV_POWER_USAGE\n", "{2:.3f},0,GPU-12,{1}", utc},
  };
  for (const Way& way : ways) {
    const std::string text = written(way.header, [&](const Instant& one) {
      const double unix_s = noon_s + one.s;
      return fmt::format(fmt::runtime(way.row), one.clock, one.power_w, unix_s, 1e3 * one.power_w,
                         1e3 * unix_s, 1e3 * one.s);
    });
    const PowerLog log = parse_power_log(text, "p.csv");
    expect_the_twelve(log, way.base, text.substr(0, 160));
    EXPECT_TRUE(log.left_out.empty()) << text.substr(0, 160);
    for (const PowerSample& sample : log.samples)
      EXPECT_TRUE(!sample.mem_mhz || *sample.mem_mhz == 1593.0) << text.substr(0, 160);
  }
  // 17:15:22 UTC, as clocks 5:30 h ahead and 7 h behind show it.
  for (const auto& [clock, zone] : {std::pair{"22:45:22", "+05:30"}, {"10:15:22", "-0700"}}) {
    const std::string text =
        fmt::format("t,power_w\n2024-05-22 {0}{1},1\n2024-05-22 {0}.5{1},2\n", clock, zone);
    EXPECT_DOUBLE_EQ(parse_power_log(text, "p.csv").samples[0].time_s, noon_s) << text;
  }
  // Times of day go on over midnight.
  const PowerLog night =
      parse_power_log("#Time gpu pwr\n 23:59:59 0 1\n 00:00:00 0 2\n 00:00:01 0 3\n", "p.txt");
  EXPECT_DOUBLE_EQ(night.samples[2].time_s - night.samples[0].time_s, 2.0);
}

TEST(PowerLog, Utf16OfPowerShell) {
  const std::string text = written("timestamp, power.draw [W]\r\n", [](const Instant& one) {
    return fmt::format("2024/05/22 {}, {} W\r", one.clock, one.power_w);
  });
  for (const bool little : {true, false}) {
    std::string wide = little ? "\xFF\xFE" : "\xFE\xFF";
    for (const char c : text) wide += little ? std::string{c, '\0'} : std::string{'\0', c};
    expect_the_twelve(parse_power_log(wide, "p.csv"), TimeBase::local, "UTF-16");
  }
}

TEST(PowerLog, DatesWithTheDayFirst) {
  const PowerLog log = parse_power_log(
      "timestamp,power\n22.05.2024 17:15:22.5,100\n22.05.2024 17:15:23.5,110\n", "d.csv");
  EXPECT_DOUBLE_EQ(log.samples[0].time_s, noon_s + 0.5);
  EXPECT_DOUBLE_EQ(log.samples[1].time_s, noon_s + 1.5);
  expect_error<DataError>(
      [] {
        (void)parse_power_log("timestamp,power\n05/22/2024 5:15 PM,1\n05/22/2024 5:16 PM,1\n",
                              "d.csv");
      },
      "the time is '05/22/2024 5:15 PM'; expected 2026-");
}

// cat log.csv log.csv: with the header again, and each sample twice.
TEST(PowerLog, SamplesThatAreThereTwiceCountOnce) {
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += fmt::format("{:.1f},{}\n", 1716398122.0 + 0.1 * i, 100 + i);
  const std::string text = "timestamp,power\n" + rows;
  const PowerLog once = parse_power_log(text, "p.csv"),
                 twice = parse_power_log(text + text, "p.csv");
  ASSERT_EQ(twice.samples.size(), once.samples.size());
  EXPECT_DOUBLE_EQ(twice.samples[39].power_w, 139.0);
  EXPECT_EQ(twice.left_out.front(), "40 samples that are there twice");
}

TEST(PowerLog, KilowattsAreNotTakenForWatts) {
  const std::string text = "timestamp,{}\n1716398122.0,0.095\n1716398122.1,0.301\n";
  expect_error<DataError>(
      [&] { (void)parse_power_log(fmt::format(fmt::runtime(text), "power"), "k.csv"); },
      "its powers are at most 0.301 W", "power_kw");
  const PowerLog log = parse_power_log(fmt::format(fmt::runtime(text), "power_kw"), "k.csv");
  EXPECT_DOUBLE_EQ(log.samples[1].power_w, 301.0);
}

TEST(PowerLog, MayBePacked) {
  const TemporaryFolder folder;
  const auto path = folder / "p.csv.gz";
  const std::string text = "timestamp,power\n1716398122.0,95\n1716398122.1,301\n";
  gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  EXPECT_EQ(read_power_log(path).samples.size(), 2U);
}

TEST(PowerLog, OddLinesAreLeftOutAndCounted) {
  const auto row = [](const Instant& one) {
    return fmt::format("2024/05/22 {}, 0, {} W", one.clock, one.power_w);
  };
  const std::string header = "timestamp, index, power.draw [W]\n", text = written(header, row);
  // A log appended to another, with other columns too.
  const std::size_t middle = text.find('\n', text.size() / 2) + 1;
  std::string other = text.substr(0, middle) + "timestamp, power.draw.instant [W], uuid\n";
  for (const Instant& one : instants())
    if (text.find(one.clock) >= middle)
      other += fmt::format("2024/05/22 {}, {} W, GPU-1\n", one.clock, one.power_w);
  const PowerLog appended = parse_power_log(other, "p.csv");
  expect_the_twelve(appended, TimeBase::local, other);
  EXPECT_EQ(appended.left_out, std::vector<std::string>{"1 more headers within the log"});
  EXPECT_FALSE(appended.instantaneous);  // a part is not
  const std::string noisy = "started by hand\n" + text.substr(0, middle) +
                            "Unable to determine the device handle for GPU 0000:3B:00.0\n\n" +
                            text.substr(middle) + "2024/05/22 17:15:24.000, 0, 11";
  const PowerLog log = parse_power_log(noisy, "p.csv");
  expect_the_twelve(log, TimeBase::local, noisy);  // "11" is the begin of "112 W"
  EXPECT_EQ(log.left_out,
            (std::vector<std::string>{"line 17: cut off",
                                      "2 lines that cannot be read; the first is line 1"}));
  // More odd lines than good ones are no log.
  expect_error<DataError>(
      [] { (void)parse_power_log("timestamp,power_w\n1,2\nx,1\ny,2\n2,3\nz,3\n", "p.csv"); },
      "p.csv:3: the time is 'x'");
  expect_error<DataError>([] { (void)parse_power_log("t,power_w\n1,95000\n2,96000\n", "p.csv"); },
                          "p.csv:2: power is '95000'", "mW");
}

TEST(PowerLog, AnotherPowerColumnWhereTheBestHasNoValues) {
  const auto text = [](const char* instant) {
    return written("timestamp, power.draw.instant [W], power.draw [W]\n", [&](const Instant& one) {
      return fmt::format("2024/05/22 {}, {}, {} W", one.clock, one.s == 0.0 ? "77 W" : instant,
                         one.power_w);
    });
  };
  const PowerLog log = parse_power_log(text("[N/A]"), "p.csv");
  expect_the_twelve(log, TimeBase::local, "power.draw");
  EXPECT_FALSE(log.instantaneous);
  EXPECT_EQ(log.left_out, std::vector<std::string>{
                              "power.draw.instant has hardly any values; power.draw is taken"});
  const PowerLog instant = parse_power_log(text("55 W"), "p.csv");
  EXPECT_TRUE(instant.instantaneous);
  EXPECT_DOUBLE_EQ(instant.samples[1].power_w, 55.0);
}

TEST(PowerLog, GpusAreToldApartByWhateverColumnsThereAre) {
  struct Way {
    const char* header;
    std::array<const char*, 3> gpus;  // cells; the first is the one that is meant
    std::vector<const char*> asked;   // any of these means it
  };
  const std::array ways{
      Way{"pci.bus_id",
          {"00000000:07:00.0", "00000000:0F:00.0", "00000001:07:00.0"},
          {"00000000:07:00.0", "0000:07:00.0", "07:00.0"}},
      Way{"uuid", {"GPU-aa-11", "GPU-bb-11", "GPU-ab-11"}, {"GPU-aa-11", "gpu-aa"}},
      Way{"index", {"0", "1", "10"}, {"0"}},
      Way{"gpu_name", {"NVIDIA A100", "NVIDIA T4", "NVIDIA T40"}, {"NVIDIA A100", "nvidia a100"}},
      Way{"host, index", {"n1, 0", "n2, 0", "n1, 1"}, {"n1/0", "0/n1"}},
      Way{"index, name", {"0, A100", "1, A100", "2, A100"}, {"0"}},
  };
  for (const Way& way : ways) {
    const std::string text = written(
        fmt::format("timestamp, {}, power.draw [W]\n", way.header), [&](const Instant& one) {
          std::string rows;
          for (std::size_t g = 0; g < way.gpus.size(); ++g)
            rows += fmt::format("{}2024/05/22 {}, {}, {} W", g == 0 ? "" : "\n", one.clock,
                                way.gpus[g], one.power_w + 50.0 * static_cast<double>(g));
          return rows;
        });
    for (const char* asked : way.asked)
      expect_the_twelve(parse_power_log(text, "p.csv", {.gpu = asked}), TimeBase::local, asked);
    expect_error<UsageError>([&] { (void)parse_power_log(text, "p.csv"); },
                             "interleaved samples of 3 GPUs: ", "--power-gpu");
    expect_error<UsageError>([&] { (void)parse_power_log(text, "p.csv", {.gpu = "99"}); },
                             "no GPU is '99'", "--power-gpu takes any of these");
  }
  const std::string wide = written("Time,Power0,Power1\n", [](const Instant& one) {
    return fmt::format("{:.3f},{},{}", noon_s + one.s, one.power_w, 50);
  });
  expect_the_twelve(parse_power_log(wide, "p.csv", {.gpu = "0"}), TimeBase::utc, wide);
  expect_error<UsageError>([&] { (void)parse_power_log(wide, "p.csv"); }, "index 0; index 1");
}

TEST(PowerLog, GpusThatNothingTellsApartAreAnError) {
  const auto two = [](const char* header, const char* row) {
    return written(header, [&](const Instant& one) {
      return fmt::format(fmt::runtime(row), one.clock, one.power_w);
    });
  };
  const std::string bursts =
      two("timestamp, power_w\n", "2024/05/22 {0}1, {1}\n2024/05/22 {0}3, 50");
  expect_error<DataError>([&] { (void)parse_power_log(bursts, "p.csv"); },
                          "its rows come in groups of 2, as of 2 GPUs",
                          "index, pci.bus_id or uuid");
  // Without a header a whole number that changes may be the index.
  const std::string bare = two("", "2024/05/22 {0}, 0, {1} W\n2024/05/22 {0}, 1, 50 W");
  expect_error<DataError>([&] { (void)parse_power_log(bare, "p.csv"); }, "p.csv: no header",
                          "timestamp, index, power.draw [W]");
  expect_the_twelve(parse_power_log(bare, "p.csv", {.gpu = "0"}), TimeBase::local, bare);
  const std::string numbers = two("", "2024/05/22 {0}, 0, {1}, 1410, 1593");
  expect_error<DataError>([&] { (void)parse_power_log(numbers, "p.csv"); }, "no header");
  // Ten samples a second with whole seconds only are of one GPU.
  std::string coarse = "timestamp,power_w\n";
  for (int i = 0; i < 100; ++i) coarse += fmt::format("{},{}\n", 1716398122 + i / 10, 100 + i);
  EXPECT_EQ(parse_power_log(coarse, "p.csv").samples.size(), 10U);
}

TEST(PowerLog, OptionsThatCannotWorkAreErrors) {
  constexpr const char* text = "timestamp,power_w\n1716398122,100\n1716398123,200\n";
  expect_error<UsageError>([&] { (void)parse_power_log(text, "p.csv", {.gpu = "0"}); },
                           "does not say of which GPU its rows are", "leave it out");
  expect_error<UsageError>([&] { (void)parse_power_log(text, "p.csv", {.period_s = 0.1}); },
                           "its rows have times of their own", "leave --power-period out");
  constexpr const char* dmon =
      "# gpu    pwr     sm    mem\n# Idx      W      %      %\n"
      "    0     95      0      0\n    0    341     98     40\n";
  expect_error<UsageError>([&] { (void)parse_power_log(dmon, "dmon.txt"); },
                           "dmon.txt:1: the rows of the log have no times", "-o DT");
  const PowerLog log = parse_power_log(dmon, "dmon.txt", {.period_s = 1.0});
  EXPECT_DOUBLE_EQ(log.samples[1].power_w, 341.0);
  EXPECT_FALSE(log.samples[1].mem_mhz);  // 40 % of its use
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
