// Stage profiles from captured ranks: a made pipeline whose passes are known at every clock, and
// eight measured stages.

#include <algorithm>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/pipeline/captured_profile.hpp"
#include "explorer/pipeline/planner.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/kernel/model.hpp"
#include "tests/captures.hpp"
#include "tests/expect_error.hpp"
#include "tests/made_pipeline_ranks.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

std::vector<Capture> captures_of(const std::vector<SimulatedRun>& ranks) {
  std::vector<Capture> captures;
  for (const SimulatedRun& rank : ranks) captures.push_back(rank.capture);
  return captures;
}

std::vector<PowerLog> logs_of(const std::vector<SimulatedRun>& ranks) {
  std::vector<PowerLog> logs;
  for (const SimulatedRun& rank : ranks) logs.push_back(rank.log);
  return logs;
}

CapturedGpu a100(const MadePipeline& made) {
  return {made.model.frame, made.model.frame.default_clock, ""};
}

TEST(CapturedProfile, FindsStagesPassesAndTheirTimes) {
  const MadePipeline made;
  const auto captures = captures_of(made.run(made.model.frame.default_clock));
  const CapturedProfile profile =
      profile_captures({.captures = captures, .gpu = a100(made), .power = {}});
  EXPECT_TRUE(profile.pipeline.order_known);
  EXPECT_EQ(profile.pipeline.shape.kind, ScheduleKind::one_f_one_b);
  EXPECT_EQ(profile.pipeline.shape.stages, 4U);
  EXPECT_EQ(profile.pipeline.shape.microbatches, 8U);
  EXPECT_NEAR(profile.pipeline.shape.transfer_s, made.shape.transfer_s, 2e-5);
  ASSERT_EQ(profile.types.size(), 8U);
  for (const CapturedPassType& type : profile.types) {
    EXPECT_EQ(type.passes, std::size_t{made.steps} * made.shape.microbatches);
    const double truth_s =
        made.truth(type.stage, type.kind, made.model.frame.default_clock).time_s - made.gap_s;
    EXPECT_NEAR(type.captured().time_s.value / truth_s, 1.0, 0.002);
    EXPECT_LT(type.captured().time_s.low, type.captured().time_s.value);
    EXPECT_LT(type.low_s, type.captured().time_s.low);
  }
  ASSERT_TRUE(profile.replayed_step_s);
  EXPECT_NEAR(*profile.replayed_step_s / profile.captured_step_s, 1.0, 0.005);
}

TEST(CapturedProfile, OtherClocksLieInTheirIntervals) {
  const MadePipeline made;
  const auto captures = captures_of(made.run(made.model.frame.default_clock));
  const CapturedProfile profile =
      profile_captures({.captures = captures, .gpu = a100(made), .power = {}});
  std::size_t inside = 0, all = 0;
  for (const CapturedPassType& type : profile.types) {
    ASSERT_GT(type.options.size(), 10U);
    for (const CapturedOption& option : type.options) {
      const ClockPair clock{made.model.frame.default_clock.mem, option.core_mhz};
      const double truth_s = made.truth(type.stage, type.kind, clock).time_s;
      EXPECT_NEAR(option.time_s.value / truth_s, 1.0, 0.08) << option.core_mhz;
      inside += truth_s > option.time_s.low * 0.998 && truth_s < option.time_s.high * 1.002 ? 1 : 0;
      ++all;
    }
  }
  EXPECT_EQ(inside, all);
}

TEST(CapturedProfile, PowerLogsGivePowerOfPassesAndOfWaiting) {
  const MadePipeline made;
  const auto ranks = made.run(made.model.frame.default_clock);
  const auto captures = captures_of(ranks);
  const CapturedProfile profile =
      profile_captures({.captures = captures, .gpu = a100(made), .power = logs_of(ranks)});
  ASSERT_TRUE(profile.blocked_power_w);
  EXPECT_NEAR(*profile.blocked_power_w, made.idle_w, 3.0);
  for (const CapturedPassType& type : profile.types) {
    const ClockOption truth = made.truth(type.stage, type.kind, made.model.frame.default_clock);
    ASSERT_TRUE(type.measured_power_w);
    EXPECT_NEAR(type.measured_power_w->value / (truth.energy_j / truth.time_s), 1.0, 0.03);
    EXPECT_NEAR(type.captured().energy_j->value / truth.energy_j, 1.0, 0.03);
  }
}

