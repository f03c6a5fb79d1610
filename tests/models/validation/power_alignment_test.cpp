#include "models/validation/power_alignment.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

// Busy spells of uneven length over 6 s, so that only one shift fits.
StepCurve spells() {
  return {{0.0, 0.4, 0.7, 1.6, 1.9, 2.0, 2.6, 3.7, 4.0, 4.2, 5.1, 6.0},
          {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0}};
}

// What a sensor logs of 100 W idle and 200 W more when busy.
PowerLog logged(const StepCurve& curve, const SensorModel& sensor, double log_minus_curve_s,
                double period_s = 0.02) {
  PowerLog log;
  log.file = "log.csv";
  for (double s = 0.005; s < curve.last_s(); s += period_s)
    log.samples.push_back(
        {s + log_minus_curve_s, 100.0 + 200.0 * reading(curve, sensor, s), {}, {}});
  return log;
}

TEST(StepCurve, MeansAreExact) {
  const StepCurve curve({1.0, 2.0, 4.0}, {3.0, 1.0, 0.0});
  EXPECT_DOUBLE_EQ(curve.mean(1.0, 4.0), 5.0 / 3.0);
  EXPECT_DOUBLE_EQ(curve.mean(0.0, 1.5), 1.0);
  EXPECT_DOUBLE_EQ(curve.mean(1.5, 1.5), 3.0);
  EXPECT_DOUBLE_EQ(curve.mean(5.0, 5.0), 0.0);
  EXPECT_DOUBLE_EQ(curve.mean(0.5, 0.5), 0.0);
}

TEST(Sensor, RunningAverageAndPartOfACycle) {
  const StepCurve curve({0.0, 10.0, 11.0}, {0.0, 100.0, 0.0});
  EXPECT_NEAR(reading(curve, {.window_s = 1.0, .cycle_s = 0.0}, 10.25), 25.0, 1e-9);
  // At 10.19 the last cycle ended at 10.1; its window began at 10.075.
  EXPECT_NEAR(reading(curve, {.window_s = 0.025, .cycle_s = 0.1}, 10.19), 100.0, 1e-9);
  EXPECT_NEAR(reading(curve, {.window_s = 0.025, .cycle_s = 0.1}, 10.09), 0.0, 1e-9);
}

TEST(Sensor, ByGpuAndField) {
  PowerLog log;
  log.kind = PowerLogKind::nvidia_smi;
  EXPECT_EQ(sensor_of("NVIDIA GeForce RTX 3080 Ti", log).window_s, 1.0);
  EXPECT_EQ(sensor_of("NVIDIA A100-SXM4-80GB", log).cycle_s, 0.1);
  EXPECT_EQ(sensor_of("NVIDIA GeForce GTX 1080 Ti", log).window_s, 0.0);
  // power.draw of an H100 is the mean of the last second, anew every 100 ms (measured, see there).
  EXPECT_EQ(sensor_of("NVIDIA H100 80GB HBM3", log).window_s, 1.0);
  EXPECT_EQ(sensor_of("NVIDIA H100 80GB HBM3", log).cycle_s, 0.1);
  log.kind = PowerLogKind::samples;  // of nvmlDeviceGetPowerUsage
  EXPECT_EQ(sensor_of("NVIDIA GeForce RTX 3080 Ti", log).window_s, 1.0);
  log.kind = PowerLogKind::nvidia_smi;
  log.instantaneous = true;
  EXPECT_EQ(sensor_of("NVIDIA GeForce RTX 3080 Ti", log).window_s, 0.0);
  EXPECT_EQ(sensor_of("NVIDIA H100 80GB HBM3", log).window_s, 0.025);
}

TEST(Align, RecoversTheShiftThroughEverySensor) {
  constexpr double epoch_s = 1'716'398'122.0;
  for (const SensorModel sensor : {SensorModel{}, SensorModel{.window_s = 1.0, .cycle_s = 0.0},
                                   SensorModel{.window_s = 0.025, .cycle_s = 0.1}}) {
    for (const double shift_s : {-1.3, 0.0, 0.47}) {
      const PowerLog log = logged(spells(), sensor, epoch_s - shift_s);
      const Alignment found = align(spells(), log, sensor, epoch_s);
      // To the distance of samples.
      EXPECT_NEAR(found.shift_s, shift_s, 0.021);
      EXPECT_GT(found.correlation, 0.99);
      EXPECT_FALSE(found.zone_quarter_hours);
    }
  }
}

