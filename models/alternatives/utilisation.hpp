#pragma once
// Power of a kernel from its utilisation of core and memory, taken as the same at all clocks.

#include <vector>

#include <Eigen/Core>

#include "models/alternatives/textbook.hpp"

namespace rubato {

/// After J. Guerreiro, A. Ilic, N. Roma, P. Tomas, HPCA 2018 (and IEEE TPDS 2019), eq. 6 and 7:
///   power = b V + V^2 f (core use) + (constant + memory clock x (memory use))
/// V(f) is fitted: 1 at the lowest clock, non-decreasing, linear between at most twelve clocks,
/// constant beyond them. V of memory is constant. In the paper, use comes from counters. Sweeps
/// have none, so the two uses of a kernel are fitted to its own points; b and V to the points of
/// all kernels. Time is by roofline: the paper has none.
class UtilisationPowerModel final : public CellModel {
 public:
  explicit UtilisationPowerModel(const ModelData& data);
  [[nodiscard]] OperatingPoint at(std::size_t kernel, const ClockPair& clock) const override;

  /// V at a core clock, relative to that at the lowest one.
  [[nodiscard]] double volts(double core_hz) const;

 private:
  struct Kernel {
    Roofline time;
    Eigen::Vector3d power;  ///< constant, core use, memory use
  };

  // Relative errors of all points at these shared numbers, each kernel's own numbers being the best
  // for them (variable projection).
  [[nodiscard]] Eigen::VectorXd residuals(const Eigen::VectorXd& shared,
                                          const std::vector<SeenPoints>& all);
  [[nodiscard]] Eigen::Vector3d best_power(const SeenPoints& seen) const;
  void set_shared(const Eigen::VectorXd& shared);

  ClockReader clocks_;
  std::vector<double> knot_hz_;  ///< ascending
  std::vector<double> knot_v_;
  double watts_per_volt_ = 0.0;  ///< b
  std::vector<Kernel> kernels_;
};

}  // namespace rubato
