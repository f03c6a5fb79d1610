#include "explorer/budget/budget.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

namespace rubato {
namespace {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  double operator()(double low, double high) {
    return std::uniform_real_distribution(low, high)(random_);
  }

 private:
  std::mt19937_64 random_;
};

// Random jobs whose slower options draw less, most of them.
std::vector<BudgetJob> random_jobs(Draws& uniform, std::size_t count, std::size_t options) {
  std::vector<BudgetJob> jobs;
  for (std::size_t j = 0; j < count; ++j) {
    BudgetJob& job = jobs.emplace_back();
    job.name = std::to_string(j);
    job.errs_with = j % 2 == 0 ? "a" : "b";
    job.worth_per_step = uniform(0.5, 4.0);
    if (uniform(0.0, 1.0) < 0.3) job.paused_w = uniform(10.0, 60.0);
    for (std::size_t i = 0; i < options; ++i)
      job.options.push_back({.time_s = uniform(0.5, 2.0),
                             .power_w = uniform(100.0, 400.0),
                             .time_error = 0.02,
                             .power_error = uniform(0.0, 0.1)});
  }
  return jobs;
}

// All choices, of which the best.
double best_value(const std::vector<BudgetJob>& jobs, const BudgetQuestion& question,
                  double errors) {
  double best = -std::numeric_limits<double>::infinity();
  const auto take = [&](auto& self, std::size_t j, double value, double weight_w) -> void {
    if (j == jobs.size()) {
      if (weight_w <= question.most_w) best = std::max(best, value);
      return;
    }
    const BudgetJob& job = jobs[j];
    const double price = job.price_per_kwh.value_or(question.price_per_kwh) / 3.6e6,
                 per_w = job.times * job.limit_per_w;
    for (const JobOption& one : job.options) {
      if (one.time_s > job.latest_step_s) continue;
      self(self, j + 1, value + job.times * (job.worth_per_step / one.time_s - price * one.power_w),
           weight_w + per_w * one.power_w * (1.0 + errors * *one.power_error));
    }
    if (job.paused_w && std::isinf(job.latest_step_s))
      self(self, j + 1, value - job.times * price * *job.paused_w,
           weight_w + per_w * *job.paused_w);
  };
  take(take, 0, 0.0, 0.0);
  return best;
}

TEST(Budget, IsTheBestOfAllChoices) {
  Draws uniform(7);
  std::size_t none = 0, waits = 0;
  for (int i = 0; i < 60; ++i) {
    std::vector<BudgetJob> jobs = random_jobs(uniform, 5, 4);
    if (i % 3 == 0) jobs.front().latest_step_s = 1.2;
    if (i % 5 == 0) {  // periods of a day
      for (BudgetJob& job : jobs) {
        job.times = uniform(0.5, 1.5);
        job.limit_per_w = uniform(0.5, 1.5);
        job.price_per_kwh = uniform(-100.0, 3000.0);
      }
    }
    BudgetQuestion question{.most_w = uniform(700.0, 1500.0),
                            .odds_frac = i % 2 == 0 ? 0.5 : 0.9,
                            .price_per_kwh = i % 4 == 0 ? 3000.0 : 0.0};
    const double best = best_value(jobs, question, i % 2 == 0 ? 0.0 : 1.2815515655446004);
    const BudgetAnswer answer = plan_budget(jobs, question);
    ASSERT_EQ(answer.found, std::isfinite(best));
    none += !answer.found;
    if (!answer.found) continue;
    EXPECT_TRUE(answer.proven);
    EXPECT_NEAR(answer.value_per_s, best, 1e-9 * std::abs(best));
    EXPECT_GE(answer.bound_per_s, best - 1e-9 * std::abs(best));
    EXPECT_LE(answer.power_w, question.most_w);
    EXPECT_GE(*answer.odds, question.odds_frac - 1e-9);
    for (std::size_t j = 0; j < jobs.size(); ++j)
      waits += answer.option_of_job[j] == jobs[j].options.size();
  }
  EXPECT_LT(none, 30U);
  EXPECT_GT(waits, 0U);
}

// Two jobs that err alike: the error of the sum is the sum of errors; else the root of squares.
TEST(Budget, OddsKnowWhichJobsErrAlike) {
  BudgetJob job{
      .name = "a",
      .errs_with = "gpu",
      .options = {{.time_s = 1.0, .power_w = 100.0, .time_error = 0.0, .power_error = 0.1}}};
  std::vector<BudgetJob> jobs{job, job};
  const BudgetQuestion question{.most_w = 220.0};
  EXPECT_NEAR(*plan_budget(jobs, question).odds, 0.5 * std::erfc(-1.0 / std::numbers::sqrt2),
              1e-12);
  jobs[1].errs_with = "another";
  EXPECT_NEAR(*plan_budget(jobs, question).odds, 0.5 * std::erfc(-1.0), 1e-12);
  jobs[1].options.front().power_error.reset();
  EXPECT_FALSE(plan_budget(jobs, question).odds);
}

// More watts are never worth less, and the least power is no more than that of any answer.
TEST(Budget, MoreWattsAreNeverWorthLess) {
  Draws uniform(11);
  const std::vector<BudgetJob> jobs = random_jobs(uniform, 30, 20);
  const BudgetAnswer least = plan_budget(jobs, {.goal = BudgetGoal::least_power});
  double before = -1.0;
  for (double watts = least.power_w; watts < 9000.0; watts *= 1.07) {
    const BudgetAnswer answer = plan_budget(jobs, {.most_w = watts});
    ASSERT_TRUE(answer.found);
    EXPECT_TRUE(answer.proven);
    EXPECT_GE(answer.worth_per_s, before);
    before = answer.worth_per_s;
  }
  EXPECT_FALSE(plan_budget(jobs, {.most_w = least.power_w * 0.999}).found);
}

// A rack of 1,000 jobs with 50 caps each: power follows the cap, speed its root or so.
TEST(Budget, ProvesAThousandJobsWithFiftyCaps) {
  Draws uniform(3);
  std::vector<BudgetJob> jobs;
  double today_w = 0.0;
  for (int j = 0; j < 1000; ++j) {
    BudgetJob& job = jobs.emplace_back();
    job.worth_per_step = uniform(1.0, 10.0);
    const double most_w = uniform(300.0, 700.0), bend = uniform(0.2, 0.7);
    for (int i = 0; i < 50; ++i) {
      const double share = 1.0 - 0.012 * i;
      job.options.push_back(
          {.time_s = std::pow(share, -bend) * uniform(0.999, 1.001), .power_w = most_w * share});
    }
    today_w += most_w;
  }
  const BudgetAnswer answer = plan_budget(jobs, {.most_w = 0.75 * today_w});
  EXPECT_TRUE(answer.found);
  EXPECT_TRUE(answer.proven);
  EXPECT_LE(answer.power_w, 0.75 * today_w);
  EXPECT_GE(answer.bound_per_s, answer.value_per_s * (1.0 - 1e-12));
}

}  // namespace
}  // namespace rubato