// Eight kinds of passes of each of twelve noisy runs. A pass ends before the gap after its last
// kernel.
TEST(CapturedProfile, MeasuredPowersLieInTheirIntervals) {
  const MadePipeline made;
  std::size_t inside = 0, energies = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto ranks = made.run(made.model.frame.default_clock, true, seed);
    const auto captures = captures_of(ranks);
    const CapturedProfile profile =
        profile_captures({.captures = captures, .gpu = a100(made), .power = logs_of(ranks)});
    for (const CapturedPassType& type : profile.types) {
      const ClockOption truth = made.truth(type.stage, type.kind, made.model.frame.default_clock);
      const double energy_j = truth.energy_j - made.idle_w * made.gap_s;
      const double power_w = energy_j / (truth.time_s - made.gap_s);
      const Estimate &watts = *type.measured_power_w, &joules = *type.captured().energy_j;
      inside += power_w > watts.low && power_w < watts.high ? 1 : 0;
      energies += energy_j > joules.low && energy_j < joules.high ? 1 : 0;
      ++all;
      EXPECT_LT(watts.high - watts.low, 0.1 * watts.value);
      // At no clock is the energy better known than the power that it is scaled with.
      for (const CapturedOption& option : type.options)
        EXPECT_GE(option.energy_j->high / option.energy_j->low, 0.999 * watts.high / watts.low);
    }
  }
  EXPECT_GE(inside, all * 17 / 20) << inside;
  EXPECT_GE(energies, all * 17 / 20) << energies;
}

// A plan made from captures, run on the truth.
struct PlanOnTruth {
  double saving_pct = 0.0, best_saving_pct = 0.0;  // best: the plan of the true profile
  double late_frac = 0.0;                          // beyond the time asked for
};

// Both asked for the same slack, or the best one for the time that the other takes.
std::vector<PlanOnTruth> plans_on_truth(const MadePipeline& made, const GpuSpec& spec,
                                        bool equal_time) {
  const auto ranks = made.run(made.model.frame.default_clock);
  const auto captures = captures_of(ranks);
  const CapturedProfile profile =
      profile_captures({.captures = captures,
                        .gpu = CapturedGpu{spec, made.model.frame.default_clock, ""},
                        .power = logs_of(ranks)});
  const PipelineProfile found = parse_pipeline_profile(profile_csv(profile), "found");
  std::vector<ClockPair> clocks;
  for (const ClockOption& option : found.passes.front().options)
    clocks.push_back({made.model.frame.default_clock.mem, option.core_mhz});
  const PipelineWork true_work =
      pipeline_work(make_schedule(made.shape), made.profile(clocks), made.idle_w);
  const PipelineWork found_work =
      pipeline_work(make_schedule(profile.pipeline.shape), found, profile.blocked_power_w.value());
  const PipelinePlanner best(true_work), planner(found_work);
  std::vector<PlanOnTruth> plans;
  for (const double slack : {0.0, 0.05, 0.1}) {
    const double asked_s = (1.0 + slack) * best.baseline().time_s;
    const double deadline_s = (1.0 + slack) * planner.baseline().time_s;
    const PipelineRun run = simulate(true_work, planner.plan({&deadline_s, 1}).front().plan);
    const double best_s = equal_time ? run.time_s : asked_s;
    const PipelineResult wanted = best.plan({&best_s, 1}).front();
    plans.push_back({saving_pct(run.energy_j, best.baseline().energy_j),
                     saving_pct(wanted.energy_j, best.baseline().energy_j),
                     run.time_s / asked_s - 1.0});
  }
  return plans;
}

