// What ends a step of captured ranks, on a made pipeline whose reductions and optimizer are known.

#include <algorithm>

#include <gtest/gtest.h>

#include "explorer/pipeline/captured_profile.hpp"
#include "sim/pipeline_run.hpp"
#include "tests/made_pipeline_ranks.hpp"
#include "traces/pipeline/step_end.hpp"

namespace rubato {
namespace {

std::vector<Capture> captures_at_default(const MadePipeline& made) {
  std::vector<Capture> captures;
  for (const SimulatedRun& rank : made.run(made.model.frame.default_clock))
    captures.push_back(rank.capture);
  return captures;
}

CapturedProfile profile_of(const MadePipeline& made, const std::vector<Capture>& captures) {
  const CapturedGpu gpu{made.model.frame, made.model.frame.default_clock, ""};
  return profile_captures({.captures = captures, .gpu = gpu, .power = {}});
}

// Of an iteration: what the rows of a profile give, as a share of what a rank took in its steps.
double replayed_over_captured(const CapturedProfile& profile, const Capture& rank, bool tied) {
  const PipelineProfile rows = parse_pipeline_profile(profile_csv(profile), "found");
  const PipelineWork work = pipeline_work(
      with_step_end(make_schedule(profile.pipeline.shape), true, true, tied), rows, 80.0);
  double captured_s = 0.0;
  for (const CapturedStep& step : rank.steps)
    captured_s += s_per_ns * static_cast<double>(step.end_ns - step.start_ns);
  return simulate(work, highest_clocks(work)).time_s * static_cast<double>(rank.steps.size()) /
         captured_s;
}

// Reduction, norm of all stages, optimizer: what a stage waits for others is in no row.
TEST(CapturedStepEnd, StepsEndWithReductionAndOptimizer) {
  MadePipeline made;
  made.reduction_s = 5e-3;
  const ClockPair at = made.model.frame.default_clock;
  const auto captures = captures_at_default(made);
  const CapturedProfile profile = profile_of(made, captures);
  EXPECT_EQ(profile.other_s, 0.0);
  EXPECT_EQ(profile.notes.size(), 0U);
  ASSERT_TRUE(profile.complete());
  ASSERT_EQ(profile.types.size(), 16U);
  for (const CapturedPassType& type : profile.types) {
    if (!ends_step(type.kind)) continue;
    EXPECT_EQ(type.passes, made.steps);
    for (const CapturedOption& option : type.options) {
      double truth_s = made.reduction_s;
      if (type.kind == PassKind::optimizer) {
        truth_s = made.gap_s;  // between the last two; before, the norm is waited for
        for (const std::uint32_t kernel : made.optimizer)
          truth_s += made.model.point(kernel, {at.mem, option.core_mhz}).time_s;
      }
      const double tolerance = option.captured || type.kind == PassKind::all_reduce ? 1e-4 : 0.08;
      EXPECT_NEAR(option.time_s.value / truth_s, 1.0, tolerance) << option.core_mhz;
      EXPECT_GT(option.energy_j->value, 0.0);
    }
  }
}

// The whole iteration, replayed with the rows of the profile, takes as long as it was captured.
TEST(CapturedStepEnd, StepEndsArePartOfTheIteration) {
  MadePipeline made;
  made.reduction_s = 5e-3;
  const auto captures = captures_at_default(made);
  const CapturedProfile profile = profile_of(made, captures);
  EXPECT_NEAR(replayed_over_captured(profile, captures.front(), false), 1.0, 0.005);
}

// The last stage is ready long before the first, and waits: what both take is known from the first.
TEST(CapturedStepEnd, TiedEmbeddingsTakeWhatTheyTakeWithoutWaiting) {
  MadePipeline made;
  made.reduction_s = 5e-3;
  made.embedding_s = 3e-3;
  const auto captures = captures_at_default(made);
  const CapturedProfile profile = profile_of(made, captures);
  EXPECT_EQ(profile.notes.size(), 0U);
  std::vector<std::uint32_t> stages;
  for (const CapturedPassType& type : profile.types) {
    if (type.kind != PassKind::embedding_all_reduce) continue;
    stages.push_back(type.stage);
    for (const CapturedOption& option : type.options) {
      EXPECT_NEAR(option.time_s.value, made.embedding_s, 1e-6);
      // Neither is what the last stage draws while it waits.
      EXPECT_LT(option.energy_j->value, made.model.frame.power_limit.limit_w * option.time_s.value);
    }
  }
  EXPECT_EQ(stages, (std::vector<std::uint32_t>{0, 3}));
  EXPECT_EQ(profile.types.size(), 18U);
  EXPECT_NEAR(replayed_over_captured(profile, captures.front(), true), 1.0, 0.005);
}

// Of one stage alone there is nothing to plan.
TEST(CapturedStepEnd, TiedEmbeddingsOfOneStageAreLeftOut) {
  MadePipeline made;
  made.reduction_s = 5e-3;
  made.embedding_s = 3e-3;
  auto captures = captures_at_default(made);
  for (CapturedLaunch& launch : captures.back().launches) {
    if (launch.collective && captures.back().collectives[*launch.collective].group == 2U)
      captures.back().collectives[*launch.collective].group = 0U;
  }
  const CapturedProfile profile = profile_of(made, captures);
  EXPECT_EQ(profile.types.size(), 16U);
  EXPECT_EQ(profile.notes.front(),
            "of 4 stages 1 end their steps with embedding_all_reduce; it is left out, since a "
            "schedule has it on the first and the last");
}

TEST(CapturedStepEnd, StepEndsOfSomeStagesAreLeftOut) {
  MadePipeline made;
  made.reduction_s = 5e-3;
  auto captures = captures_at_default(made);
  std::erase_if(captures.front().launches,
                [](const CapturedLaunch& launch) { return launch.pass == Pass::optimizer; });
  const CapturedProfile profile = profile_of(made, captures);
  EXPECT_EQ(profile.notes,
            (std::vector<std::string>{"of 4 stages 3 end their steps with optimizer; it is left "
                                      "out, since a schedule has it on all stages"}));
  EXPECT_EQ(profile.types.size(), 12U);
}

// Of groups without ranks the name decides; what nobody knows is said.
TEST(CapturedStepEnd, ReductionsOfUnknownGroupsAreNotes) {
  MadePipeline made;
  made.reduction_s = 5e-3;
  auto captures = captures_at_default(made);
  for (Capture& capture : captures) {
    for (CaptureGroup& group : capture.groups) group.ranks.clear();
    capture.groups[1].description = "gradients";
  }
  const CapturedProfile unknown = profile_of(made, captures);
  EXPECT_EQ(unknown.types.size(), 12U);
  EXPECT_EQ(std::ranges::count_if(unknown.notes,
                                  [](const std::string& note) {
                                    return note.find(
                                               "ms of collectives after the last pass of a "
                                               "step are left out") != std::string::npos;
                                  }),
            4);
  for (Capture& capture : captures) capture.groups[1].description = "Data Parallel";
  const CapturedProfile known = profile_of(made, captures);
  EXPECT_EQ(known.types.size(), 16U);
  EXPECT_TRUE(std::ranges::none_of(known.notes, [](const std::string& note) {
    return note.find("left out") != std::string::npos;
  }));
}

// Most of a reduction beside the last pass: only what is left of it after that takes time.
TEST(CapturedStepEnd, OfReductionsBesidePassesTheRestCounts) {
  MadePipeline made;
  made.reduction_s = 5e-3;
  auto captures = captures_at_default(made);
  const auto earlier_by = [&](std::int64_t by_ns) {
    for (Capture& capture : captures) {
      for (CapturedLaunch& launch : capture.launches) {
        if (launch.stream == 1 && launch.duration_ns == 5'000'000) launch.start_ns -= by_ns;
      }
      std::ranges::stable_sort(capture.launches, {}, &CapturedLaunch::start_ns);
    }
    return profile_of(made, captures);
  };
  for (const CapturedPassType& type : earlier_by(4'000'000).types) {
    if (type.kind == PassKind::all_reduce) {
      EXPECT_NEAR(type.captured().time_s.value, 1e-3, 1e-5);
    }
  }
  EXPECT_EQ(earlier_by(2'000'000).types.size(), 12U);
}

}  // namespace
}  // namespace rubato
