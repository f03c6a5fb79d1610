#include "explorer/budget/budget.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "common/numbers.hpp"
#include "explorer/knapsack/mckp.hpp"

namespace rubato {

namespace {

constexpr double j_per_kwh = 3.6e6;

// Standard errors above the mean below which a Gaussian lies with these odds, 0.5 or more.
double errors_for(double odds_frac) {
  double low = 0.0, high = 8.0;
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::numbers::sqrt2) < odds_frac ? low : high) = middle;
  }
  return low;
}

// Of a joule.
double price_of(const BudgetJob& job, const BudgetQuestion& question) {
  return job.price_per_kwh.value_or(question.price_per_kwh) / j_per_kwh;
}

// An option of a job as the search sees it.
struct Item {
  std::size_t option = 0;
  double value_per_s = 0.0, weight_w = 0.0;
};

std::vector<Item> items_of(const BudgetJob& job, const BudgetQuestion& question) {
  const double errors = errors_for(question.odds_frac);
  const double price_per_j = price_of(job, question);
  const double per_w = job.times * job.limit_per_w;
  std::vector<Item> items;
  for (std::size_t i = 0; i < job.options.size(); ++i) {
    const JobOption& one = job.options[i];
    if (one.time_s > job.latest_step_s) continue;
    items.push_back(
        {.option = i,
         .value_per_s = job.times * (job.worth_per_s(one) - price_per_j * one.power_w),
         .weight_w = per_w * one.power_w * (1.0 + errors * one.power_error.value_or(0.0))});
  }
  if (job.paused_w && std::isinf(job.latest_step_s))
    items.push_back({.option = job.options.size(),
                     .value_per_s = -job.times * price_per_j * *job.paused_w,
                     .weight_w = per_w * *job.paused_w});
  return items;
}

// Of each job the item that draws least, the one worth more of two.
std::vector<std::size_t> least_power(const std::vector<std::vector<Item>>& items) {
  std::vector<std::size_t> choice;
  for (const std::vector<Item>& of_job : items) {
    const auto least = std::ranges::min_element(
        of_job, {}, [](const Item& item) { return std::pair(item.weight_w, -item.value_per_s); });
    choice.push_back(least->option);
  }
  return choice;
}

}  // namespace

BudgetAnswer budget_of(std::span<const BudgetJob> jobs, const BudgetQuestion& question,
                       std::vector<std::size_t> option_of_job) {
  BudgetAnswer answer{.found = true, .option_of_job = std::move(option_of_job)};
  CompensatedSum worth, power_w, price_per_s;
  bool power_known = true, time_known = true;
  // Shares of each kind of GPU err alike, those of different kinds independently.
  std::map<std::string, double> power_error_w, worth_error;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const BudgetJob& job = jobs[j];
    const double per_w = job.times * job.limit_per_w;
    const bool waits = answer.option_of_job[j] == job.options.size();
    const double drawn_w = waits ? *job.paused_w : job.options[answer.option_of_job[j]].power_w;
    power_w.add(per_w * drawn_w);
    price_per_s.add(job.times * price_of(job, question) * drawn_w);
    if (waits) continue;
    const JobOption& one = job.options[answer.option_of_job[j]];
    const double worth_per_s = job.times * job.worth_per_s(one);
    worth.add(worth_per_s);
    power_known = power_known && one.power_error;
    time_known = time_known && one.time_error;
    power_error_w[job.errs_with] += one.power_error.value_or(0.0) * per_w * one.power_w;
    worth_error[job.errs_with] += one.time_error.value_or(0.0) * worth_per_s;
  }
  const auto together = [](const std::map<std::string, double>& errors) {
    double squares = 0.0;
    for (const auto& [gpu, error] : errors) squares += error * error;
    return std::sqrt(squares);
  };
  answer.worth_per_s = worth.value();
  answer.power_w = power_w.value();
  answer.value_per_s = answer.worth_per_s - price_per_s.value();
  answer.power_error_w = together(power_error_w);
  if (time_known && answer.worth_per_s > 0.0)
    answer.worth_error = together(worth_error) / answer.worth_per_s;
  const double room_w = question.most_w - answer.power_w;
  if (power_known && std::isfinite(room_w))
    answer.odds = answer.power_error_w > 0.0
                      ? 0.5 * std::erfc(-room_w / answer.power_error_w / std::numbers::sqrt2)
                  : room_w >= 0.0 ? 1.0
                                  : 0.0;
  return answer;
}

BudgetAnswer plan_budget(std::span<const BudgetJob> jobs, const BudgetQuestion& question,
                         const RunContext& context) {
  std::vector<std::vector<Item>> items;
  std::size_t most = 0;
  for (const BudgetJob& job : jobs) {
    items.push_back(items_of(job, question));
    most = std::max(most, items.back().size());
    if (items.back().empty()) return {};
  }
  if (question.goal == BudgetGoal::least_power) {
    BudgetAnswer answer = budget_of(jobs, question, least_power(items));
    answer.found = answer.power_w <= question.most_w;
    answer.proven = true;
    return answer;
  }
  // All rows have as many items: short ones repeat their last.
  std::vector<double> cost, weight;
  for (const std::vector<Item>& of_job : items) {
    for (std::size_t i = 0; i < most; ++i) {
      const Item& item = of_job[std::min(i, of_job.size() - 1)];
      cost.push_back(-item.value_per_s);
      weight.push_back(item.weight_w);
    }
  }
  CompensatedSum all_w;  // more than any choice weighs
  for (const double one : weight) all_w.add(one);
  const MckpResult found = solve_mckp({.rows = items.size(),
                                       .items = most,
                                       .cost = cost,
                                       .weight = weight,
                                       .budget = std::min(question.most_w, all_w.value())},
                                      context);
  if (!found.feasible) return {};
  std::vector<std::size_t> choice;
  for (std::size_t j = 0; j < items.size(); ++j)
    choice.push_back(items[j][std::min(found.choice[j], items[j].size() - 1)].option);
  BudgetAnswer answer = budget_of(jobs, question, std::move(choice));
  answer.proven = found.proven;
  answer.bound_per_s = -found.lower_bound;
  return answer;
}

}  // namespace rubato
