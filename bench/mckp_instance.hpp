#pragma once
// Tables like those of real kernels, of any size, for benchmarks of the knapsack.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "explorer/knapsack/mckp.hpp"

namespace rubato {

/// Row-major [rows x items]. Times in s and energies in J, all > 0.
struct MckpInstance {
  std::vector<double> time_s;
  std::vector<double> energy_j;
  double budget_s = 0.0;
  std::size_t rows = 0;
  std::size_t items = 0;

  /// Least energy within the time; valid while the instance lives.
  [[nodiscard]] MckpProblem problem() const { return {rows, items, energy_j, time_s, budget_s}; }
};

/// Kernels of all sizes, bound by core or memory, on a grid of core x memory clocks;
/// 1 % of noise in time and energy. The budget is 2 % above the fastest clocks' time.
/// The same on every machine and for every run of the program.
/// @param rows, items  > 0
inline MckpInstance mckp_instance(std::size_t rows, std::size_t items) {
  std::mt19937_64 random(20260113);
  const auto uniform = [&random] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  MckpInstance made{.time_s = {}, .energy_j = {}, .budget_s = 0.0, .rows = rows, .items = items};
  made.time_s.reserve(rows * items);
  made.energy_j.reserve(rows * items);
  constexpr std::size_t memory_clocks = 6;
  for (std::size_t row = 0; row < rows; ++row) {
    const double size_s = 1e-4 * std::exp(6.0 * uniform());
    const double core_share = uniform();
    double fastest_s = 1e300;
    for (std::size_t item = 0; item < items; ++item) {
      const double memory =
          0.5 + 0.5 * static_cast<double>(item % memory_clocks + 1) / memory_clocks;
      const double core = 0.2 + 0.8 * static_cast<double>(item / memory_clocks + 1) /
                                    static_cast<double>((items - 1) / memory_clocks + 1);
      const double core_s = core_share / core, memory_s = (1.0 - core_share) / memory;
      const double time_s = size_s *
                            (0.6 * std::max(core_s, memory_s) + 0.4 * (core_s + memory_s)) *
                            (1.0 + 0.01 * uniform());
      const double volts = 0.7 + 0.3 * core * core;
      const double power_w = 60.0 + 40.0 * memory + 250.0 * core * volts * volts;
      made.time_s.push_back(time_s);
      made.energy_j.push_back(power_w * time_s * (1.0 + 0.01 * uniform()));
      fastest_s = std::min(fastest_s, time_s);
    }
    made.budget_s += 1.02 * fastest_s;
  }
  return made;
}

}  // namespace rubato
