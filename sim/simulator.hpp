#pragma once
// Replays a trace under a plan, on its execution graph. Every total of a trace that a report shows
// comes from here.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/table/gpu_model.hpp"
#include "sim/graph/simulator.hpp"
#include "sim/plan.hpp"
#include "sim/switch_model.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Sums over one iteration.
struct Totals {
  double time_s = 0.0;
  double energy_j = 0.0;
  std::uint64_t launches = 0;
  std::uint64_t clock_switches = 0;
  std::uint64_t power_limited_launches = 0;

  [[nodiscard]] double average_power_w() const noexcept { return energy_j / time_s; }
};

/// Sums per pass and per kernel add up to `total` except for switch costs,
/// which are only in `total` and `switching`.
struct SimResult {
  Totals total;
  Totals switching;
  std::vector<Totals> by_pass;      ///< indexed by Pass, zero launches where a pass is absent
  std::vector<Totals> by_kernel;    ///< shape [kernels]
  std::uint64_t late_launches = 0;  ///< launches that ran, at least in part, at an unplanned clock
};

/// Adds host power, what the rest of the node draws: `power_w` times the time of each total.
void add_power(Totals& totals, double power_w) noexcept;
void add_power(SimResult& result, double power_w) noexcept;

/// Simulates plans of one trace. One object serves one thread.
class TraceSimulator {
 public:
  /// @param trace, model, grid  must outlive it
  /// @param cells  those of evaluate_all(model, grid) if they are at hand; must outlive it. Empty:
  ///               evaluated as needed
  TraceSimulator(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                 std::span<const OperatingPoint> cells = {});
  ~TraceSimulator();

  /// The launches of the trace, repeats expanded: the k-th is activity k + 1. Made when it is first
  /// needed. @throws DataError if there are too many, see launches()
  [[nodiscard]] const ExecutionGraph& graph();

  /// One iteration, event by event, in steady state: iterations like it came before. The plan is
  /// known ahead, so a change is requested early enough to take effect where it is wanted. If an
  /// earlier change is still under way then, or its dwell is not over, the request goes out as soon
  /// as these are. Until it takes effect kernels run on at the old clock. A clock that is no longer
  /// wanted by then is skipped.
  /// @throws DataError if the plan does not fit trace and grid, UsageError as validate
  [[nodiscard]] GraphRun replay(const Plan& plan, const GraphRunOptions& options);

  /// Totals of replay(). Where changes of clock are free, or there are none, launches are counted
  /// and not replayed: a segment takes as long whether it repeats once or a million times. Where
  /// there are too many launches to replay, most repeats of a segment are taken to add what those
  /// before them do.
  /// @throws what replay throws
  [[nodiscard]] SimResult totals(const Plan& plan, const SwitchModel& switching = {});

 private:
  class Cells;
  struct Unfolded;

  Unfolded& unfolded();
  [[nodiscard]] SimResult counted(const Plan& plan, std::uint64_t changes,
                                  std::span<const std::uint32_t> repeats = {}) const;
  [[nodiscard]] SimResult totals_in_parts(const Plan& plan, const SwitchModel& switching) const;

  const Trace& trace_;
  const ClockGrid& grid_;
  std::unique_ptr<Cells> cells_;
  std::unique_ptr<Unfolded> unfolded_;  // none as long as launches are only counted
};

/// The same of one plan. @throws what TraceSimulator::replay throws
[[nodiscard]] SimResult simulate(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                                 const Plan& plan, const SwitchModel& switching = {},
                                 std::span<const OperatingPoint> cells = {});

}  // namespace rubato