// A step of 0.17 s after work that was not recorded, as `capture trace` logs it on an H100: few
// readings, all rising. Chance finds better shifts than the true one, which is 0.
TEST(Align, FewSamplesDoNotMoveClocksThatAreKnown) {
  constexpr double epoch_s = 1'716'398'122.0;
  const SensorModel sensor{.window_s = 1.0, .cycle_s = 0.1};
  const StepCurve work({-1.6, -1.5, -0.22, 0.17}, {1.0, 0.0, 1.0, 0.0}),
      seen({0.0, 0.17}, {1.0, 0.0});
  PowerLog log;
  log.file = "log.csv";
  for (double s = -3.0; s < 0.3; s += 0.0125)
    log.samples.push_back({epoch_s + s, 126.0 + 460.0 * reading(work, sensor, s), {}, {}});
  const Alignment found = align(seen, log, sensor, epoch_s);
  EXPECT_EQ(found.shift_s, 0.0);
  EXPECT_FALSE(found.correlation);
  EXPECT_EQ(text_of(found),
            "taken at its own times: too short or too steady a run to show a shift");
  EXPECT_FALSE(span_energy(log, sensor, epoch_s, epoch_s + 0.17));  // 138 W of 586 W
}

// Steps of 79 ms, 68 of them busy, after a warm-up that was not recorded, as `capture trace` logs
// them on an H200, whose field of instantaneous power reads 25 ms of every 100 ms: 14 steps have 44
// samples, but 11 readings.
TEST(Align, SamplesOfOneCycleAreOneReading) {
  constexpr double epoch_s = 1'716'398'122.0, phase_s = 0.063;
  const SensorModel sensor{.window_s = 0.025, .cycle_s = 0.1};
  for (const int steps : {4, 14}) {
    std::vector<double> at_s{phase_s - 1.4, phase_s - 0.6}, busy{1.0, 0.0}, seen_s;
    for (int i = 0; i < steps; ++i) {
      seen_s.insert(seen_s.end(), {0.079 * i, 0.079 * i + 0.068});
      busy.insert(busy.end(), {1.0, 0.0});
    }
    for (const double s : seen_s) at_s.push_back(s + phase_s);
    const StepCurve work(at_s, busy), seen(seen_s, {busy.begin() + 2, busy.end()});
    PowerLog log;
    log.file = "log.csv";
    for (double s = -2.0; s < 3.0; s += 0.025)
      log.samples.push_back(
          {epoch_s + s, 118.0 + 570.0 * reading(work, sensor, s + phase_s), {}, {}});
    const Alignment found = align(seen, log, sensor, epoch_s);
    EXPECT_EQ(found.shift_s, 0.0) << steps;
    EXPECT_FALSE(found.correlation) << steps;
  }
}

// A GPU that is always at work, logged from before until after: no shift can be told, and with two
// clocks that are known none is needed. With one that is not, the log is refused.
TEST(Align, ASteadyRunNeedsNoShiftWhereClocksAreKnown) {
  constexpr double epoch_s = 1'716'398'122.0;
  std::vector<double> at_s, busy;
  for (int i = 0; i < 500; ++i) {  // 1 % of each 20 ms is a pause
    at_s.insert(at_s.end(), {0.02 * i, 0.02 * i + 0.0198});
    busy.insert(busy.end(), {1.0, 0.0});
  }
  const StepCurve curve(at_s, busy);
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0.0, 4.0);
  PowerLog log;
  log.file = "log.csv";
  for (double s = 0.05; s < 9.9; s += 0.1)
    log.samples.push_back({epoch_s + s, 380.0 + noise(random), {}, {}});
  const SensorModel sensor{.window_s = 0.025, .cycle_s = 0.1};
  const Alignment found = align(curve, log, sensor, epoch_s);
  EXPECT_EQ(found.offset_s, -epoch_s);
  EXPECT_FALSE(found.correlation);
  EXPECT_GE(found.samples, 90U);
  EXPECT_TRUE(span_energy(log, sensor, epoch_s + 1.0, epoch_s + 9.0));
  log.base = TimeBase::relative;
  EXPECT_THROW((void)align(curve, log, sensor, epoch_s), DataError);
}

