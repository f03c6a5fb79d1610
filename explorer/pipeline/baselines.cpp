#include "explorer/pipeline/baselines.hpp"

#include <algorithm>
#include <array>

#include "common/error.hpp"
#include "explorer/pipeline/lowtime.hpp"
#include "explorer/pipeline/rounding.hpp"

namespace rubato {

namespace {

// Where our time at equal energy is looked for: at deadlines that exceed the time at which the
// bound has that energy by these shares.
constexpr std::array later_by{0.0, 2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2};

// The option of a type at the clocks of another option, if it has one.
std::optional<OptionId> option_at(const PassType& type, const ClockOption& clock) {
  for (std::size_t o = 0; o < type.options.size(); ++o) {
    if (same_clock(type.options[o], clock)) return id_at<OptionId>(o);
  }
  return std::nullopt;
}

// The plan in which all passes of a type have one option.
PipelinePlan by_type(const PipelineWork& work, const std::vector<OptionId>& option_of_type) {
  PipelinePlan plan;
  for (const PassTypeId type : work.type_of_pass) {
    plan.option_of_pass.push_back(option_of_type[index(type)]);
  }
  return plan;
}

double highest_clock_time_s(const PipelineWork& work, PassKind kind) {
  double most_s = 0.0;
  for (const PassType& type : work.types) {
    if (type.kind == kind) most_s = std::max(most_s, type.options.front().time_s);
  }
  return most_s;
}

// The first time at which the lower bound, waiting included, is no higher than an energy. Nothing
// if it is higher at all times.
std::optional<double> time_of_bound_s(const PipelinePlanner& planner, double energy_j) {
  const auto bound_j = [&](double time_s) {
    return planner.frontier().lower_bound_j(time_s) + planner.waiting_power_w() * time_s;
  };
  double low_s = planner.least_time_s(), high_s = planner.cheapest_time_s();
  if (bound_j(low_s) <= energy_j) return low_s;
  if (bound_j(high_s) > energy_j) return std::nullopt;
  for (int i = 0; i < 60; ++i) {
    const double middle_s = 0.5 * (low_s + high_s);
    (bound_j(middle_s) > energy_j ? low_s : high_s) = middle_s;
  }
  return high_s;
}

void put_ours_beside(BaselineResult& result, const PipelinePlanner& planner,
                     const RunContext& context) {
  std::vector<double> deadlines_s{result.run.time_s};
  if (const auto from_s = time_of_bound_s(planner, result.run.energy_j)) {
    for (const double share : later_by) {
      deadlines_s.push_back(std::min(result.run.time_s, *from_s * (1.0 + share)));
    }
  }
  const auto plans = planner.plan(deadlines_s, AfterEnd::go_on, context);
  if (plans.front().found()) result.at_equal_time = plans.front();
  for (const PipelineResult& plan : plans) {
    if (!plan.found() || plan.energy_j > result.run.energy_j) continue;
    if (!result.at_equal_energy || plan.run.time_s < result.at_equal_energy->run.time_s) {
      result.at_equal_energy = plan;
    }
  }
}

}  // namespace

PipelinePlan one_clock(const PipelineWork& work) {
  PipelinePlan best = highest_clocks(work);
  const PipelineRun highest = simulate(work, best);
  double best_j = highest.energy_j;
  for (const ClockOption& clock : work.types.front().options) {
    std::vector<OptionId> options;
    for (const PassType& type : work.types) {
      if (const auto option = option_at(type, clock)) options.push_back(*option);
    }
    if (options.size() < work.types.size()) continue;
    PipelinePlan plan = by_type(work, options);
    const PipelineRun run = simulate(work, plan);
    if (run.time_s > highest.time_s || run.energy_j >= best_j) continue;
    best_j = run.energy_j;
    best = std::move(plan);
  }
  return best;
}

PipelinePlan balanced_stages(const PipelineWork& work) {
  const double slowest_s = highest_clock_time_s(work, PassKind::forward);
  std::vector<std::optional<ClockOption>> clock_of_stage(work.schedule.shape.stages);
  for (const PassType& type : work.types) {
    if (type.kind != PassKind::forward) continue;
    for (const ClockOption& option : type.options) {
      auto& chosen = clock_of_stage[type.stage];
      if (option.time_s > slowest_s) continue;
      if (!chosen || option.core_mhz < chosen->core_mhz) chosen = option;
    }
  }
  std::vector<OptionId> options;
  for (const PassType& type : work.types) {
    const auto& clock = clock_of_stage[type.stage];
    options.push_back(clock ? option_at(type, *clock).value_or(OptionId{0}) : OptionId{0});
  }
  return by_type(work, options);
}

PipelinePlan slowed_around_last_stage(const PipelineWork& work) {
  PipelineWork limited = work;
  std::vector<std::vector<std::size_t>> kept(work.types.size());
  for (std::size_t t = 0; t < work.types.size(); ++t) {
    PassType& type = limited.types[t];
    const ClockOption highest = type.options.front();
    if (type.stage + 1 == work.schedule.shape.stages) type.options.resize(1);
    // Clocks are only lowered: options that are faster than the highest clock are noise.
    std::vector<ClockOption> slower;
    for (std::size_t o = 0; o < type.options.size(); ++o) {
      if (o > 0 && type.options[o].time_s < highest.time_s) continue;
      slower.push_back(type.options[o]);
      kept[t].push_back(o);
    }
    type.options = std::move(slower);
  }
  const ClockRounder rounder(limited);
  std::vector<double> duration_s;
  for (const PassTypeId type : work.type_of_pass) {
    duration_s.push_back(work.types[index(type)].options.front().time_s);
  }
  const double time_s = simulate(work, highest_clocks(work)).time_s;
  const auto plan = rounder.round(duration_s, time_s);
  if (!plan) return highest_clocks(work);
  PipelinePlan whole = *plan;
  for (std::size_t i = 0; i < whole.option_of_pass.size(); ++i) {
    OptionId& option = whole.option_of_pass[i];
    option = id_at<OptionId>(kept[index(work.type_of_pass[i])][index(option)]);
  }
  return whole;
}

std::vector<BaselineResult> compare_baselines(const PipelinePlanner& planner,
                                              const SwitchModel& switching, double unit_s,
                                              const RunContext& context) {
  const PipelineWork& work = planner.work();
  std::vector<BaselineResult> results;
  const auto add = [&](const char* method, const char* source, const PipelinePlan& plan) {
    BaselineResult result{method, source, plan, simulate(work, plan, {.switching = switching}),
                          {},     {}};
    put_ours_beside(result, planner, context);
    results.push_back(std::move(result));
  };
  add("highest clocks", "", highest_clocks(work));
  add("one clock for all", "Zeus, global", one_clock(work));
  add("one clock per stage", "Zeus, per stage", balanced_stages(work));
  add("around the last stage", "EnvPipe", slowed_around_last_stage(work));
  try {
    add("lowtime emulated", "Perseus", emulate_lowtime(work, unit_s).plan);
  } catch (const DataError&) {
    // The emulation fails on profiles of few distinct times: then there is nothing to compare.
  }
  return results;
}

}  // namespace rubato
