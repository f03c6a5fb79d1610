#pragma once
// A lower bound of what plans of clocks cost: above that of free durations, which mix clocks inside
// every pass.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// Two ways from the end of one pass to the start of another: the two passes between them in their
/// row, and two passes of a neighbouring row. What lies between lasts as long as the longer way.
struct PassCell {
  std::array<std::uint32_t, 4> pass{};  ///< two of the row itself, two of the neighbouring one
  std::array<std::uint32_t, 6> arc{};   ///< dependencies along the two ways
};

/// Bounds of one pipeline. With free durations every pass may mix two clocks by itself; here the
/// four passes of a cell must mix in step, since each time one way is as long as the other allows.
/// A multiplier for each clock of each pass of each cell moves costs between the passes and the
/// cells; for any multipliers the least costs of all passes and cells together bound every plan's.
/// Block by block they are raised ("max-sum diffusion" with min-marginals; Globerson and Jaakkola,
/// NeurIPS 2007), and in between flow is moved to where ways differ in length.
class CellBound {
 public:
  /// @param work, rounder  must outlive this
  CellBound(const PipelineWork& work, const ClockRounder& rounder);

  [[nodiscard]] const std::vector<PassCell>& cells() const noexcept { return cells_; }

  /// A bound for plans of any clocks; where there are no cells, that of the prices themselves.
  /// Nothing where it would hardly be as high as wanted.
  /// @param prices    a plan of sweep_frontier() for this work
  /// @param wanted_j  of cost at prices.time_s
  [[nodiscard]] std::optional<PriceLine> line(
      const FrontierPlan& prices, double wanted_j = -std::numeric_limits<double>::infinity()) const;

 private:
  // Passes x and y both wait for two others, and the flow through all four stays as it is when it
  // changes from these two arcs to the other two.
  struct Crossing {
    std::array<std::uint32_t, 2> along{}, across{};
  };
  void find_cells();
  void find_crossings();

  friend class CellAscent;
  const PipelineWork& work_;
  const ClockRounder& rounder_;
  std::vector<std::uint32_t> next_;                // of the row, shape [passes]; none at its end
  std::vector<std::vector<std::uint32_t>> leave_;  // arcs out of a pass, shape [passes]
  std::vector<PassCell> cells_;
  std::vector<Crossing> crossings_;
};

}  // namespace rubato
