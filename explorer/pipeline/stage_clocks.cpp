#include "explorer/pipeline/stage_clocks.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "common/algorithms/sort_by.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr std::size_t few_clocks = 12;

constexpr double unreached = std::numeric_limits<double>::infinity();

// All clocks of a stage's options. Those with the least sum of times over the stage's types of
// passes come first.
std::vector<ClockOption> settings_of(const PipelineWork& work, std::uint32_t stage) {
  std::vector<ClockOption> settings;
  for (const PassType& type : work.types) {
    if (type.stage != stage) continue;
    for (const ClockOption& option : type.options) {
      const auto known = std::ranges::find_if(
          settings, [&](const ClockOption& s) { return same_clock(s, option); });
      if (known == settings.end()) {
        settings.push_back(option);
      } else {
        known->time_s += option.time_s;
      }
    }
  }
  sort_by(settings, &ClockOption::time_s);
  return settings;
}

}  // namespace

std::vector<std::size_t> unbeaten(const std::vector<std::vector<double>>& values) {
  const auto beats = [&](std::size_t a, std::size_t b) {
    bool better = false;
    for (std::size_t i = 0; i < values[a].size(); ++i) {
      if (values[a][i] > values[b][i]) return false;
      better = better || values[a][i] < values[b][i];
    }
    return better || a < b;
  };
  std::vector<std::size_t> left;
  for (std::size_t b = 0; b < values.size(); ++b) {
    bool beaten = false;
    for (std::size_t a = 0; a < values.size() && !beaten; ++a) beaten = a != b && beats(a, b);
    if (!beaten) left.push_back(b);
  }
  return left;
}

StageClocks::StageClocks(const PipelineWork& work, const SwitchModel& switching)
    : work_(work), switching_(switching), rows_(work.schedule.rows()) {
  for (std::uint32_t stage = 0; stage < rows_.size(); ++stage) {
    settings_.push_back(settings_of(work, stage));
  }
  for (const PassType& type : work.types) {
    const std::vector<ClockOption>& settings = settings_[type.stage];
    std::vector<SettingCost>& costs =
        costs_.emplace_back(settings.size(), SettingCost{0.0, unreached, {}});
    std::vector<SettingId>& setting_of = setting_of_type_.emplace_back();
    for (std::size_t o = 0; o < type.options.size(); ++o) {
      const ClockOption& option = type.options[o];
      const auto setting = static_cast<std::size_t>(
          std::ranges::find_if(settings,
                               [&](const ClockOption& s) { return same_clock(s, option); }) -
          settings.begin());
      setting_of.push_back(id_at<SettingId>(setting));
      const double cost_j = option.energy_j - work.blocked_power_w * option.time_s;
      if (cost_j < costs[setting].cost_j) {
        costs[setting] = {option.time_s, cost_j, id_at<OptionId>(o)};
      }
    }
  }
  for (std::size_t stage = 0; stage < rows_.size(); ++stage) {
    all_.push_back(places_around(stage, settings(stage)));
    few_.push_back(places_around(stage, few_clocks));
  }
  const std::size_t passes = work.schedule.passes.size();
  for (const PassId id : topological_order(work.schedule)) order_.push_back(id.value);
  first_in_.assign(passes + 1, 0);
  for (const Dependency& d : work.schedule.dependencies) ++first_in_[index(d.to) + 1];
  for (std::size_t i = 0; i < passes; ++i) first_in_[i + 1] += first_in_[i];
  in_.resize(work.schedule.dependencies.size());
  std::vector<std::uint32_t> next(first_in_.begin(), first_in_.end() - 1);
  for (const Dependency& d : work.schedule.dependencies) {
    in_[next[index(d.to)]++] = {d.from.value, d.lag_s};
  }
  std::vector<double> least_s;  // of each type
  for (const std::vector<SettingCost>& of_type : costs_) {
    double& least = least_s.emplace_back(unreached);
    for (const SettingCost& cost : of_type)
      if (cost.cost_j < unreached) least = std::min(least, cost.time_s);
  }
  least_after_s_.assign(passes, 0.0);
  for (std::size_t i = order_.size(); i-- > 0;) {
    const std::uint32_t pass = order_[i];
    const double after_s = least_after_s_[pass] + least_s[index(work.type_of_pass[pass])];
    for (std::uint32_t e = first_in_[pass]; e < first_in_[pass + 1]; ++e) {
      double& before_s = least_after_s_[in_[e].other];
      before_s = std::max(before_s, in_[e].lag_s + after_s);
    }
  }
  before_.resize(passes);
  opens_stage_.resize(passes);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      before_[index(row[i])] = (i > 0 ? row[i - 1] : row.back()).value;
      opens_stage_[index(row[i])] = i == 0 ? 1 : 0;
    }
  }
}

