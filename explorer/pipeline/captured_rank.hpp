#pragma once
// The passes of one captured rank at any clock, kernel by kernel. Kernels are anchored: at the
// captured clock each takes its captured time.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "sim/graph/graph_model.hpp"
#include "sim/simulator.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/pipeline/captured_passes.hpp"

namespace rubato {

/// A GPU to model.
struct CapturedGpu {
  GpuSpec spec;
  ClockPair captured_clock;  ///< requested, as in ClockGrid
  std::string grid;          ///< see make_clock_grid; clocks of other memory clocks are left out
};

/// The captured clock and the grid's other core clocks at its memory clock, highest first.
/// @throws UsageError as make_clock_grid
[[nodiscard]] std::vector<ClockPair> core_clocks(const CapturedGpu& gpu);

/// The mean of all passes of one kind on one rank.
struct MeanPass {
  double time_s = 0.0;
  double gap_s = 0.0;          ///< the part of time_s in which the main stream does nothing
  std::vector<double> main_s;  ///< shape [kernels]: captured time on the main stream
  std::vector<double> work;    ///< shape [kernels]: on all streams, in launches: GraphModel::work
};

/// The kernels of one rank. Refers to the capture, which must live as long.
class CapturedRank {
 public:
  /// @throws what capture_graph throws
  CapturedRank(const Capture& capture, const CapturedGpu& gpu);

  /// @param passes  of this rank, at least one
  /// @param main_stream  see CapturedStage
  [[nodiscard]] MeanPass mean_pass(std::span<const CapturedPass* const> passes,
                                   std::uint32_t main_stream) const;

  /// Time and energy of a mean pass at a clock, for three splits of kernels' times between core and
  /// memory: the best guess, as memory bound as their work leaves open, and as core bound. Gaps
  /// stay. Kernels that ran at the same time go on slowing each other down as they did.
  [[nodiscard]] std::array<Cost, 3> costs(const MeanPass& pass, const ClockPair& clock) const;

  /// Share of the time of a pass whose split is a guess by kernel class.
  [[nodiscard]] double guessed_frac(const MeanPass& pass) const;

  /// Idle power at the captured clock, W.
  [[nodiscard]] double idle_power_w() const { return best_.idle_power_w(captured_); }

 private:
  [[nodiscard]] Cost cost(const GraphModel& model, const MeanPass& pass,
                          const ClockPair& clock) const;

  const Capture* capture_;
  std::unique_ptr<const CaptureGraph> run_;
  ClockPair captured_;
  GraphModel best_, memory_bound_, core_bound_;
};

}  // namespace rubato
