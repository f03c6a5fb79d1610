// Zeus profiles and what passes are made of.

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "traces/pipeline/profile.hpp"
#include "traces/pipeline/profile_checks.hpp"
#include "traces/pipeline/step_end.hpp"

namespace rubato {
namespace {

constexpr const char* header = "stage,instruction,frequency,time,energy\n";

PipelineProfile parse(const std::string& rows) {
  return parse_pipeline_profile(header + rows, "p.csv");
}

PipelineWork work(ScheduleKind kind, const PipelineProfile& profile, std::uint32_t chunks = 1) {
  return pipeline_work(
      make_schedule({.kind = kind, .stages = 2, .microbatches = 2, .chunks = chunks}), profile,
      1.0);
}

const std::string two_stages =
    "0,forward,900,2,20\n0,forward,1000,1,30\n0,backward,1000,3,60\n"
    "1,forward,1000,1,30\n1,backward,1000,3,60\n";

TEST(PipelineProfile, ReadsTheShortForm) {
  const PipelineProfile profile = parse(two_stages);
  EXPECT_EQ(profile.stages(), 2U);
  const PassType* forward = profile.find(0, PassKind::forward);
  ASSERT_NE(forward, nullptr);
  EXPECT_EQ(forward->options, (std::vector<ClockOption>{{1000, 1, 30}, {900, 2, 20}}));
}

TEST(PipelineProfile, TheSlowestRankDecidesInTheLongForm) {
  const PipelineProfile profile = parse_pipeline_profile(
      "rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n"
      "0,0,0,0,0,forward,1000,1,30\n1,0,0,1,0,forward,1000,2,40\n0,0,0,0,0,load,1000,5,1\n",
      "p.csv");
  EXPECT_EQ(profile.passes.front().options, (std::vector<ClockOption>{{1000, 2, 35}}));
}

TEST(PipelineProfile, NamesEveryBadLine) {
  expect_error<DataError>([] { (void)parse("0,forward,1000,-1,30\n"); }, "time");
  expect_error<DataError>([] { (void)parse("0,forward,0,1,30\n"); }, "expected a number > 0");
  expect_error<DataError>([] { (void)parse("0,forwards,1000,1,3\n"); }, "did you mean 'forward'?");
  expect_error<DataError>([] { (void)parse("0,forward,1000,1,3\n0,forward,1000,2,3\n"); },
                          "p.csv:3: stage 0, forward at 1000 MHz is given twice");
  expect_error<DataError>([] { (void)parse(""); }, "there is no line");
}

TEST(PipelineProfile, NumbersThatAreNoGpusAreRefused) {
  expect_error<DataError>(
      [] { (void)parse(two_stages + "1,forward,900,2e-6,20\n"); },
      "p.csv:7: energy over time is 1e+07 W; expected 1 to 5000 W (10 W if energy is in uJ)");
  expect_error<DataError>([] { (void)parse(two_stages + "1,forward,900000,2,20\n"); },
                          "frequency is 900000 MHz; expected 50 to 5000 MHz (900 MHz if frequency "
                          "is in kHz)");
  // Without an energy only its own other rows tell.
  expect_error<DataError>(
      [] { (void)parse("0,forward,1000,0.1,0\n0,forward,950,0.11,0\n0,forward,900,120,0\n"); },
      "p.csv:4: forward of stage 0: time is 120 s, but 0.11 s in p.csv:3");
}

TEST(PipelineProfile, ACopyCountsOnce) {
  const PipelineProfile profile = parse(two_stages + two_stages);
  EXPECT_EQ(profile.passes.size(), 4U);
  EXPECT_EQ(profile.notes,
            (std::vector<std::string>{"5 of 10 rows are copies of earlier ones and count once"}));
}

TEST(PipelineWork, LagsThatNoTransferTakesAreRefused) {
  PipelineWork found = work(ScheduleKind::gpipe, parse(two_stages));
  found.schedule.dependencies.front().lag_s = 29.0;  // the longest pass takes 3 s
  expect_plausible_lags(found, "edges.csv");
  found.schedule.dependencies.front().lag_s = 31.0;
  expect_error<DataError>([&] { expect_plausible_lags(found, "edges.csv"); },
                          "lag_s is 31 s; expected 0.003 to 30 s (0.031 s if lag_s is in ms)");
}

TEST(PipelineWork, MakesThePassesAProfileLacks) {
  const PipelineProfile profile = parse(two_stages);
  const PipelineWork recompute = work(ScheduleKind::early_recompute, profile);
  for (std::size_t i = 0; i < recompute.schedule.passes.size(); ++i) {
    const PassType& type = recompute.type_of(id_at<PassId>(i));
    if (type.kind != PassKind::backward) continue;
    EXPECT_EQ(type.options, (std::vector<ClockOption>{{1000, 2, 30}}));  // without its forward
  }
  const PipelineWork split = work(ScheduleKind::zb_h1, profile);
  for (const PassType& type : split.types) {
    if (type.kind == PassKind::forward) continue;
    EXPECT_EQ(type.options, (std::vector<ClockOption>{{1000, 1.5, 30}}));
  }
  const PipelineWork chunks = work(ScheduleKind::interleaved, profile, 2);
  EXPECT_EQ(chunks.types.front().options,
            (std::vector<ClockOption>{{1000, 0.5, 15}, {900, 1, 10}}));
}

// A stage ends its step once: what a profile by chunks says of it adds up.
TEST(PipelineWork, TheEndOfAStepIsTheSumOfItsChunks) {
  std::string rows;
  for (int v = 0; v < 4; ++v) {
    for (const char* kind : {"forward", "backward"})
      rows += fmt::format("{},{},1000,1,30\n", v, kind);
    rows += fmt::format("{0},optimizer,1000,{1},{2}\n{0},optimizer,900,{3},{2}\n", v, 1 + v,
                        10 * (1 + v), 2 * (1 + v));
  }
  const auto ended = [](const std::string& text) {
    return pipeline_work(
        with_step_end(
            make_schedule(
                {.kind = ScheduleKind::interleaved, .stages = 2, .microbatches = 2, .chunks = 2}),
            false, true),
        parse(text), 1.0);
  };
  std::vector<std::vector<ClockOption>> optimizers;
  for (const PassType& type : ended(rows).types) {
    if (type.kind == PassKind::optimizer) optimizers.push_back(type.options);
  }
  EXPECT_EQ(optimizers, (std::vector<std::vector<ClockOption>>{{{1000, 4, 40}, {900, 8, 40}},
                                                               {{1000, 6, 60}, {900, 12, 60}}}));
  expect_error<DataError>(
      [&] { (void)ended(rows + "3,optimizer,800,9,9\n"); },
      "optimizer of stages 1 and 3, chunks of one stage, have different clocks");
  std::string without_last = rows;
  without_last.erase(without_last.find("3,optimizer"));
  expect_error<DataError>([&] { (void)ended(without_last); },
                          "no profile of the optimizer pass of stage 3");
}

// A clock whose energy was not measured would be the cheapest of all.
TEST(PipelineProfile, ZeroEnergyIsAMarkNotAnError) {
  const PipelineProfile profile =
      parse("0,forward,1000,1,30\n0,forward,900,1.2,0\n0,backward,1000,2,0\n0,backward,900,3,0\n");
  EXPECT_EQ(profile.passes[0].options, (std::vector<ClockOption>{{1000, 1, 30}}));
  EXPECT_EQ(profile.passes[1].options, (std::vector<ClockOption>{{1000, 2, 0}, {900, 3, 0}}));
  EXPECT_EQ(
      profile.notes,
      (std::vector<std::string>{
          "forward of stage 0 has an energy of 0 J at 1 of 2 clocks; they are left out",
          "backward of stage 0 has an energy of 0 J at every clock; it is taken to draw blocked "
          "power"}));
  EXPECT_TRUE(parse("0,forward,1000,1,30\n").notes.empty());
  expect_error<DataError>([] { (void)parse("0,forward,1000,1,-1\n"); }, "expected a number >= 0");
}

// What savings are against is not to be left out without a word.
TEST(PipelineProfile, TheHighestClockNeedsAnEnergy) {
  expect_error<DataError>([] { (void)parse("0,forward,1000,1,0\n0,forward,900,1.2,25\n"); },
                          "forward of stage 0 has an energy of 0 J at its highest clock, 1000 MHz");
}

// Else the longest of its durations would be the cheapest, waiting being paid for.
TEST(PipelineWork, APassWithoutEnergyDrawsBlockedPower) {
  const PipelineProfile profile = parse(
      "0,forward,1000,1,30\n0,backward,1000,2,0\n0,backward,900,3,0\n"
      "1,forward,1000,1,30\n1,backward,1000,2,60\n");
  const PipelineWork priced = pipeline_work(
      make_schedule({.kind = ScheduleKind::gpipe, .stages = 2, .microbatches = 1}), profile, 7.0);
  for (const PassType& type : priced.types) {
    if (type.stage != 0 || type.kind != PassKind::backward) continue;
    EXPECT_EQ(type.options, (std::vector<ClockOption>{{1000, 2, 14}, {900, 3, 21}}));
  }
  expect_error<DataError>([&] { (void)work(ScheduleKind::early_recompute, profile); },
                          "cannot be taken off a backward pass where an energy is 0 J");
}

TEST(PipelineWork, RecomputingIsTakenOffAtEveryClockOrRefused) {
  expect_error<DataError>(
      [] {
        (void)work(ScheduleKind::early_recompute, parse(two_stages + "0,backward,800,5,50\n"));
      },
      "stage 0: the forward pass has no energy at 800 MHz");
}

// Chunks of one stage at two memory clocks: each adds what it takes at the same pair.
TEST(PipelineWork, ChunksAddUpAtTheSameMemoryClock) {
  PipelineProfile profile{"two memory clocks", {}};
  for (std::uint32_t v = 0; v < 4; ++v) {
    const double n = 1.0 + v;
    for (const PassKind kind : {PassKind::forward, PassKind::backward, PassKind::optimizer})
      profile.passes.push_back(
          {v, kind, {{1000, n, 10 * n, 5000}, {1000, 3 * n, 20 * n, 400}, {900, n, n, 400}}});
  }
  const PipelineWork sums = pipeline_work(
      with_step_end(
          make_schedule(
              {.kind = ScheduleKind::interleaved, .stages = 2, .microbatches = 2, .chunks = 2}),
          false, true),
      profile, 1.0);
  const auto first = std::ranges::find(sums.types, PassKind::optimizer, &PassType::kind);
  EXPECT_EQ(first->options,
            (std::vector<ClockOption>{{1000, 4, 40, 5000}, {1000, 12, 80, 400}, {900, 4, 4, 400}}));
}

TEST(PipelineProfile, PowerLimitsAreOptionsBesideClocks) {
  const PipelineProfile profile = parse_pipeline_profile(
      "stage,instruction,frequency,power_limit,time,energy\n0,forward,1000,200,2,20\n"
      "0,forward,900,400,1.5,25\n0,forward,1000,400,1,30\n",
      "limits");
  EXPECT_EQ(profile.passes.front().options,
            (std::vector<ClockOption>{
                {1000, 1, 30, 0, 400}, {1000, 2, 20, 0, 200}, {900, 1.5, 25, 0, 400}}));
}

// Of the ranks of a stage, those whose energy was measured speak for the others.
TEST(PipelineProfile, ARankWithoutEnergyDoesNotHalveTheMean) {
  const PipelineProfile profile = parse_pipeline_profile(
      "rank,dp_rank,pp_rank,tp_rank,stage,instruction,frequency,time,energy\n"
      "0,0,0,0,0,forward,1000,1,30\n1,0,0,1,0,forward,1000,2,0\n",
      "two");
  EXPECT_EQ(profile.passes.front().options, (std::vector<ClockOption>{{1000, 2, 30}}));
  EXPECT_EQ(profile.notes, (std::vector<std::string>{
                               "forward of stage 0 has an energy of 0 J on some ranks at 1 of 1 "
                               "clocks; the mean is of the others"}));
}

TEST(PipelineWork, NamesWhatIsMissing) {
  expect_error<DataError>(
      [] {
        (void)work(ScheduleKind::one_f_one_b, parse("0,forward,1000,1,30\n1,forward,1000,1,30\n"));
      },
      "no profile of the backward pass of stage 0");
  expect_error<DataError>(
      [] { (void)work(ScheduleKind::one_f_one_b, parse("0,forward,1000,1,30\n")); },
      "the profile has 1 stages; the pipeline has 2");
  expect_error<DataError>(
      [] {
        (void)pipeline_work(make_schedule({.stages = 2, .microbatches = 1}), parse(two_stages),
                            -1.0);
      },
      "blocked power is -1 W; expected a number >= 0");
}

}  // namespace
}  // namespace rubato
