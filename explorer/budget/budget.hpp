#pragma once
// Several jobs under one limit of power: the setting of each for the most worth. docs/budget.md.

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/run_context.hpp"

namespace rubato {

/// One way to run a job: clocks, a power limit, or a stored plan.
struct JobOption {
  std::string setting = {};  ///< as people read it
  std::string command = {};  ///< what to type; empty: nothing, or it is not known
  double time_s = 0.0;       ///< of a step, > 0
  double power_w = 0.0;      ///< mean over the step, of all GPUs of the job, >= 0
  /// Standard errors of both, as shares of them; nothing: not known.
  std::optional<double> time_error = {}, power_error = {};
};

struct BudgetJob {
  std::string name;
  std::string errs_with = {};   ///< jobs of one text err alike: the name of their GPU
  double gpus = 1.0;            ///< > 0
  double worth_per_step = 1.0;  ///< > 0: steps, tokens or money
  double latest_step_s = std::numeric_limits<double>::infinity();  ///< its deadline, for each step
  std::optional<double> paused_w = {};  ///< what it draws where it may wait; nothing: it may not
  /// Of a job in one period of many under one limit: its worth and power count so often in the
  /// sums, and its power so much more in the limit (hours, and kg CO2e of a kWh).
  double times = 1.0, limit_per_w = 1.0;
  std::optional<double> price_per_kwh = {};  ///< its own; nothing: the question's
  std::vector<JobOption> options = {};       ///< the first: as it runs today

  [[nodiscard]] double worth_per_s(const JobOption& option) const {
    return worth_per_step / option.time_s;
  }
};

enum class BudgetGoal { most_worth, least_power };

/// Worth less the price of energy, within a limit of power.
struct BudgetQuestion {
  BudgetGoal goal = BudgetGoal::most_worth;
  double most_w = std::numeric_limits<double>::infinity();
  double odds_frac = 0.5;      ///< of staying within most_w, >= 0.5 and < 1
  double price_per_kwh = 0.0;  ///< in the unit of worth
};

/// What each job takes: a position in its options, or their number where it waits.
struct BudgetAnswer {
  bool found = false;   ///< false: no choice keeps limit and deadlines
  bool proven = false;  ///< no choice is better, see `bound_per_s`
  std::vector<std::size_t> option_of_job = {};
  double value_per_s = 0.0;  ///< worth less price of energy
  double bound_per_s = 0.0;  ///< no choice has more; of least power 0
  double worth_per_s = 0.0;
  double power_w = 0.0;             ///< as it counts in the limit
  double power_error_w = 0.0;       ///< standard error of power_w
  std::optional<double> odds = {};  ///< of staying within most_w; nothing: an error is not known
  std::optional<double> worth_error = {};  ///< standard error as a share; nothing: not known
};

/// The best choice of an option for each job, by the exact search of knapsack/mckp.hpp: a row for
/// each job, worth as negative cost, power as weight. For odds above 0.5 each option weighs more,
/// by so many of its standard errors: then the choice has at least these odds, whatever errors have
/// in common. What odds it has is worked out with errors that are the same for jobs that err alike,
/// and independent between others.
[[nodiscard]] BudgetAnswer plan_budget(std::span<const BudgetJob> jobs,
                                       const BudgetQuestion& question,
                                       const RunContext& context = {});

/// As plan_budget, for a given choice: what it is worth, and its odds. `proven` stays false.
[[nodiscard]] BudgetAnswer budget_of(std::span<const BudgetJob> jobs,
                                     const BudgetQuestion& question,
                                     std::vector<std::size_t> option_of_job);

}  // namespace rubato
