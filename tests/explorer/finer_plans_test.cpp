// The law of granularities, over all kinds of runs: a plan of a finer granularity takes no more
// than one of a coarser granularity that it includes, where both keep what was asked for as
// applied.

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/pipeline/shared/stage_planner.hpp"
#include "explorer/pipeline/stage_model.hpp"
#include "explorer/results/answers.hpp"
#include "sim/switch_model.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/made_exploration.hpp"
#include "tests/paths.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

constexpr std::array odds_fracs{0.0, usual_odds_frac};
const std::vector<Goal> goals{LeastWaste{0.0}, LeastWaste{0.01}, LeastWaste{0.02}, LeastWaste{0.1},
                              LeastEdp{}};

// @return pairs of plans that were compared
int expect_finer_take_no_more(std::span<const Contender> plans, const std::string& of) {
  int compared = 0;
  const auto holds = [](const Contender& plan) {
    return plan.holds && plan.verdict.applicable && has_odds(plan.odds_in_time, plan.odds_frac);
  };
  for (const Contender& coarse : plans) {
    for (const Contender& fine : plans) {
      if (fine.granularity <= coarse.granularity || fine.want != coarse.want || !holds(coarse) ||
          !holds(fine))
        continue;
      EXPECT_LE(fine.objective_frac, coarse.objective_frac * (1.0 + 1e-9))
          << of << ", " << coarse.want << ", odds " << coarse.odds_frac << ": "
          << name_of(fine.granularity) << " beside " << name_of(coarse.granularity);
      ++compared;
    }
  }
  return compared;
}

std::vector<Question> questions_per(std::span<const Granularity> units) {
  std::vector<Question> questions;
  for (const Goal& goal : goals) {
    for (const Granularity unit : units) {
      const bool is_segment = unit == Granularity::segment;
      if (!is_segment || std::holds_alternative<LeastWaste>(goal))
        questions.push_back({unit, Aggregation::global, goal, is_segment});
    }
  }
  return questions;
}

TEST(FinerPlans, OfTracesTakeNoMore) {
  int compared = 0;
  for (const char* gpu : {"rtx-3080-ti", "rtx-2070-super"}) {
    for (const bool free : {true, false}) {
      for (const double odds_frac : odds_fracs) {
        ExplorationInput input =
            paper_input("", questions_per(std::array{Granularity::run, Granularity::pass,
                                                     Granularity::kernel, Granularity::segment}));
        input.spec = load_gpu_spec(gpu);
        if (!free) input.switching = switch_model(input.spec);
        input.odds_frac = odds_frac;
        const Exploration found = explore(input);
        compared += expect_finer_take_no_more(answers_of(found).contenders, gpu);
      }
    }
  }
  EXPECT_GT(compared, 50);
}

// Of the shipped example, whose segments are planned once for the time that has the odds.
TEST(FinerPlans, OfCapturesTakeNoMore) {
  GraphExplorationInput input = made_exploration_input({}, {});
  input.captures = {import_capture(source_dir() / "docs/examples/run.pt.trace.json.gz")};
  input.switching = switch_model(input.spec);
  input.grid = "coarse";
  input.odds_frac = usual_odds_frac;
  for (const Granularity unit : {Granularity::run, Granularity::pass, Granularity::segment})
    input.questions.push_back({unit, Aggregation::global, LeastWaste{0.1}});
  const GraphExploration found = explore_captured(input);
  EXPECT_EQ(expect_finer_take_no_more(answers_of(found).contenders, "capture"), 3);
}

// Changes of clock count, so that a clock for each stage, which needs none, may be hard to beat.
TEST(FinerPlans, OfStagesTakeNoMore) {
  constexpr std::array units{Granularity::run, Granularity::gpu, Granularity::stage,
                             Granularity::pass, Granularity::kernel};
  int compared = 0;
  StageModelInput input{.shape = gpt_preset("gpt3-xl"),
                        .spec = load_gpu_spec("rtx-3080-ti"),
                        .grid = "mem=auto core=630:1890:210,auto",
                        .stages = 4,
                        .clocks = PassClocks::per_kernel,
                        .slacks_frac = {0.0, 0.02, 0.1}};
  input.shape.model.layers = 8;
  input.blocked_power_w = model_idle_power_w(input.spec, input.grid);
  const ModelProfile model = model_profile(input);
  const PipelineWork work = pipeline_work(make_schedule({.stages = 4, .microbatches = 4}),
                                          model.profile, input.blocked_power_w);
  const double base_s = simulate(work, highest_clocks(work)).time_s;
  const std::array deadlines_s{base_s, 1.02 * base_s, 1.1 * base_s};
  for (const SwitchModel& switching :
       {SwitchModel{.core = {.stall_s = 2e-3}, .mem = {}}, switch_model(input.spec)}) {
    const PlannerOptions options{.switching = switching};
    const PipelinePlanner planner(work, options);
    const PipelineIntervals intervals(input, model.clocks, work, switching);
    std::vector<Contender> plans;
    const auto add = [&](std::span<const Granularity> asked) {
      const StagePlanner stages(planner, options, asked);
      for (const auto& of_unit : stages.plans_with_odds(&intervals, deadlines_s, usual_odds_frac)) {
        for (const PipelineResult& plan : of_unit) plans.push_back(contender_of(planner, plan));
      }
      for (const PipelineResult& plan :
           stages.plans_of_goal(LeastEdp{}, [](const PipelineResult&) { return PlanVerdict{}; }))
        plans.push_back(contender_of(planner, plan));
    };
    add(units);
    add(std::array{Granularity::pass});  // alone: the same plans
    compared += expect_finer_take_no_more(plans, "stages");
  }
  EXPECT_GT(compared, 40);
}

}  // namespace
}  // namespace rubato
