// A GPU's kernels calibrated from captures of one step at several clocks, where the truth is known.

#include <algorithm>

#include <gtest/gtest.h>

#include "explorer/exploration.hpp"
#include "models/calibration/capture_fit.hpp"
#include "models/validation/power_windows.hpp"
#include "tests/simulated_captures.hpp"
#include "traces/capture_stats.hpp"

namespace rubato {
namespace {

CaptureObservation observed(const KnownModel& known, const Trace& step, const SimulatedRun& run,
                            const ClockPair& clock) {
  const Capture& capture = run.capture;
  const std::int64_t origin_ns = capture.launches.front().start_ns;
  const SensorModel sensor = sensor_of(capture.devices[0].name, run.log);
  const Alignment alignment =
      align(busy_curve(capture, 0, origin_ns), run.log, sensor, std::nullopt);
  const auto times = typical_times(step, capture);
  return {.clock = clock,
          .times = times,
          .power = power_windows(with_lost_launches(step, times, capture), 0,
                                 same_kernels(step, capture), known.kernels.size(), run.log, sensor,
                                 alignment)};
}

struct Calibrated {
  Trace step;
  CaptureFit fit;
};

Calibrated calibrated(const KnownModel& known, const std::vector<const char*>& clocks,
                      const CaptureNoise& noise, std::uint64_t seed) {
  Calibrated made;
  std::vector<CaptureObservation> captures;
  for (const char* label : clocks) {
    const ClockPair clock = parse_clock_pair(known.frame, label);
    const SimulatedRun run = known.run(clock, seed++, noise);
    if (captures.empty()) {
      made.step = fold(run.capture);
      made.step.captured->clock = label;
    }
    captures.push_back(observed(known, made.step, run, clock));
  }
  made.fit = fit_captures(known.frame, made.step, captures);
  return made;
}

// The step as the truth has it: times from its coefficients, nothing captured.
Trace uncaptured(Trace step) {
  step.captured.reset();
  for (Kernel& kernel : step.kernels) kernel.measured_time_s.reset();
  return step;
}

struct Change {
  double time_pct = 0.0, energy_pct = 0.0;
};

Change change(const SimResult& plan, const SimResult& base) {
  return {100.0 * (plan.total.time_s / base.total.time_s - 1.0),
          100.0 * (plan.total.energy_j / base.total.energy_j - 1.0)};
}

Exploration plans_of(const Trace& trace, const GpuSpec& spec) {
  ExplorationInput input{.trace = trace,
                         .spec = spec,
                         .grid = "full",
                         .power_limit_w = {},
                         .switching = {},
                         .questions = {}};
  for (const auto granularity : {Granularity::run, Granularity::kernel})
    input.questions.push_back({granularity, Aggregation::global, LeastWaste{0.05, 0.0}});
  return explore(input);
}

bool holds(const Interval& interval, double value) {
  return value >= interval.low_pct && value <= interval.high_pct;
}

// The plan made with the fitted kernels, run by the truth, against the plan the truth makes.
void expect_the_true_plan(const KnownModel& known, const Calibrated& made) {
  const Trace trace = uncaptured(made.step);
  const GpuModel truth(known.truth, trace);
  const Exploration right = plans_of(trace, known.truth),
                    found = plans_of(made.step, made.fit.spec);
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const Change best = change(right.plans[i].sim, right.baseline);
    const SimResult base =
        simulate(trace, truth, found.grid, uniform_plan(trace, found.grid.default_clock()), {});
    const Change kept = change(simulate(trace, truth, found.grid, found.plans[i].plan, {}), base);
    EXPECT_NEAR(kept.time_pct, best.time_pct, 0.5) << i;
    EXPECT_NEAR(kept.energy_pct, best.energy_pct, 0.5) << i;
    ASSERT_TRUE(found.plans[i].interval);
    EXPECT_TRUE(holds(found.plans[i].interval->time, kept.time_pct))
        << kept.time_pct << " in " << found.plans[i].interval->time.low_pct << " .. "
        << found.plans[i].interval->time.high_pct;
    EXPECT_TRUE(holds(found.plans[i].interval->energy, kept.energy_pct))
        << kept.energy_pct << " in " << found.plans[i].interval->energy.low_pct << " .. "
        << found.plans[i].interval->energy.high_pct;
  }
}

TEST(CaptureCalibration, ThePlanIsTheTruthsWithinHalfAPoint) {
  const KnownModel known;
  for (const std::uint64_t seed : {1U, 100U, 200U}) {
    const Calibrated made =
        calibrated(known, {"1593/1410", "1593/1110", "1593/810"}, CaptureNoise{}, seed);
    EXPECT_LT(made.fit.time_error, 0.01) << seed;
    expect_the_true_plan(known, made);
  }
}

TEST(CaptureCalibration, WithoutNoiseTheTimesAreTheTruths) {
  const KnownModel known;
  const Calibrated made = calibrated(known, {"1593/1410", "1593/1110", "1593/810", "1593/510"},
                                     {.jitter = 0.0, .lost = 0.0, .power = 0.0}, 7);
  for (std::size_t k = 0; k < made.step.kernels.size(); ++k) {
    const std::string& name = made.step.kernels[k].name;
    const auto index = static_cast<std::uint32_t>(
        std::ranges::find(known.kernels, name, &Kernel::name) - known.kernels.begin());
    for (const char* label : {"1593/1410", "1593/1290", "1593/960"}) {
      const ClockPair clock = parse_clock_pair(known.frame, label);
      const double fitted = operating_point(made.fit.spec, made.fit.spec.kernels[k].coefficients,
                                            clock, known.frame.power_limit.limit_w)
                                .time_s;
      EXPECT_NEAR(fitted / known.point(index, clock).time_s, 1.0, 0.01) << name << ' ' << label;
    }
  }
}

// One clock tells times there and nothing else: the interval must be wide enough to say so.
TEST(CaptureCalibration, OneClockLeavesAWideInterval) {
  const KnownModel known;
  const Calibrated one = calibrated(known, {"1593/1410"}, CaptureNoise{}, 5);
  const Calibrated three =
      calibrated(known, {"1593/1410", "1593/1110", "1593/810"}, CaptureNoise{}, 5);
  const auto width = [](const Calibrated& made) {
    // Per kernel: at one high clock for all, the interval of one capture ends where physics does.
    const Interval time = plans_of(made.step, made.fit.spec).plans[1].interval->time;
    return time.high_pct - time.low_pct;
  };
  EXPECT_GT(width(one), 1.5 * width(three));
}

}  // namespace
}  // namespace rubato