std::vector<std::vector<SettingId>> StageClocks::places_around(std::size_t stage,
                                                               std::size_t most) const {
  std::map<std::pair<double, double>, std::vector<SettingId>> groups;
  std::vector<std::vector<double>> values(settings(stage));
  for (std::size_t k = 0; k < values.size(); ++k) {
    for (std::size_t t = 0; t < work_.types.size(); ++t) {
      if (work_.types[t].stage == stage)
        values[k].insert(values[k].end(), {costs_[t][k].time_s, costs_[t][k].cost_j});
    }
  }
  for (const std::size_t k : unbeaten(values)) {
    const ClockOption& clock = settings_[stage][k];
    groups[{clock.mem_mhz, clock.power_limit_w}].push_back(id_at<SettingId>(k));
  }
  for (auto& [states, group] : groups) {
    if (group.size() <= most) continue;
    std::vector<SettingId> some;
    for (std::size_t i = 0; i < most; ++i)
      some.push_back(group[i * (group.size() - 1) / (most - 1)]);
    group = std::move(some);
  }
  std::vector<std::vector<SettingId>> around(settings(stage));
  for (std::size_t k = 0; k < settings(stage); ++k) {
    std::vector<std::pair<std::size_t, SettingId>> moves;
    for (const auto& [states, group] : groups) {
      const auto here = static_cast<std::size_t>(
          std::ranges::lower_bound(group, id_at<SettingId>(k)) - group.begin());
      for (std::size_t far = 0, next = 1; far < group.size();
           far = std::exchange(next, std::max<std::size_t>(far, 1) + next)) {
        if (here >= far && here - far < group.size()) moves.emplace_back(far, group[here - far]);
        if (far > 0 && here + far < group.size()) moves.emplace_back(far, group[here + far]);
      }
    }
    std::ranges::stable_sort(moves, std::ranges::greater{},
                             &std::pair<std::size_t, SettingId>::first);
    for (const auto& [far, setting] : moves) around[k].push_back(setting);
  }
  return around;
}

SwitchCost StageClocks::change(std::size_t stage, SettingId from, SettingId to) const {
  if (from == to) return {};
  return change_of_clock(switching_, settings_[stage][index(from)], settings_[stage][index(to)]);
}

StagePlan StageClocks::stage_plan(const PipelinePlan& plan) const {
  StagePlan settings;
  for (std::size_t i = 0; i < plan.option_of_pass.size(); ++i) {
    const std::size_t type = index(work_.type_of_pass[i]);
    settings.push_back(setting_of_type_[type][index(plan.option_of_pass[i])]);
  }
  return settings;
}

PipelinePlan StageClocks::plan(const StagePlan& plan) const {
  PipelinePlan options;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    options.option_of_pass.push_back(cost(id_at<PassId>(i), plan[i]).option);
  }
  return options;
}

// When the clock that an iteration begins with took effect, on its own time axis: before 0, by the
// length of the run that ends the iteration before. As in simulate().
double StageClocks::first_effect_s(std::size_t stage, const StagePlan& plan) const {
  const std::vector<PassId>& row = rows_[stage];
  double run_s = 0.0;
  for (std::size_t i = row.size(); i-- > 0;) {
    if (plan[index(row[i])] != plan[index(row.back())]) break;
    run_s += cost(row[i], plan[index(row[i])]).time_s;
  }
  return -run_s;
}

