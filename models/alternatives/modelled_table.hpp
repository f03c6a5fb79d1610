#pragma once
// A measured table replaced by what a model, fitted to it, says of its cells: what somebody with
// the model but without the table would plan on.

#include <memory>

#include "models/alternatives/cell_model.hpp"
#include "models/alternatives/measured_table.hpp"

namespace rubato {

struct ModelledTable {
  std::shared_ptr<const MeasuredCells> cells;  ///< of all kernels at all clocks of the table
  ModelFit fit;
  /// Root mean square over measured cells of model / measured - 1.
  double missed_time = 0.0, missed_energy = 0.0;
};

/// @param table  at least one cell of each kernel was measured
/// @param sweep  what the table was made from: its power caps, and how its clocks were set
/// @throws what fit_cell_model throws
[[nodiscard]] ModelledTable modelled_table(const CellModelKind& kind, const MeasuredTable& table,
                                           const Sweep& sweep);

}  // namespace rubato
