#pragma once
// What a reader must know beside a saving: power limits that are not reached, clocks nobody
// measured, steps that do not fit into memory. Tables and databases show these words.

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
  limit_not_reached,    ///< draws more than the power limit even at the lowest clock
  clocks_not_fitted,    ///< runs at clocks beyond those the GPU was fitted at
  too_large,            ///< what the step holds is more than the GPU's memory
  scaled,               ///< kernels that were measured at other shapes
  changes_counted,      ///< changes of clock counted, in a run that takes them to be free
  changes_ignored,      ///< planned as if changes of clock cost nothing, which is known to be wrong
  not_applicable,       ///< cannot be set on GPUs as it is, see applicable()
  slack_missed,         ///< as played, takes longer than was asked for
  changes_for_nothing,  ///< one clock for all saves as much
  host_power_counted,   ///< energies include the rest of the node
  two_readings,         ///< the file does not say whether a host waited for the GPU or worked
  least_cost,           ///< its time follows from prices, not from a slack
};

/// As in tables and databases: "limit not reached".
[[nodiscard]] std::string_view name_of(MarkKind value) noexcept;

/// A mark, and what it means.
struct MarkWords {
  std::string_view name, meaning;
};
/// Of every kind of mark, in the order of MarkKind.
[[nodiscard]] std::span<const MarkWords> mark_words() noexcept;

/// Whether a saving with this mark deserves less trust: the model says what was not measured, or
/// what cannot be.
[[nodiscard]] bool is_doubt(MarkKind value) noexcept;

struct Mark {
  MarkKind kind;
  std::string reason;  ///< a sentence without its full stop
};

[[nodiscard]] bool has_mark(std::span<const Mark> marks, MarkKind kind);

/// The kinds of marks, for a column of a table: "limit not reached, slack missed".
[[nodiscard]] std::string kinds_text(std::span<const Mark> marks);

/// One line for each kind in `lists`, with the reason of the first mark that has it.
[[nodiscard]] std::string reasons_text(std::span<const std::vector<Mark>* const> lists);

/// " [clocks not fitted]", to be put behind a saving: each kind of doubt in `lists`. Empty if none.
[[nodiscard]] std::string doubts_text(std::span<const std::vector<Mark>* const> lists);

/// How much of a plan's time draws more than the power limit at the lowest clock, and how much is
/// at clocks beyond those that the GPU was fitted at.
class ClockUse {
 public:
  /// Adds launches of one kernel at one clock.
  /// @param point   of one launch alone
  /// @param time_s  of all of them together
  void add(const GpuSpec& spec, double power_limit_w, const KernelCoefficients& kernel,
           const OperatingPoint& point, double time_s);
  void add(const ClockUse& other);
  [[nodiscard]] std::vector<Mark> marks(const GpuSpec& spec) const;

 private:
  // Time of a part of a step, and the range of values (W or MHz) in it.
  struct Part {
    double time_s = 0.0;
    double least = std::numeric_limits<double>::infinity(), most = 0.0;

    void add(const Part& other);
    [[nodiscard]] std::string range(std::string_view unit) const;
    [[nodiscard]] std::string share_of(double all_s) const;
  };

  double all_s_ = 0.0, limit_w_ = 0.0;
  Part over_, beyond_;  ///< over the limit, values in W; beyond the fitted clocks, values in MHz
};

/// ClockUse of a plan of a trace.
/// @param cells  what evaluate_all says, shape [kernels x clocks]
[[nodiscard]] std::vector<Mark> marks_of_clocks(const Trace& trace, const GpuModel& model,
                                                const ClockGrid& grid, const Plan& plan,
                                                std::span<const OperatingPoint> cells);

/// A mark if what the step is known to hold (weights, gradients, ...) is more than the GPU's
/// memory. Nothing if it fits, or where either is not known.
[[nodiscard]] std::optional<Mark> mark_of_memory(const Trace& trace, const GpuSpec& spec);

/// The same for what a GPU is known to hold.
[[nodiscard]] std::optional<Mark> mark_of_memory(const HeldMemory& held, const GpuSpec& spec);

/// A mark with the share of time of kernels that were measured at other shapes; nothing below 1 %.
/// @param sources    shape [kernels]
/// @param by_kernel  totals at the default clocks, shape [kernels]
[[nodiscard]] std::optional<Mark> mark_of_scaled(std::span<const CoefficientSource> sources,
                                                 std::span<const Totals> by_kernel);

/// Of a plan that counts changes of clock, beside plans that take them to be free.
/// @param change  what one takes, see change_text()
[[nodiscard]] Mark mark_of_counted_changes(std::string_view change);

/// Every energy of a run includes the rest of the node. @param host_power_w  for each GPU, > 0
[[nodiscard]] Mark mark_of_host_power(double host_power_w);

/// The host power that mark_of_host_power() was given, W; 0 for other marks.
[[nodiscard]] double host_power_w_of(std::string_view kind, std::string_view reason);

/// Of a plan of a captured run that was chosen for least cost, not for a slack.
[[nodiscard]] Mark mark_of_least_cost(const Prices& prices);

/// Prices in words: "0.12 per kWh, PUE 1.2, 2 per GPU hour: time is worth 50000 W per GPU".
[[nodiscard]] std::string prices_text(const Prices& prices);

/// A plan with changes of clock against what it was asked for.
struct CountedPlan {
  const Goal& goal;
  Totals baseline;                ///< default clocks
  Totals planned;                 ///< with changes of clock as the plan took them
  std::optional<Totals> counted;  ///< with changes as the spec knows them, if the plan ignored them
  std::optional<double>
      best_one_clock_j;     ///< least energy of one clock for all that meets the goal
  std::string change = {};  ///< what a change takes in `counted`, see change_text()
};

[[nodiscard]] std::vector<Mark> marks_of_changes(const CountedPlan& plan);

}  // namespace rubato
