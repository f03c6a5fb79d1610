#pragma once
// Times and energies that were measured, kernel by clock. A GpuModel that has such cells returns
// them in place of what its formulas say.

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "models/gpu/clock_pair.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

/// A table of cells, shape [kernels x clocks], of which some may be missing.
class MeasuredCells {
 public:
  /// @param clocks  distinct
  MeasuredCells(std::size_t kernels, std::vector<ClockPair> clocks);

  void set(KernelId kernel, const ClockPair& clock, const OperatingPoint& point);

  /// Null where the kernel was not measured at that clock. Valid while this object lives.
  [[nodiscard]] const OperatingPoint* find(KernelId kernel, const ClockPair& clock) const;

  /// Cells of all kernels at a clock, shape [kernels]; time 0: not measured. Empty at a clock that
  /// is none of `clocks`. Valid while this object lives.
  [[nodiscard]] std::span<const OperatingPoint> at(const ClockPair& clock) const;

  [[nodiscard]] std::span<const ClockPair> clocks() const noexcept { return clocks_; }
  [[nodiscard]] std::size_t kernels() const noexcept { return kernels_; }
  /// Kernels measured at a clock.
  [[nodiscard]] std::size_t measured_at(const ClockPair& clock) const;

 private:
  struct Before {
    bool operator()(const ClockPair& a, const ClockPair& b) const noexcept;
  };

  std::size_t kernels_;
  std::vector<ClockPair> clocks_;
  std::map<ClockPair, std::size_t, Before> column_;
  std::vector<OperatingPoint> cells_;  ///< shape [clocks x kernels]; time 0: not measured
};

}  // namespace rubato