TEST(CapturedProfile, ItsPlanIsTheTrueOneWhereKernelsAreKnown) {
  const MadePipeline made;
  for (const PlanOnTruth& plan : plans_on_truth(made, made.model.truth, true)) {
    EXPECT_NEAR(plan.saving_pct, plan.best_saving_pct, 0.5);
    EXPECT_NEAR(plan.late_frac, 0.0, 0.005);
  }
}

// A third of the kernels say nothing of their work: how their time splits is guessed.
TEST(CapturedProfile, ItsPlanSavesAsMuchWhereSplitsAreGuessed) {
  const MadePipeline made;
  for (const PlanOnTruth& plan : plans_on_truth(made, made.model.frame, false)) {
    EXPECT_NEAR(plan.saving_pct, plan.best_saving_pct, 0.5);
    EXPECT_LT(plan.late_frac, 0.025);
  }
}

TEST(CapturedProfile, OfAGpuWithoutSpecOnlyTheCapturedClockIsKnown) {
  const MadePipeline made;
  const auto ranks = made.run(made.model.frame.default_clock);
  const auto captures = captures_of(ranks);
  const CapturedProfile times = profile_captures({.captures = captures, .gpu = {}, .power = {}});
  EXPECT_EQ(times.types.front().options.size(), 1U);
  EXPECT_FALSE(times.types.front().options.front().energy_j);
  EXPECT_THROW((void)profile_csv(times), DataError);
  const CapturedProfile measured =
      profile_captures({.captures = captures, .gpu = {}, .power = logs_of(ranks)});
  EXPECT_TRUE(measured.types.front().options.front().energy_j);
}

// "auto" comes to the captured clock, or nearly: it is one clock, and the captured one.
TEST(CapturedProfile, TheCapturedClockIsAlwaysThere) {
  const MadePipeline made;
  const auto captures = captures_of(made.run(made.model.frame.default_clock));
  for (const double core_mhz : {1410.0, 1395.0, 705.0}) {
    const ClockPair clock{made.model.frame.default_clock.mem, core_mhz};
    const CapturedProfile profile = profile_captures(
        {.captures = captures, .gpu = CapturedGpu{made.model.frame, clock, ""}, .power = {}});
    for (const CapturedPassType& type : profile.types) {
      EXPECT_EQ(std::ranges::count(type.options, true, &CapturedOption::captured), 1);
      EXPECT_EQ(type.captured().core_mhz, core_mhz);
      EXPECT_TRUE(std::ranges::is_sorted(type.options, std::ranges::greater_equal{},
                                         &CapturedOption::core_mhz));
    }
  }
}

TEST(CapturedProfile, ChunksOfInterleavedStagesAreToldApart) {
  MadePipeline made;
  made.shape = {.kind = ScheduleKind::interleaved, .stages = 2, .microbatches = 4, .chunks = 2};
  made.layers = {2, 3, 4, 6};
  const auto captures = captures_of(made.run(made.model.frame.default_clock));
  const CapturedProfile profile =
      profile_captures({.captures = captures, .gpu = a100(made), .power = {}});
  EXPECT_EQ(profile.pipeline.shape, (PipelineShape{.kind = ScheduleKind::interleaved,
                                                   .stages = 2,
                                                   .microbatches = 4,
                                                   .chunks = 2,
                                                   .transfer_s = profile.pipeline.shape.transfer_s,
                                                   .hold_s = profile.pipeline.shape.hold_s}));
  ASSERT_EQ(profile.types.size(), 8U);
  for (const CapturedPassType& type : profile.types) {
    const double truth_s = made.truth(type.stage, type.kind, made.model.frame.default_clock).time_s;
    EXPECT_NEAR(type.captured().time_s.value / truth_s, 1.0, 0.01);
  }
}

TEST(CapturedProfile, RanksOfUnnamedGroupsAreToldByTheirOrder) {
  const MadePipeline made;
  auto captures = captures_of(made.run(made.model.frame.default_clock, false));
  std::ranges::reverse(captures);
  const CapturedPipeline pipeline = find_pipeline(captures);
  EXPECT_EQ(pipeline.stage_of_rank, (std::vector<std::uint32_t>{3, 2, 1, 0}));
  EXPECT_TRUE(pipeline.notes.empty());
}

