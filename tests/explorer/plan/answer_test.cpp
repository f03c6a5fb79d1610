#include "explorer/plan/answer.hpp"

#include <algorithm>
#include <array>
#include <random>

#include <gtest/gtest.h>

namespace rubato {
namespace {

Contender plan_of(double objective_frac, std::string granularity = "kernel",
                  std::int64_t changes = 0) {
  return {.want = "strict_waste",
          .holds = true,
          .objective_frac = objective_frac,
          .clock_changes = changes,
          .clocks = changes == 0 ? 1 : 2,
          .granularity = std::move(granularity)};
}

// The position of the answer to the only want; -1: the default clocks; -2: none.
int answer_to(std::vector<Contender> plans) {
  const std::vector<PlanAnswer> answers = choose_answers(plans);
  EXPECT_EQ(answers.size(), 1U);
  if (answers.front().plan) return static_cast<int>(*answers.front().plan);
  return answers.front().keeps_default ? -1 : -2;
}

// Plans without the odds asked for are no answer, however much they save; odds that are not known
// count as enough.
TEST(Answer, HasTheOddsAskedFor) {
  Contender bold = plan_of(0.8), safe = plan_of(0.9), unknown = plan_of(0.85);
  bold.odds_in_time = 0.6;
  safe.odds_in_time = 0.9;
  for (Contender* plan : {&bold, &safe, &unknown}) plan->odds_frac = usual_odds_frac;
  EXPECT_EQ(answer_to({bold, safe}), 1);
  EXPECT_EQ(answer_to({bold}), -1);
  EXPECT_EQ(answer_to({bold, safe, unknown}), 2);
  for (Contender* plan : {&bold, &safe}) plan->odds_frac = 0.5;
  EXPECT_EQ(answer_to({bold, safe}), 0);
}

// Plans for two wants, no two alike in everything.
std::vector<Contender> some_plans(std::mt19937& random) {
  std::uniform_real_distribution<double> objective(0.9, 1.001), close(-2e-4, 2e-4);
  std::uniform_int_distribution<int> choice(0, 7), changes(0, 3);
  const double common = objective(random);
  std::vector<Contender> plans;
  for (int i = 0; i < 9; ++i) {
    constexpr std::array grains{"iteration", "gpu", "pass", "kernel", "segment"};
    Contender plan =
        plan_of(i % 2 == 0 ? objective(random) : common + close(random),
                grains[static_cast<std::size_t>(choice(random)) % grains.size()], changes(random));
    plan.clocks = 1 + choice(random) % 4;
    if (choice(random) == 0) plan.fitted = false;
    if (choice(random) == 0) plan.holds = false;
    if (choice(random) == 0) plan.verdict = {false, "it is short"};
    if (choice(random) < 2) plan.aggregation = "local";
    plan.want = choice(random) < 4 ? "strict_waste" : "relaxed_waste 5";
    plan.slack_frac = plan.want == "strict_waste" ? 0.0 : 0.05;
    plans.push_back(std::move(plan));
  }
  return plans;
}

// Its objective tells a plan: no two have the same.
std::optional<double> answer_of(const std::vector<Contender>& plans, const std::string& want) {
  for (const PlanAnswer& answer : choose_answers(plans)) {
    if (answer.want == want && answer.plan) return plans[*answer.plan].objective_frac;
  }
  return std::nullopt;
}

TEST(Answer, DoesNotDependOnTheOrderOfPlans) {
  std::mt19937 random(11);
  int found = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<Contender> plans = some_plans(random);
    const auto strict = answer_of(plans, "strict_waste"),
               relaxed = answer_of(plans, "relaxed_waste 5");
    found += strict.has_value() + relaxed.has_value();
    for (int k = 0; k < 5; ++k) {
      std::ranges::shuffle(plans, random);
      EXPECT_EQ(answer_of(plans, "strict_waste"), strict);
      EXPECT_EQ(answer_of(plans, "relaxed_waste 5"), relaxed);
    }
  }
  EXPECT_GT(found, 500);
}

TEST(Answer, DoesNotDependOnWhatElseIsWanted) {
  std::mt19937 random(12);
  for (int i = 0; i < 500; ++i) {
    const std::vector<Contender> plans = some_plans(random);
    for (const char* want : {"strict_waste", "relaxed_waste 5"}) {
      std::vector<Contender> alone;
      std::ranges::copy_if(plans, std::back_inserter(alone),
                           [&](const Contender& plan) { return plan.want == want; });
      EXPECT_EQ(answer_of(alone, want), answer_of(plans, want));
    }
  }
}

// The law: it can be set, it keeps its time, and nothing that can and does takes so much less that
// it is not alike.
TEST(Answer, IsAlikeToTheBestThatCanBeSet) {
  std::mt19937 random(13);
  for (int i = 0; i < 500; ++i) {
    std::vector<Contender> plans = some_plans(random);
    for (Contender& plan : plans) plan.fitted = true;
    for (const PlanAnswer& answer : choose_answers(plans)) {
      double least = 1.0;
      for (const Contender& plan : plans) {
        if (plan.want == answer.want && plan.holds && plan.verdict.applicable)
          least = std::min(least, plan.objective_frac);
      }
      EXPECT_EQ(answer.keeps_default, least > 1.0 - least_saving_frac);
      if (!answer.plan) continue;
      const Contender& chosen = plans[*answer.plan];
      EXPECT_TRUE(chosen.holds && chosen.verdict.applicable);
      EXPECT_LE(chosen.objective_frac, least + alike_objective_frac);
      for (const Contender& plan : plans) {
        if (plan.want == answer.want && plan.holds && plan.verdict.applicable &&
            plan.objective_frac <= least + alike_objective_frac) {
          EXPECT_LE(chosen.clock_changes, plan.clock_changes);
        }
      }
    }
  }
}

TEST(Answer, TheDefaultClocksStayWhereNothingSaves) {
  EXPECT_EQ(answer_to({plan_of(1.0 - 4.9e-4)}), -1);
  EXPECT_EQ(answer_to({plan_of(1.0 - 5.1e-4)}), 0);
  Contender late = plan_of(0.8);
  late.holds = false;
  EXPECT_EQ(answer_to({late}), -1);
  // Who asks for less time than the default clocks take cannot keep them.
  Contender shorter = plan_of(1.1);
  shorter.default_holds = false;
  EXPECT_EQ(answer_to({shorter}), 0);
  late.default_holds = false;
  EXPECT_EQ(answer_to({late}), -2);
}

TEST(Answer, OfPlansAlikeTheSimplest) {
  EXPECT_EQ(answer_to({plan_of(0.9, "kernel", 40), plan_of(0.90005, "pass", 2)}), 1);
  EXPECT_EQ(answer_to({plan_of(0.9, "kernel", 40), plan_of(0.90015, "pass", 2)}), 0);
  EXPECT_EQ(answer_to({plan_of(0.9, "kernel"), plan_of(0.9, "iteration")}), 1);
  Contender local = plan_of(0.9), moved = plan_of(0.9);
  local.aggregation = "local";
  moved.comm_sms = 4.0;
  EXPECT_EQ(answer_to({local, moved, plan_of(0.9)}), 2);
}

TEST(Answer, PlansBeyondTheFitLeaveWhereOthersSaveNearlyAsMuch) {
  Contender beyond = plan_of(0.8);
  beyond.fitted = false;
  EXPECT_EQ(answer_to({beyond, plan_of(0.82)}), 1);  // 0.18 is 0.9 of 0.2
  EXPECT_EQ(answer_to({beyond, plan_of(0.821)}), 0);
  EXPECT_EQ(answer_to({beyond}), 0);
}

TEST(Answer, TheHeadlineIsOfTheGoalAskedFirstAndOfTheLeastSlack) {
  const auto want = [](std::string text, double slack_frac, bool holds) {
    Contender plan = plan_of(0.9);
    plan.want = std::move(text);
    plan.slack_frac = slack_frac;
    plan.holds = holds;
    plan.default_holds = false;
    return plan;
  };
  const auto named = [](const std::vector<Contender>& plans) {
    const std::vector<PlanAnswer> answers = choose_answers(plans);
    const PlanAnswer* found = headline(plans, answers);
    return found == nullptr ? "" : found->want;
  };
  EXPECT_EQ(named({want("relaxed_waste 5", 0.05, true), want("strict_waste", 0.0, true),
                   want("edp", 0.0, true)}),
            "strict_waste");
  EXPECT_EQ(named({want("edp", 0.0, true), want("strict_waste", 0.0, true)}), "edp");
  EXPECT_EQ(named({want("relaxed_waste -5", -0.05, false), want("relaxed_waste 5", 0.05, true)}),
            "relaxed_waste 5");
  EXPECT_EQ(named({want("strict_waste", 0.0, false)}), "");
}

TEST(Answer, WantsAreGoalsWithTheirNumbers) {
  EXPECT_EQ(want_text(LeastWaste{}), "strict_waste");
  EXPECT_EQ(want_text(LeastWaste{.slack_frac = 0.05}), "relaxed_waste 5");
  EXPECT_EQ(want_text(LeastCost{{.per_kwh = 0.12, .per_gpu_hour = 2, .pue = 1.2}}),
            "least_cost 0.12 2 1.2");
  EXPECT_NE(want_text(LeastTime{5.0, {}}), want_text(LeastTime{{}, 5.0}));
}

TEST(Answer, BudgetsAndProductsAreMeasuredByTheirOwn) {
  const Cost base{1.0, 100.0};
  EXPECT_DOUBLE_EQ(contender(LeastEdp{}, Cost{1.1, 80.0}, base).objective_frac, 0.88);
  EXPECT_DOUBLE_EQ(contender(LeastEd2p{}, Cost{1.1, 80.0}, base).objective_frac, 0.968);
  EXPECT_TRUE(contender(LeastTime{90.0, {}}, Cost{1.1, 80.0}, base).holds);
  EXPECT_FALSE(contender(LeastTime{90.0, {}}, Cost{1.1, 80.0}, base).default_holds);
  EXPECT_FALSE(contender(LeastTime{{}, 70.0}, Cost{1.1, 80.0}, base).holds);
  EXPECT_FALSE(contender(LeastWaste{}, Cost{1.1, 80.0}, base).holds);
  EXPECT_TRUE(contender(LeastWaste{.slack_frac = 0.1}, Cost{1.1, 80.0}, base).holds);
  EXPECT_FALSE(contender(LeastWaste{}, {}, base).holds);
}

}  // namespace
}  // namespace rubato
