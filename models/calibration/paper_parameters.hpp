#pragma once
// The shared parameters of a calibration and how they enter a spec.

#include <optional>
#include <vector>

#include <Eigen/Core>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// Positions of the shared parameters in the vector; all are natural logarithms.
/// Per-state blocks have one entry per memory state of the frame.
class SharedLayout {
 public:
  explicit SharedLayout(const GpuSpec& frame);

  [[nodiscard]] Eigen::Index size() const { return size_; }
  [[nodiscard]] Eigen::VectorXd start() const;

  /// Weight of the prior that holds each parameter near its start.
  [[nodiscard]] Eigen::VectorXd prior_weights() const;

  /// The frame with these parameters.
  [[nodiscard]] GpuSpec spec(const GpuSpec& frame, const Eigen::VectorXd& x) const;

  /// The parameters of a spec made by `spec`, to rounding; those it does not hold are as at the
  /// start. Nothing where its voltage curve or memory states are others.
  [[nodiscard]] std::optional<Eigen::VectorXd> parameters_of(const GpuSpec& spec) const;

  /// Whether `parameters_of` finds a parameter, shape [size].
  [[nodiscard]] std::vector<bool> in_specs() const;

  /// Whether a parameter may change what kernels cost at a clock: cells of the paper's card, or, at
  /// applied clocks, of that of the sweeps.
  [[nodiscard]] bool moves_cells(const GpuSpec& frame, Eigen::Index parameter,
                                 const ClockPair& clock, bool of_sweep) const;

  /// As `spec` for the other card of the sweeps: other silicon and temperature.
  [[nodiscard]] GpuSpec sweep_card(const GpuSpec& spec, const Eigen::VectorXd& x) const;

  /// Joules a second of the iteration is worth at the published optimum, J/s.
  [[nodiscard]] double time_price_w(const Eigen::VectorXd& x) const;

 private:
  Eigen::Index states_;
  Eigen::Index steps_;  ///< of the voltage curve
  Eigen::Index lowest_, boost_, voltage_, base_power_, clock_, bandwidth_, crossbar_, limit_,
      auto_voltage_, overlap_, dram_, leakage_, price_, card_power_, card_voltage_, size_;
};

/// Clocks of the voltage curve, MHz: the swept clocks, and one between the last
/// two where the power limit usually settles.
[[nodiscard]] std::vector<double> voltage_knots();

}  // namespace rubato
