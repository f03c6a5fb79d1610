#pragma once
// What a reader must know beside a saving: limits that do not bind, clocks nobody measured, steps
// that do not fit. Data, worded once; tables and databases show them as they are.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/goal.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/table/gpu_model.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"
#include "traces/trace.hpp"

namespace rubato {

enum class MarkKind {
  limit_not_reached,    ///< draws more than the power limit at the lowest clock
  clocks_not_fitted,    ///< runs at clocks beyond those the GPU was fitted at
  too_large,            ///< weights alone are more than the GPU's memory
  changes_ignored,      ///< planned as if changes of clock cost nothing, which is known to be wrong
  slack_missed,         ///< takes longer than asked for once changes of clock are counted
  changes_for_nothing,  ///< one clock for all saves as much
};

/// As in tables and databases: "limit not reached".
[[nodiscard]] std::string_view name_of(MarkKind value) noexcept;

struct Mark {
  MarkKind kind;
  std::string reason;  ///< a sentence without its full stop
};

/// What holds for a plan whatever it was chosen for: the power limit and the clocks in effect.
/// @param cells  what evaluate_all says, shape [kernels x clocks]
[[nodiscard]] std::vector<Mark> marks_of_clocks(const Trace& trace, const GpuModel& model,
                                                const ClockGrid& grid, const Plan& plan,
                                                std::span<const OperatingPoint> cells);

/// Whether the step's weights and gradients fit the GPU; nothing where either is not known.
[[nodiscard]] std::optional<Mark> mark_of_memory(const Trace& trace, const GpuSpec& spec);

/// A plan with changes of clock against what it was asked for.
struct CountedPlan {
  const Goal& goal;
  Totals baseline;                ///< default clocks
  Totals planned;                 ///< with changes as the plan was asked to take them
  std::optional<Totals> counted;  ///< with changes as the spec knows them, if it ignored that
  std::optional<double>
      best_one_clock_j;  ///< least energy of one clock for all that meets the goal
};

[[nodiscard]] std::vector<Mark> marks_of_changes(const CountedPlan& plan);

}  // namespace rubato