// Eight ranks of four stages that name their group's size only: two follow one another.
TEST(CapturedProfile, RanksOfAStageFollowOneAnotherWithoutWorldSize) {
  const MadePipeline made;
  const auto stages = captures_of(made.run(made.model.frame.default_clock, false));
  std::vector<Capture> captures;
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    captures.push_back(stages[rank / 2]);
    captures.back().rank = rank;
    captures.back().world_size.reset();
  }
  EXPECT_EQ(find_pipeline(captures).stage_of_rank,
            (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2, 3, 3}));
  captures.resize(4);  // the world is as large as one of them says
  captures[2].world_size = 8;
  EXPECT_EQ(find_pipeline(captures).stage_of_rank, (std::vector<std::uint32_t>{0, 0, 1, 1}));
}

TEST(CapturedProfile, ARankGivenTwiceIsRefused) {
  const MadePipeline made;
  auto captures = captures_of(made.run(made.model.frame.default_clock));
  captures.push_back(captures.front());
  expect_error<DataError>([&] { (void)find_pipeline(captures); },
                          "two captures are of rank 0; expected one of each rank");
}

TEST(CapturedProfile, RanksOfDifferentGuessedStepsAreToldToMarkThem) {
  const MadePipeline made;
  auto captures = captures_of(made.run(made.model.frame.default_clock));
  MadePipeline other = made;
  other.shape.microbatches = 4;
  captures[1] = other.run(made.model.frame.default_clock)[1].capture;
  const auto find = [&] { (void)find_pipeline(captures); };
  expect_error<DataError>(find, "passes in a step", "all ranks must be of one run");
  captures[2].step_source = StepSource::periodic;
  expect_error<DataError>(find, "passes in a step",
                          "steps were guessed: mark them (ProfilerStep, NVTX ranges)");
}

// Ranks send one another other things as well, which take 0.4 ms longer.
TEST(CapturedProfile, OnlyMessagesOfThePipelineAreTransfers) {
  const MadePipeline made;
  auto captures = captures_of(made.run(made.model.frame.default_clock));
  const auto transfer_s = [&] {
    return profile_captures({.captures = captures, .gpu = {}, .power = {}})
        .pipeline.shape.transfer_s;
  };
  const double before_s = transfer_s();
  for (std::uint32_t r = 0; r < 2; ++r) {
    Capture& capture = captures[r];
    capture.groups.push_back({"9", "CONTEXT_PARALLEL_GROUP", 4U, {0, 1, 2, 3}});
    const std::vector<CapturedLaunch> launches = capture.launches;
    for (CapturedLaunch launch : launches) {
      if (!launch.collective) continue;
      CapturedCollective other = capture.collectives[*launch.collective];
      if (other.source_rank != 0U || other.target_rank != 1U) continue;
      other.group = 1U;
      if (r == 0) launch.start_ns -= 400'000;
      for (int copy = 0; copy < 20; ++copy) {
        launch.collective = static_cast<std::uint32_t>(capture.collectives.size());
        capture.launches.push_back(launch);
        capture.collectives.push_back(other);
      }
    }
    std::ranges::stable_sort(capture.launches, {}, &CapturedLaunch::start_ns);
  }
  EXPECT_DOUBLE_EQ(transfer_s(), before_s);
}

TEST(CapturedProfile, OfFewPassesTheIntervalSaysThatItIsNarrow) {
  MadePipeline made;
  made.shape.microbatches = 4;
  made.steps = 1;
  const auto captures = captures_of(made.run(made.model.frame.default_clock));
  const CapturedProfile profile =
      profile_captures({.captures = captures, .gpu = a100(made), .power = {}});
  EXPECT_EQ(std::ranges::count_if(profile.notes,
                                  [](const std::string& note) {
                                    return note.starts_with("4 passes of a kind: least to");
                                  }),
            1);
  EXPECT_TRUE(profile.complete());
}

