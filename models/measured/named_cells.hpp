#pragma once
// Measured cells of kernels that are found by name: for runs that hold other kernels as well.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/calibration/sweep.hpp"
#include "models/kernel/model.hpp"
#include "models/measured/measured_table.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Time and energy of kernels at the clocks they were measured at.
class NamedCells {
 public:
  /// @param sweep  one_setting
  /// @throws what cell_means throws
  NamedCells(const Sweep& sweep, const GpuSpec& spec);

  /// Position of the kernel of that name, else label. Nothing: it was not measured.
  [[nodiscard]] std::optional<std::size_t> find(const Kernel& kernel) const;

  /// One launch. @throws DataError if the kernel was not measured at that clock
  [[nodiscard]] OperatingPoint at(std::size_t kernel, const ClockPair& clock) const;

 private:
  GpuSpec spec_;
  std::string file_;
  std::vector<std::string> names_;
  std::vector<std::vector<CellMean>> cells_;  ///< by kernel
  std::map<std::string, std::size_t> position_;
};

/// A sweep's cells.
/// @param notes  gets what a reader must know, a line each
/// @throws DataError if no row has time and power; what cell_means throws
[[nodiscard]] std::shared_ptr<const NamedCells> named_cells(const Sweep& sweep, const GpuSpec& spec,
                                                            std::vector<std::string>& notes);

}  // namespace rubato
