#pragma once
// What a reader must know beside a saving: limits that do not bind, clocks nobody measured, steps
// that do not fit. Data, worded once; tables and databases show them as they are.

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/goal.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/kernel/model.hpp"
#include "models/table/gpu_model.hpp"
#include "sim/plan.hpp"
#include "sim/simulator.hpp"
#include "traces/held_memory.hpp"
#include "traces/trace.hpp"

namespace rubato {

enum class MarkKind {
  limit_not_reached,    ///< draws more than the power limit at the lowest clock
  clocks_not_fitted,    ///< runs at clocks beyond those the GPU was fitted at
  too_large,            ///< what the step holds is more than the GPU's memory
  scaled,               ///< kernels that were measured at other shapes
  changes_counted,      ///< of a run that takes changes of clock to be free: this plan does not
  changes_ignored,      ///< planned as if changes of clock cost nothing, which is known to be wrong
  slack_missed,         ///< takes longer than asked for as played
  changes_for_nothing,  ///< one clock for all saves as much
  host_power_counted,   ///< energies have the rest of the node in them
  least_cost,           ///< its time follows from prices, not from a slack
};

/// As in tables and databases: "limit not reached".
[[nodiscard]] std::string_view name_of(MarkKind value) noexcept;

/// Whether a saving is worth less with it: what the model says was not measured, or cannot be.
[[nodiscard]] bool is_doubt(MarkKind value) noexcept;

struct Mark {
  MarkKind kind;
  std::string reason;  ///< a sentence without its full stop
};

/// Their kinds, as a table has room for: "limit not reached, slack missed".
[[nodiscard]] std::string kinds_text(std::span<const Mark> marks);

/// One line for each kind in `lists`, with the reason of the first mark that has it.
[[nodiscard]] std::string reasons_text(std::span<const std::vector<Mark>* const> lists);

/// " [clocks not fitted]" behind a saving: each kind of doubt in `lists`; empty where there is
/// none.
[[nodiscard]] std::string doubts_text(std::span<const std::vector<Mark>* const> lists);

/// What holds for a plan whatever it was chosen for: how long a power limit is not reached, and
/// which clocks in effect are beyond those that the GPU was fitted at.
class ClockUse {
 public:
  /// @param kernel  whose launches, alone, give the point
  /// @param time_s  all of them together take
  void add(const GpuSpec& spec, double power_limit_w, const KernelCoefficients& kernel,
           const OperatingPoint& point, double time_s);
  void add(const ClockUse& other);
  [[nodiscard]] std::vector<Mark> marks(const GpuSpec& spec) const;

 private:
  // Times and a range of values that are in effect for part of a step.
  struct Part {
    double time_s = 0.0;
    double least = std::numeric_limits<double>::infinity(), most = 0.0;

    void add(const Part& other);
    [[nodiscard]] std::string range(std::string_view unit) const;
    [[nodiscard]] std::string share_of(double all_s) const;
  };

  double all_s_ = 0.0, limit_w_ = 0.0;
  Part over_, beyond_;  ///< the limit, in W; the clocks of the fit, in MHz
};

/// ClockUse of a plan of a trace.
/// @param cells  what evaluate_all says, shape [kernels x clocks]
[[nodiscard]] std::vector<Mark> marks_of_clocks(const Trace& trace, const GpuModel& model,
                                                const ClockGrid& grid, const Plan& plan,
                                                std::span<const OperatingPoint> cells);

/// Whether the step's weights and gradients fit the GPU; nothing where either is not known.
[[nodiscard]] std::optional<Mark> mark_of_memory(const Trace& trace, const GpuSpec& spec);

/// The same of what a GPU is known to hold.
[[nodiscard]] std::optional<Mark> mark_of_memory(const HeldMemory& held, const GpuSpec& spec);

/// The share of the time that kernels take which were measured at other shapes; nothing below 1 %.
/// @param sources    shape [kernels]
/// @param by_kernel  of the same, at the default clocks
[[nodiscard]] std::optional<Mark> mark_of_scaled(std::span<const CoefficientSource> sources,
                                                 std::span<const Totals> by_kernel);

/// A plan made with what a change of clock takes beside plans that take it to be free.
/// @param change  what that is, see change_text()
[[nodiscard]] Mark mark_of_counted_changes(std::string_view change);

/// Every energy of a run has so many watts per GPU in it. @param host_power_w  > 0
[[nodiscard]] Mark mark_of_host_power(double host_power_w);

/// What mark_of_host_power was made of, W; 0 for other marks.
[[nodiscard]] double host_power_w_of(std::string_view kind, std::string_view reason);

/// What a plan of a captured run, which is asked for by its slack, was chosen for instead.
[[nodiscard]] Mark mark_of_least_cost(const Prices& prices);

/// Prices in words: "0.12 per kWh, PUE 1.2, 2 per GPU hour: time is worth 50000 W per GPU".
[[nodiscard]] std::string prices_text(const Prices& prices);

/// A plan with changes of clock against what it was asked for.
struct CountedPlan {
  const Goal& goal;
  Totals baseline;                ///< default clocks
  Totals planned;                 ///< with changes as the plan was asked to take them
  std::optional<Totals> counted;  ///< with changes as they are, if it ignored that
  std::optional<double>
      best_one_clock_j;     ///< least energy of one clock for all that meets the goal
  std::string change = {};  ///< what a change takes where it is counted, see change_text()
};

[[nodiscard]] std::vector<Mark> marks_of_changes(const CountedPlan& plan);

}  // namespace rubato
