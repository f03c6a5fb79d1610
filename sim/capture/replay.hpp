#pragma once
// Replays a captured run, all streams at once, under the clocks it ran at or others: the same
// execution graph, other times and energies of its launches. docs/replay.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/measured/named_cells.hpp"
#include "models/table/gpu_model.hpp"
#include "sim/graph/simulator.hpp"
#include "traces/capture.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {

/// Which durations a replay takes at the captured clocks. captured: those recorded (anchored, see
/// models/kernel/anchor.hpp). model: what the model says of a kernel's work alone. At other clocks
/// both change as the model says. Kernels that the model cannot predict (CaptureReplay::source is
/// nothing) always take the recorded ones.
enum class DurationSource { captured, model };

struct SimulatedLaunch {
  double start_s = 0.0;   ///< since the first start of the capture
  double end_s = 0.0;     ///< >= start_s
  double energy_j = 0.0;  ///< its own, and its equal share of idle power while it runs
};

/// A replay, launch by launch.
struct CaptureRun {
  std::vector<SimulatedLaunch> launches;     ///< shape [launches of the capture]
  GraphRun graph;                            ///< of all activities, with phases
  std::vector<std::uint32_t> device_of_gpu;  ///< position in the capture of each GPU of the graph
  double makespan_s = 0.0;                   ///< last end of a launch
  double energy_j = 0.0;                     ///< all devices from 0 to the makespan, idle included
  double power_limited_s = 0.0;              ///< device time at a lowered clock

  /// Energy of one device over a span, J.
  [[nodiscard]] double energy_over_j(std::uint32_t device, double from_s, double to_s) const;
};

/// A capture on one type of GPU. Refers to the capture, which must live as long.
class CaptureReplay {
 public:
  /// @param captured_clock  clocks the capture ran at
  /// @param cells  times and energies of some kernels, in place of the spec's formulas. Of these
  ///               kernels `model` durations are those of the cells, and `captured` ones change
  ///               with the clock as the cells do
  /// @throws DataError if the capture has no launches, UsageError if the limit is
  ///         outside the spec's range
  CaptureReplay(const Capture& capture, const GpuSpec& spec, const ClockPair& captured_clock,
                std::optional<double> power_limit_w = {},
                std::shared_ptr<const NamedCells> cells = {});

  [[nodiscard]] const Capture& capture() const noexcept { return *capture_; }
  [[nodiscard]] const ExecutionGraph& graph() const noexcept { return run_->graph; }
  [[nodiscard]] const GpuSpec& spec() const noexcept { return anchored_.spec(); }
  [[nodiscard]] const ClockPair& captured_clock() const noexcept {
    return anchored_.captured_clock();
  }
  [[nodiscard]] std::int64_t origin_ns() const noexcept { return origin_ns_; }

  /// What the model knows a kernel by. Nothing: it does not know it (no FLOPs or bytes).
  [[nodiscard]] std::optional<CoefficientSource> source(KernelId kernel) const {
    return sources_[index(kernel)];
  }

  /// The captured start and end of a launch in seconds since the first start.
  [[nodiscard]] double captured_start_s(std::size_t launch) const;
  [[nodiscard]] double captured_end_s(std::size_t launch) const;
  [[nodiscard]] double captured_makespan_s() const;

  [[nodiscard]] CaptureRun run(const ClockPair& clock, DurationSource durations) const;

 private:
  [[nodiscard]] GraphModel predicted_model(const ClockPair& clock) const;
  [[nodiscard]] GraphModel captured_model(const ClockPair& clock) const;

  const Capture* capture_;
  std::int64_t origin_ns_;
  std::unique_ptr<const CaptureGraph> run_;
  GraphModel anchored_;  // returns the captured times
  std::shared_ptr<const NamedCells> cells_;
  std::vector<std::optional<CoefficientSource>> sources_;
};

}  // namespace rubato