double StageClocks::time_s(const StagePlan& plan, std::span<double> end_s, double limit_s) const {
  std::vector<double> effect_s(rows_.size());
  for (std::size_t stage = 0; stage < rows_.size(); ++stage) {
    effect_s[stage] = first_effect_s(stage, plan);
  }
  constexpr double rounding = 1e-9;  // more than that of sums in another order
  const double beyond_s = limit_s * (1.0 + rounding);
  double last_s = 0.0;
  for (const std::uint32_t pass : order_) {
    double start_s = 0.0;
    for (std::uint32_t e = first_in_[pass]; e < first_in_[pass + 1]; ++e) {
      start_s = std::max(start_s, end_s[in_[e].other] + in_[e].lag_s);
    }
    const std::uint32_t before = before_[pass];
    if (plan[before] != plan[pass]) {
      const std::uint32_t stage = work_.schedule.passes[pass].stage;
      const SwitchCost cost = change(stage, plan[before], plan[pass]);
      const double free_s = opens_stage_[pass] ? 0.0 : end_s[before];
      effect_s[stage] =
          std::max(free_s, effect_s[stage] + switching_.dwell_s + cost.lead_s) + cost.stall_s;
      start_s = std::max(start_s, effect_s[stage]);
    }
    end_s[pass] = start_s + cost(PassId{pass}, plan[pass]).time_s;
    last_s = std::max(last_s, end_s[pass]);
    if (end_s[pass] + least_after_s_[pass] > beyond_s) return unreached;
  }
  return last_s;
}

std::vector<double> StageClocks::latest_end_s(const StagePlan& plan, double time_s) const {
  std::vector<double> latest_s(plan.size(), time_s);
  for (std::size_t i = order_.size(); i-- > 0;) {
    const std::uint32_t pass = order_[i];
    const double start_s = latest_s[pass] - cost(PassId{pass}, plan[pass]).time_s;
    for (std::uint32_t e = first_in_[pass]; e < first_in_[pass + 1]; ++e) {
      double& before_s = latest_s[in_[e].other];
      before_s = std::min(before_s, start_s - in_[e].lag_s);
    }
    const std::uint32_t before = before_[pass];
    if (opens_stage_[pass] || plan[before] == plan[pass]) continue;
    const SwitchCost cost = change(work_.schedule.passes[pass].stage, plan[before], plan[pass]);
    latest_s[before] = std::min(latest_s[before], start_s - cost.stall_s);
  }
  return latest_s;
}

double StageClocks::stage_cost_j(std::size_t stage, const StagePlan& plan) const {
  CompensatedSum cost_j;
  const std::vector<PassId>& row = rows_[stage];
  for (std::size_t i = 0; i < row.size(); ++i) {
    const SettingId now = plan[index(row[i])];
    const SettingId before = plan[before_[index(row[i])]];
    cost_j.add(cost(row[i], now).cost_j);
    if (before != now) cost_j.add(change(stage, before, now).energy_j);
  }
  return cost_j.value();
}

double StageClocks::cost_j(const StagePlan& plan) const {
  CompensatedSum cost_j;
  for (std::size_t stage = 0; stage < rows_.size(); ++stage) {
    cost_j.add(stage_cost_j(stage, plan));
  }
  return cost_j.value();
}

std::vector<std::set<double>> limits_of(const PipelineWork& work) {
  std::vector<std::set<double>> limits(work.schedule.shape.stages);
  for (std::size_t p = 0; p < work.schedule.passes.size(); ++p) {
    for (const ClockOption& option : work.type_of(id_at<PassId>(p)).options)
      limits[work.schedule.passes[p].stage].insert(option.power_limit_w);
  }
  return limits;
}

std::optional<LimitedWork> with_options(
    const PipelineWork& work,
    const std::function<bool(std::size_t type, const ClockOption& option)>& keeps) {
  LimitedWork limited{work, {}};
  for (std::size_t t = 0; t < work.types.size(); ++t) {
    std::vector<ClockOption>& left = limited.work.types[t].options;
    std::vector<OptionId>& ids = limited.options.emplace_back();
    left.clear();
    for (std::size_t o = 0; o < work.types[t].options.size(); ++o) {
      const ClockOption& option = work.types[t].options[o];
      if (!keeps(t, option)) continue;
      left.push_back(option);
      ids.push_back(id_at<OptionId>(o));
    }
    if (left.empty()) return std::nullopt;
  }
  return limited;
}

std::optional<LimitedWork> with_limits(const PipelineWork& work, std::span<const double> limit_w) {
  std::vector<std::optional<double>> limit_of_type(work.types.size());
  for (std::size_t p = 0; p < work.schedule.passes.size(); ++p)
    limit_of_type[index(work.type_of_pass[p])] = limit_w[work.schedule.passes[p].stage];
  return with_options(work, [&](std::size_t type, const ClockOption& option) {
    return !limit_of_type[type] || option.power_limit_w == *limit_of_type[type];
  });
}

}  // namespace rubato
