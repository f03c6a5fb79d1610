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

  /// Weight of the prior that holds each parameter near its start: 1 / standard deviation.
  [[nodiscard]] Eigen::VectorXd prior_weights() const;

  /// The frame with these parameters.
  [[nodiscard]] GpuSpec spec(const GpuSpec& frame, const Eigen::VectorXd& x) const;

  /// The inverse of `spec()`: the parameters of a spec that it made, but for rounding. Parameters
  /// that specs do not hold are as at the start. Nothing if the spec has another voltage curve or
  /// other memory states.
  [[nodiscard]] std::optional<Eigen::VectorXd> parameters_of(const GpuSpec& spec) const;

  /// Which parameters specs hold, so that parameters_of() finds them; shape [size].
  [[nodiscard]] std::vector<bool> in_specs() const;

  /// Whether a parameter may change what kernels cost at a clock.
  /// @param of_sweep  false: on the paper's card; true: on that of the sweeps, at applied clocks
  [[nodiscard]] bool moves_cells(const GpuSpec& frame, Eigen::Index parameter,
                                 const ClockPair& clock, bool of_sweep) const;

  /// `spec` changed for the card of the sweeps, another piece of silicon at another temperature:
  /// factors on base power and on voltage above the floor.
  [[nodiscard]] GpuSpec sweep_card(const GpuSpec& spec, const Eigen::VectorXd& x) const;

  /// Shadow price (Lagrange multiplier) of time at the published optimum: the joules that one
  /// second of the iteration is worth, W.
  [[nodiscard]] double time_price_w(const Eigen::VectorXd& x) const;

 private:
  Eigen::Index states_;
  Eigen::Index steps_;  ///< of the voltage curve
  Eigen::Index lowest_, boost_, voltage_, base_power_, clock_, bandwidth_, crossbar_, limit_,
      auto_voltage_, overlap_, dram_, leakage_, price_, card_power_, card_voltage_, size_;
};

/// Clocks of the points of the voltage curve, MHz: swept clocks, and one, 1800, where the power
/// limit usually settles.
[[nodiscard]] std::vector<double> voltage_knots();

}  // namespace rubato
