#pragma once
// Pipelines whose changes of clock cost something: which clocks the passes of a stage can share,
// and what time and energy a plan of such clocks takes.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "sim/pipeline_run.hpp"

namespace rubato {

/// A clock of one stage: index into the stage's settings, fastest first.
using SettingId = Id<struct StageSettingTag>;

/// One pass at one setting. Its type may have no option at that clock.
struct SettingCost {
  double time_s = 0.0;
  double cost_j = 0.0;  ///< energy minus blocked power x time; infinite where there is no option
  OptionId option;
};

/// Which clocks a search may move to.
enum class Clocks {
  all,
  few  ///< at most 12 of each memory clock and power limit, evenly spread
};

/// A setting per pass, shape [passes]. Searches work on these in place of options.
using StagePlan = std::vector<SettingId>;

/// The work seen stage by stage. Immutable.
class StageClocks {
 public:
  /// @param work  must outlive this
  StageClocks(const PipelineWork& work, const SwitchModel& switching);

  [[nodiscard]] std::size_t stages() const noexcept { return rows_.size(); }
  [[nodiscard]] const std::vector<PassId>& row(std::size_t stage) const { return rows_[stage]; }
  [[nodiscard]] std::size_t settings(std::size_t stage) const { return settings_[stage].size(); }
  [[nodiscard]] const SettingCost& cost(PassId pass, SettingId setting) const {
    return costs_[index(work_.type_of_pass[index(pass)])][index(setting)];
  }
  /// Settings that a stage may move to from one, far ones first: of each memory clock and power
  /// limit, those that lie 0, 1, 2, 3, 5, 8 ... places to either side in order of time. Without
  /// settings that another one beats in time and cost for all passes of the stage.
  [[nodiscard]] const std::vector<SettingId>& around(std::size_t stage, SettingId from,
                                                     Clocks among) const {
    return (among == Clocks::few ? few_ : all_)[stage][index(from)];
  }
  /// What a change on a stage takes; nothing between equal settings.
  [[nodiscard]] SwitchCost change(std::size_t stage, SettingId from, SettingId to) const;
  [[nodiscard]] const SwitchModel& switching() const noexcept { return switching_; }
  [[nodiscard]] const PipelineWork& work() const noexcept { return work_; }

  [[nodiscard]] StagePlan stage_plan(const PipelinePlan& plan) const;
  [[nodiscard]] PipelinePlan plan(const StagePlan& plan) const;

  /// Iteration time of a plan, exactly as simulate() finds it.
  /// @param end_s    filled with the end of each pass, shape [passes]
  /// @param limit_s  infinity may be returned where the time is longer
  [[nodiscard]] double time_s(const StagePlan& plan, std::span<double> end_s,
                              double limit_s = std::numeric_limits<double>::infinity()) const;

  /// Cost of all passes (energy minus blocked power x time) and energy of all changes of clock.
  [[nodiscard]] double cost_j(const StagePlan& plan) const;

  /// What a stage's passes and changes cost; cost_j() is the sum over stages.
  [[nodiscard]] double stage_cost_j(std::size_t stage, const StagePlan& plan) const;

  /// The latest end of each pass that does not delay the iteration beyond time_s, shape [passes].
  /// A pass's slack is the time from its end to that. Of changes of clock only the stall counts.
  [[nodiscard]] std::vector<double> latest_end_s(const StagePlan& plan, double time_s) const;

 private:
  struct Edge {
    std::uint32_t other = 0;
    double lag_s = 0.0;
  };

  [[nodiscard]] std::vector<std::vector<SettingId>> places_around(std::size_t stage,
                                                                  std::size_t most) const;
  [[nodiscard]] double first_effect_s(std::size_t stage, const StagePlan& plan) const;

  const PipelineWork& work_;
  SwitchModel switching_;
  std::vector<std::vector<PassId>> rows_;
  std::vector<std::vector<ClockOption>> settings_;  // clocks only, shape [stages][settings]
  std::vector<std::vector<SettingCost>> costs_;     // shape [types][settings of the stage]
  std::vector<std::vector<std::vector<SettingId>>> all_, few_;  // shape [stages][settings][moves]
  std::vector<std::vector<SettingId>> setting_of_type_;         // shape [types][options]
  std::vector<std::uint32_t> order_, first_in_, before_;
  std::vector<char> opens_stage_;
  std::vector<Edge> in_;
  std::vector<double> least_after_s_;  // from the end of each pass to that of the iteration
};

/// The rows that no other one beats: nowhere more, somewhere less. Of equal rows the first.
/// @param values  shape [rows][values], less is better
[[nodiscard]] std::vector<std::size_t> unbeaten(const std::vector<std::vector<double>>& values);

/// Power limits of the options that each stage may choose from, W.
[[nodiscard]] std::vector<std::set<double>> limits_of(const PipelineWork& work);

/// The work with some of its options.
struct LimitedWork {
  PipelineWork work;
  std::vector<std::vector<OptionId>> options;  ///< those that are left, shape [types][options]
};

/// @param keeps  whether an option of a type is one of them
/// @return nothing if a type has none
[[nodiscard]] std::optional<LimitedWork> with_options(
    const PipelineWork& work,
    const std::function<bool(std::size_t type, const ClockOption& option)>& keeps);

/// The options of one power limit for each stage.
/// @param limit_w  shape [stages]
/// @return nothing if a pass has no option at the limit of its stage
[[nodiscard]] std::optional<LimitedWork> with_limits(const PipelineWork& work,
                                                     std::span<const double> limit_w);

}  // namespace rubato
