#pragma once
// Time and energy of every row (kernel, or group of kernels) at every clock:
// the one hand-over from models, which fill it, to solvers, which only read it.

#include <cstddef>
#include <memory>
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
/// copies share the arrays, and any number of threads may read them without locks.
class ProfileTable {
 public:
  /// Cell (r, c) is element r * clocks + c of both arrays.
  /// @throws DataError if a size is wrong, or naming the first cell that is not finite and positive
  ProfileTable(std::size_t rows, std::size_t clocks, std::vector<double> time_s,
               std::vector<double> energy_j);

  /// Shares numbers that fill_costs wrote and checked, shape [2 x rows x clocks]: first all times,
  /// then all energies.
  /// @throws DataError if there are no rows or clocks
  ProfileTable(std::size_t rows, std::size_t clocks,
               const std::shared_ptr<const double[]>& numbers);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t clocks() const noexcept { return clocks_; }

  /// All clocks of one row; valid while the table lives.
  [[nodiscard]] std::span<const double> times_s(std::size_t row) const noexcept {
    return {time_s_.get() + row * clocks_, clocks_};
  }
  [[nodiscard]] std::span<const double> energies_j(std::size_t row) const noexcept {
    return {energy_j_.get() + row * clocks_, clocks_};
  }
  [[nodiscard]] Cost cost(std::size_t row, ClockId clock) const noexcept {
    const std::size_t cell = row * clocks_ + index(clock);
    return {time_s_.get()[cell], energy_j_.get()[cell]};
  }

 private:
  std::size_t rows_;
  std::size_t clocks_;
  std::shared_ptr<const double> time_s_;
  std::shared_ptr<const double> energy_j_;
};

/// @param clocks  cells per row
/// @throws DataError naming the first cell that is not finite and positive
void expect_sound_costs(std::span<const double> time_s, std::span<const double> energy_j,
                        std::size_t clocks);

/// Memory for `count` numbers, not yet written to. Large tables come in large pages (2 MiB) where
/// the system has them, so that the first write does not wait for every page of 4 KiB.
[[nodiscard]] std::shared_ptr<double[]> unset_numbers(std::size_t count);

}  // namespace rubato
