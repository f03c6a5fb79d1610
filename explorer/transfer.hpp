#pragma once
// A plan found on one trace, applied to another: what is kept of the saving?

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "explorer/exploration.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// A plan read back from a result database, with all that is needed to apply it.
struct StoredPlan {
  std::int64_t plan_id = 0;
  std::string trace;  ///< name of the trace it was found on
  Question question;  ///< as it was asked
  std::map<std::string, std::string>
      clock_of_kernel;  ///< Kernel::name -> label of the clock of its first launch
  GpuSpec spec;         ///< as it was used
  std::string grid;
  double power_limit_w = 0.0;
  SwitchModel switching;
  double host_power_w = 0.0;  ///< of the rest of the node, for each GPU, in every total
};

/// @throws UsageError if there is no such plan, or it was infeasible, or it is of least cost
[[nodiscard]] StoredPlan load_plan(const ResultStore& store, std::int64_t plan_id);

/// Totals of one iteration of the other trace.
struct Transfer {
  std::string trace;
  Totals baseline;          ///< default clocks
  Totals transferred;       ///< the plan's clocks; kernels it does not know run at default clocks
  SavingInterval interval;  ///< 90 % interval of the change from baseline to transferred
  Totals own;               ///< the best plan for this trace and the same question
  bool own_found = false;
  Totals own_in_time;  ///< least energy at that granularity in the transferred plan's time
  bool own_in_time_found = false;
  double known_frac = 0.0;    ///< share of default time in kernels the plan knows
  double limited_frac = 0.0;  ///< share of default time in launches the power limit slows down

  /// Energy that the trace's own plan would save beyond the transferred one, over the baseline;
  /// negative where the transferred plan takes more time than the question allows.
  [[nodiscard]] double regret_frac() const noexcept {
    return (transferred.energy_j - own.energy_j) / baseline.energy_j;
  }
  /// The same against the best plan that takes no more time than the transferred one. Not negative,
  /// with one exception: unknown kernels run at default clocks, and so the transferred plan may
  /// have more clocks than its granularity allows.
  [[nodiscard]] double equal_time_regret_frac() const noexcept {
    return (transferred.energy_j - own_in_time.energy_j) / baseline.energy_j;
  }
};

/// Plays a plan on another trace. Kernels are matched by name. The trace's own plan answers the
/// stored question on the same GPU, grid and power limit.
[[nodiscard]] Transfer transfer(const StoredPlan& plan, const Trace& trace,
                                const RunContext& context = {});

}  // namespace rubato