// 12 readings over 2.4 s with noise: at 0 they correlate well, at another shift by chance better.
TEST(Align, AShiftThatIsHardlyBetterIsNotTaken) {
  constexpr double epoch_s = 1'716'398'122.0;
  const StepCurve curve({0.0, 0.5, 1.2, 1.5, 2.4}, {1.0, 0.0, 1.0, 0.0, 0.0});
  std::size_t shifted = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0.0, 60.0);
    PowerLog log;
    for (double s = 0.05; s < 2.4; s += 0.2)
      log.samples.push_back(
          {epoch_s + s, 200.0 + 200.0 * curve.mean(s, s) + noise(random), {}, {}});
    if (align(curve, log, {}, epoch_s).shift_s != 0.0) ++shifted;
  }
  EXPECT_LE(shifted, 4U);
}

TEST(Align, AZoneThatCannotBeUsedIsAnError) {
  constexpr double epoch_s = 1'716'398'122.0;
  PowerLog log = logged(spells(), {}, epoch_s);
  expect_error<UsageError>([&] { (void)align(spells(), log, {}, epoch_s, 2.0); },
                           "--power-zone does nothing: the log's times are those of UTC");
  log.base = TimeBase::relative;
  expect_error<UsageError>([&] { (void)align(spells(), log, {}, epoch_s, 2.0); },
                           "the log does not say when it began");
  log.base = TimeBase::local;
  expect_error<UsageError>([&] { (void)align(spells(), log, {}, {}, 2.0); },
                           "the capture does not say when it began");
}

TEST(SpanEnergy, OfAveragedReadingsIsThatOfTheGpu) {
  const SensorModel sensor{.window_s = 1.0, .cycle_s = 0.0};
  const StepCurve curve({2.0, 8.0}, {1.0, 0.0});  // 6 s of 300 W within 100 W
  PowerLog log;
  for (double s = 0.0; s < 9.5; s += 0.01)
    log.samples.push_back({s, 100.0 + 200.0 * reading(curve, sensor, s), {}, {}});
  // Each change of 200 W costs 1/8 s of it. Without the lag it would be 1/2 s: 1700 J.
  EXPECT_NEAR(span_energy(log, sensor, 2.0, 8.0)->energy_j, 1800.0 - 2.0 * 200.0 / 8.0, 1.0);
  EXPECT_FALSE(span_energy(log, sensor, 2.0, 3.9));  // under two windows
  EXPECT_FALSE(span_energy(log, sensor, 2.0, 9.4));  // ends with the log, without half a window
}

TEST(Align, GuessesTheZoneInQuarterHours) {
  constexpr double epoch_s = 1'716'398'122.0;
  PowerLog log = logged(spells(), {}, epoch_s + 5.75 * 3600.0 - 0.2);
  log.base = TimeBase::local;
  const Alignment found = align(spells(), log, {}, epoch_s);
  EXPECT_EQ(found.zone_quarter_hours, 23);  // Nepal
  EXPECT_NEAR(found.shift_s, 0.2, 0.011);
  EXPECT_EQ(align(spells(), log, {}, epoch_s, 5.75).zone_quarter_hours, 23);
  expect_error<DataError>([&] { (void)align(spells(), log, {}, epoch_s, 1.0); },
                          "s away from the trace", "--power-zone");
}

TEST(Align, WithoutACommonClockTheWholeLogIsSearched) {
  const StepCurve curve = spells();
  PowerLog log = logged(curve, {}, 40.0);
  log.base = TimeBase::relative;
  for (int i = 0; i < 500; ++i)
    log.samples.insert(log.samples.begin(), {40.0 - 0.02 * i, 100.0, {}, {}});
  EXPECT_NEAR(align(curve, log, {}, {}).offset_s, -40.0, 0.011);
}

