#pragma once
// A lower bound on what plans of clocks that exist cost. It is higher than that of free durations,
// which let every pass mix two clocks by itself.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Two ways from the end of a pass to the start of another pass of the same stage. One leads
/// through the two passes between them on the stage, the other through two passes of a neighbouring
/// stage. The time between that end and that start is at least that of the longer way.
struct PassCell {
  std::array<std::uint32_t, 4> pass{};  ///< two of the stage itself, two of the neighbouring one
  std::array<std::uint32_t, 6> arc{};   ///< dependencies along the two ways, three each
};

/// Bounds of one pipeline, by Lagrangian relaxation with cells. With free durations every pass may
/// mix two clocks by itself. In a cell the four passes have to mix in step: each time the longer of
/// the two ways counts.
/// - A multiplier for each clock of each pass of each cell moves cost between the pass and the
///   cell. For any multipliers the sum of the least costs of all passes and cells is a lower bound.
/// - Block coordinate ascent raises it: cell by cell the multipliers are set from min-marginals
///   (Globerson and Jaakkola, "Fixing max-product", NeurIPS 2007).
/// - In between, flow is moved to where ways differ in length.
class CellBound {
 public:
  /// @param work, rounder  must outlive this
  CellBound(const PipelineWork& work, const ClockRounder& rounder);

  [[nodiscard]] const std::vector<PassCell>& cells() const noexcept { return cells_; }

  /// A bound for all plans of clocks. Without cells it is that of the prices themselves. Nothing if
  /// it would hardly be as high as wanted.
  /// @param prices    a plan of sweep_frontier() for this work
  /// @param wanted_j  bound wanted on the cost at prices.time_s
  [[nodiscard]] std::optional<PriceLine> line(
      const FrontierPlan& prices, double wanted_j = -std::numeric_limits<double>::infinity()) const;

 private:
  // Two passes that both wait for the same two others. The flow through all four passes stays as it
  // is if flow moves from the two arcs along stages to the two arcs across.
  struct Crossing {
    std::array<std::uint32_t, 2> along{}, across{};
  };
  void find_cells();
  void find_crossings();

  friend class CellAscent;
  const PipelineWork& work_;
  const ClockRounder& rounder_;
  std::vector<std::uint32_t> next_;                // pass after each on its stage, shape [passes]
  std::vector<std::vector<std::uint32_t>> leave_;  // arcs out of a pass, shape [passes]
  std::vector<PassCell> cells_;
  std::vector<Crossing> crossings_;
};

}  // namespace rubato
