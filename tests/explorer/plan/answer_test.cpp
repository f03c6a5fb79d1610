#include "explorer/plan/answer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

namespace rubato {
namespace {

Contender plan_of(double objective_frac, Granularity granularity = Granularity::kernel,
                  std::int64_t changes = 0) {
  return {.want = "strict_waste",
          .holds = true,
          .objective_frac = objective_frac,
          .clock_changes = changes,
          .clocks = changes == 0 ? 1 : 2,
          .granularity = granularity};
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

// From the definition: the share of a Gaussian below zero whose 95 % quantile is the high end.
TEST(Answer, SavesInThreeOfFourCasesWhereItIsLikelyTo) {
  std::mt19937 random(40);
  std::uniform_real_distribution<double> change(-10.0, 3.0), above(0.1, 12.0);
  std::array<int, 3> counts{};
  for (int i = 0; i < 2000; ++i) {
    const double expected = change(random), high = expected + above(random), low = expected - 8.0;
    const double sigma = (high - expected) / 1.6449;
    const double odds = 0.5 * std::erfc(expected / sigma / std::numbers::sqrt2);
    if (std::abs(odds - 0.75) < 1e-4) continue;
    const Saving saving = saving_of(low, expected, high);
    ++counts[static_cast<std::size_t>(saving)];
    if (low >= 0.0 || high < 0.0)
      EXPECT_EQ(saving, Saving::known);
    else
      EXPECT_EQ(saving, odds >= 0.75 ? Saving::likely : Saving::unlikely)
          << expected << ' ' << high;
  }
  EXPECT_GT(*std::ranges::min_element(counts), 100);
}

// Known savings go first, and what is unlikely to save is no answer.
TEST(Answer, IsOfKnownSavingWhereThatIsWorthIt) {
  Contender unlikely = plan_of(0.9), likely = plan_of(0.92), known = plan_of(0.95);
  unlikely.saving = Saving::unlikely;
  likely.saving = Saving::likely;
  EXPECT_EQ(answer_to({unlikely}), -1);
  EXPECT_EQ(answer_to({unlikely, likely}), 1);
  EXPECT_EQ(answer_to({unlikely, likely, known}), 2);
  EXPECT_TRUE(choose_answers(std::vector{likely, known}).front().known);
  EXPECT_FALSE(choose_answers(std::vector{likely}).front().known);
  // Where the default clocks do not hold, what is least counts.
  std::vector<Contender> needed{unlikely, likely, known};
  for (Contender& plan : needed) plan.default_holds = false;
  EXPECT_EQ(answer_to(needed), 0);
  // Half a point per kernel is no answer, known or not.
  known = plan_of(0.995, Granularity::kernel, 9);
  EXPECT_EQ(answer_to({likely, known}), 0);
}

// Plans for two wants, no two alike in everything.
std::vector<Contender> some_plans(std::mt19937& random) {
  std::uniform_real_distribution<double> objective(0.9, 1.001), close(-2e-4, 2e-4);
  std::uniform_int_distribution<int> choice(0, 7), changes(0, 3);
  const double common = objective(random);
  std::vector<Contender> plans;
  for (int i = 0; i < 9; ++i) {
    constexpr std::array grains{Granularity::run, Granularity::gpu, Granularity::pass,
                                Granularity::kernel, Granularity::segment};
    Contender plan =
        plan_of(i % 2 == 0 ? objective(random) : common + close(random),
                grains[static_cast<std::size_t>(choice(random)) % grains.size()], changes(random));
    plan.clocks = 1 + choice(random) % 4;
    if (choice(random) == 0) plan.fitted = false;
    if (choice(random) == 0) plan.holds = false;
    if (choice(random) == 0) plan.verdict = {false, "it is short"};
    plan.saving = static_cast<Saving>(std::max(0, choice(random) - 5));
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

// How fine a plan of some_plans() is: one clock for all is that of a run, whatever shared it.
std::ptrdiff_t fineness_of(const Contender& plan) {
  constexpr std::array grains{Granularity::run, Granularity::gpu, Granularity::pass,
                              Granularity::kernel, Granularity::segment};
  if (plan.clocks == 1 && plan.clock_changes == 0) return 0;
  return std::ranges::find(grains, plan.granularity) - grains.begin();
}

// The law: it can be set, it keeps its time, and of the plans as fine it is alike to the best. It
// saves a point more than what is named of coarser plans, and no finer one saves a point more.
TEST(Answer, OfPlansThatCanBeSetAFinerOneHasToSaveAPointMore) {
  std::mt19937 random(13);
  int finer_named = 0, coarser_kept = 0;
  for (int i = 0; i < 500; ++i) {
    std::vector<Contender> plans = some_plans(random);
    for (Contender& plan : plans) {
      plan.fitted = true;
      plan.saving = Saving::known;
    }
    for (const PlanAnswer& answer : choose_answers(plans)) {
      std::vector<Contender> rivals;
      std::ranges::copy_if(plans, std::back_inserter(rivals), [&](const Contender& plan) {
        return plan.want == answer.want && plan.holds && plan.verdict.applicable;
      });
      EXPECT_NE(answer.plan.has_value(), answer.keeps_default);
      const double chosen_frac = answer.plan ? plans[*answer.plan].objective_frac : 1.0;
      const std::ptrdiff_t chosen = answer.plan ? fineness_of(plans[*answer.plan]) : -1;
      double coarser_frac = 1.0, least_frac = 1.0;
      std::vector<Contender> coarser;
      for (const Contender& plan : rivals) {
        if (fineness_of(plan) < chosen) coarser.push_back(plan);
        if (fineness_of(plan) == chosen) least_frac = std::min(least_frac, plan.objective_frac);
        if (fineness_of(plan) > std::max<std::ptrdiff_t>(chosen, 0)) {
          EXPECT_GT(plan.objective_frac, chosen_frac - finer_saving_frac - alike_objective_frac);
          coarser_kept += plan.objective_frac < chosen_frac - alike_objective_frac;
        }
      }
      if (!answer.plan) continue;
      const Contender& named = plans[*answer.plan];
      EXPECT_TRUE(named.holds && named.verdict.applicable);
      EXPECT_LE(chosen_frac, least_frac + alike_objective_frac);
      if (const auto frac = answer_of(coarser, answer.want)) coarser_frac = *frac;
      EXPECT_LE(chosen_frac, coarser_frac - (chosen == 0 ? least_saving_frac : finer_saving_frac));
      finer_named += chosen > 0 && coarser_frac < 1.0;
      for (const Contender& plan : rivals) {
        if (fineness_of(plan) == chosen &&
            plan.objective_frac <= least_frac + alike_objective_frac) {
          EXPECT_LE(named.clock_changes, plan.clock_changes);
        }
      }
    }
  }
  EXPECT_GT(finer_named, 20);
  EXPECT_GT(coarser_kept, 20);
}

TEST(Answer, AFinerPlanTakesThePlaceOfACoarserOneForAPoint) {
  const Contender run = plan_of(0.95, Granularity::run), gpu = plan_of(0.944, Granularity::gpu, 2);
  EXPECT_EQ(answer_to({run, gpu}), 0);
  EXPECT_EQ(answer_to({gpu}), 0);
  EXPECT_EQ(answer_to({run, plan_of(0.9399, Granularity::gpu, 2)}), 1);
  // Of a chain of small steps, the plan that is a point better than the one named before it.
  EXPECT_EQ(answer_to({run, gpu, plan_of(0.938, Granularity::segment, 9)}), 2);
  EXPECT_EQ(answer_to({run, plan_of(0.9399, Granularity::gpu, 2),
                       plan_of(0.931, Granularity::segment, 9)}),
            1);
  // The default clocks are a coarser plan too. One clock for all is none, whatever shares it.
  EXPECT_EQ(answer_to({plan_of(0.991, Granularity::kernel, 2)}), -1);
  EXPECT_EQ(answer_to({plan_of(0.991, Granularity::kernel)}), 0);
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
  EXPECT_EQ(
      answer_to({plan_of(0.9, Granularity::kernel, 40), plan_of(0.90005, Granularity::kernel, 2)}),
      1);
  EXPECT_EQ(
      answer_to({plan_of(0.9, Granularity::kernel, 40), plan_of(0.90015, Granularity::kernel, 2)}),
      0);
  EXPECT_EQ(answer_to({plan_of(0.9, Granularity::kernel), plan_of(0.9, Granularity::run)}), 1);
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