TEST(Align, RefusesWhatDoesNotFit) {
  constexpr double epoch_s = 1'716'398'122.0;
  PowerLog noise = logged(spells(), {}, epoch_s);
  std::mt19937 random(1);
  for (PowerSample& sample : noise.samples)
    sample.power_w = 100.0 + static_cast<double>(random() % 100);
  expect_error<DataError>([&] { (void)align(spells(), noise, {}, epoch_s); },
                          "with the GPU's use; expected at least 0.5", "same run");
  for (PowerSample& sample : noise.samples) sample.power_w = 100.0;
  expect_error<DataError>([&] { (void)align(spells(), noise, {}, epoch_s); }, "does not vary");
  const PowerLog sparse = logged(spells(), {}, epoch_s, 1.0);
  expect_error<DataError>([&] { (void)align(spells(), sparse, {}, epoch_s); },
                          "fewer than 8 samples in the 6 s of the trace");
  const PowerLog other_day = logged(spells(), {}, epoch_s + 86400.0);
  expect_error<DataError>([&] { (void)align(spells(), other_day, {}, epoch_s); }, "away");
}

TEST(SpanEnergy, TrapezoidsWithInterpolatedEdges) {
  PowerLog log;
  log.samples = {{0.0, 100.0, {}, {}},
                 {1.0, 200.0, {}, {}},
                 {2.0, 200.0, {}, {}},
                 {5.0, 200.0, {}, {}},
                 {6.0, 0.0, {}, {}}};
  // 0.5 to 1: 150 to 200 W; 1 to 2: 200 W.
  const auto exact = span_energy(log, {}, 0.5, 2.0);
  ASSERT_TRUE(exact);
  EXPECT_NEAR(exact->energy_j, 0.5 * 175.0 + 200.0, 1e-9);
  EXPECT_NEAR(exact->coverage, 1.0, 1e-12);
  EXPECT_NEAR(span_energy(log, {}, 1.0, 6.0)->coverage, 2.0 / 5.0, 1e-12);
  EXPECT_FALSE(span_energy(log, {}, -0.1, 2.0));
  EXPECT_FALSE(span_energy(log, {}, 1.0, 6.1));
  EXPECT_FALSE(span_energy(log, {}, 1.0, 1.0));
}

TEST(ClassPower, RecoveredFromWindows) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> share(0.0, 0.5);
  std::normal_distribution<double> noise(0.0, 2.0);
  std::vector<double> shares, powers;
  for (int i = 0; i < 400; ++i) {
    const double a = share(random), b = share(random);
    shares.insert(shares.end(), {a, b, 0.0});
    powers.push_back(80.0 + 250.0 * a + 60.0 * b + noise(random));
  }
  const auto fit = fit_class_power(shares, powers, 3);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(*fit->classes[0].power_w, 250.0, 4.0 * *fit->classes[0].sigma_w);
  EXPECT_NEAR(*fit->classes[1].power_w, 60.0, 4.0 * *fit->classes[1].sigma_w);
  EXPECT_NEAR(*fit->idle.power_w, 80.0, 4.0 * *fit->idle.sigma_w);
  // 2 W over sqrt(400 x variance of the shares).
  EXPECT_NEAR(*fit->classes[0].sigma_w, 2.0 / std::sqrt(400.0 * 0.25 / 12.0), 0.15);
  EXPECT_FALSE(fit->classes[2].power_w);  // never ran
  EXPECT_NEAR(fit->residual_w, 2.0, 0.3);
}

TEST(ClassPower, NeverNegativeAndSilentWhereNothingTellsClassesApart) {
  std::vector<double> shares, powers;
  for (int i = 0; i < 40; ++i) {
    const double a = 0.01 * i;
    shares.insert(shares.end(), {a});
    powers.push_back(100.0 - 20.0 * a);  // falls with use: the bound holds
  }
  const auto bound = fit_class_power(shares, powers, 1);
  EXPECT_EQ(bound->classes[0].power_w, 0.0);
  EXPECT_FALSE(bound->classes[0].sigma_w);
  EXPECT_NEAR(*bound->idle.power_w, 96.1, 0.1);  // the mean
  EXPECT_FALSE(
      fit_class_power(std::vector<double>{0.1, 0.2, 0.3}, std::vector<double>{1, 2, 3}, 1));
}

}  // namespace
}  // namespace rubato
