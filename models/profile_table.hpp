#pragma once
// Time and energy of every row (kernel, or group of kernels) at every clock:
// the one hand-over from models, which fill it, to solvers, which only read it.

#include <cstddef>
#include <span>
#include <vector>

#include "common/ids.hpp"

namespace rubato {

/// Cost of one row at one clock.
struct Cost {
  double time_s = 0.0;    ///< wall time, > 0
  double energy_j = 0.0;  ///< board energy over time_s, idle power included, > 0
};

/// Dense table, shape [rows x clocks], time and energy in separate row-major
/// arrays so that scans over one quantity are vectorised. Immutable once built:
/// any number of threads may read it without locks.
class ProfileTable {
 public:
  /// Cell (r, c) is element r * clocks + c of both arrays.
  /// @throws DataError if a size is wrong, or naming the first cell that is not finite and positive
  ProfileTable(std::size_t rows, std::size_t clocks, std::vector<double> time_s,
               std::vector<double> energy_j);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t clocks() const noexcept { return clocks_; }

  /// All clocks of one row; valid while the table lives.
  [[nodiscard]] std::span<const double> times_s(std::size_t row) const noexcept {
    return {time_s_.data() + row * clocks_, clocks_};
  }
  [[nodiscard]] std::span<const double> energies_j(std::size_t row) const noexcept {
    return {energy_j_.data() + row * clocks_, clocks_};
  }
  [[nodiscard]] Cost cost(std::size_t row, ClockId clock) const noexcept {
    const std::size_t cell = row * clocks_ + index(clock);
    return {time_s_[cell], energy_j_[cell]};
  }

 private:
  std::size_t rows_;
  std::size_t clocks_;
  std::vector<double> time_s_;
  std::vector<double> energy_j_;
};

}  // namespace rubato