TEST(CapturedProfile, MissingStagesAreSaid) {
  const MadePipeline made;
  auto captures = captures_of(made.run(made.model.frame.default_clock));
  captures.erase(captures.begin() + 1);
  const CapturedProfile profile =
      profile_captures({.captures = captures, .gpu = a100(made), .power = {}});
  EXPECT_EQ(profile.pipeline.notes,
            (std::vector<std::string>{"of 4 stages the ranks of 0, 2, 3 are given"}));
  EXPECT_EQ(profile.types.size(), 6U);
  EXPECT_FALSE(profile.replayed_step_s);
  EXPECT_FALSE(profile.complete());
}

TEST(CapturedProfile, WhatIsNoPassIsLeftOut) {
  const MadePipeline made;
  auto captures = captures_of(made.run(made.model.frame.default_clock));
  // A reduction of gradients after the last backward pass of each step, and a step cut short.
  for (Capture& capture : captures) {
    const std::vector<CapturedLaunch> all = capture.launches;
    for (std::uint32_t step = 0; step < made.steps; ++step) {
      CapturedLaunch more =
          *std::ranges::find(all.rbegin(), all.rend(), step, &CapturedLaunch::step);
      more.collective.reset();
      more.kernel = KernelId{4};
      more.start_ns += 10'000;
      more.duration_ns = 5'000'000;
      more.pass = Pass::forward;
      capture.launches.push_back(more);
    }
    std::ranges::stable_sort(capture.launches, {}, &CapturedLaunch::start_ns);
    capture.launches.resize(capture.launches.size() - 200);
  }
  const CapturedPipeline pipeline = find_pipeline(captures);
  for (const CapturedStage& rank : pipeline.ranks) {
    EXPECT_EQ(rank.steps, made.steps - 1);
    EXPECT_EQ(rank.notes.size(), 1U);
    EXPECT_NEAR(rank.other_s, 5e-3, 1e-9);
    EXPECT_TRUE(rank.ends.empty());
  }
}

TEST(CapturedProfile, CapturesWithoutMessagesAreRefused) {
  const KnownModel model;
  const std::vector<Capture> captures{model.run(model.frame.default_clock, 1).capture,
                                      model.run(model.frame.default_clock, 2).capture};
  EXPECT_THROW((void)find_pipeline(captures), DataError);
}

TEST(CapturedProfile, MeasuredStagesOfPrimusAreFound) {
  std::vector<Capture> captures;
  for (int rank = 0; rank < 8; ++rank)
    captures.push_back(import_capture(captured("multirank/primus_pp8") /
                                      ("pp_rank_" + std::to_string(rank) + ".json.gz")));
  const CapturedProfile profile = profile_captures({.captures = captures, .gpu = {}, .power = {}});
  EXPECT_TRUE(profile.pipeline.order_known);
  EXPECT_EQ(profile.pipeline.shape.stages, 8U);
  EXPECT_EQ(profile.pipeline.shape.microbatches, 16U);
  EXPECT_EQ(profile.pipeline.ranks.front().steps, 20U);
  // By another program (README of the data): 0.78 to 0.85 ms; medians 58 to 67 and 69 to 75 ms.
  EXPECT_GT(profile.pipeline.shape.transfer_s, 0.78e-3);
  EXPECT_LT(profile.pipeline.shape.transfer_s, 0.85e-3);
  for (const CapturedPassType& type : profile.types) {
    const double time_ms = 1e3 * type.options.front().time_s.value;
    EXPECT_GT(time_ms, type.kind == PassKind::forward ? 57.5 : 68.5);
    EXPECT_LT(time_ms, type.kind == PassKind::forward ? 67.5 : 75.5);
  }
  EXPECT_NEAR(profile.pipeline.shape.hold_s, 0.78e-3, 0.03e-3);
  // The rest is what passes differ from their medians.
  ASSERT_TRUE(profile.replayed_step_s);
  EXPECT_NEAR(*profile.replayed_step_s / profile.captured_step_s, 0.991, 0.003);
}

}  // namespace
}  // namespace rubato
