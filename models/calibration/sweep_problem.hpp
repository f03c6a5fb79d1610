#pragma once
// A sweep as a least squares problem for arrow_least_squares.hpp: shared parameters are those of
// spec_parameters, blocks are kernels.

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/calibration/kernel_prior.hpp"
#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/linear/arrow_least_squares.hpp"

namespace rubato {

class SweepProblem {
 public:
  /// @param frame  what is not fitted, and where the fit starts
  /// @param sweep  kept by reference
  /// @param like   the spec whose kernels give the prior of those of the sweep, kept; null: a prior
  ///               for kernels of any kind
  SweepProblem(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options,
               const GpuSpec* like);
  SweepProblem(const SweepProblem&) = delete;
  SweepProblem& operator=(const SweepProblem&) = delete;

  [[nodiscard]] const ArrowProblem& problem() const { return problem_; }
  [[nodiscard]] const ArrowPoint& start() const { return centre_; }
  [[nodiscard]] std::span<const SpecParameter> parameters() const { return parameters_; }
  [[nodiscard]] GpuSpec spec_at(const Eigen::VectorXd& shared) const;

  /// Moves every measured number and every prior mean by a random error. The fit to the moved
  /// numbers is one draw from the posterior: one set of kernels that the points leave possible
  /// (randomised maximum likelihood). Source: Oliver, He and Reynolds, ECMOR V, 1996.
  void perturb(const std::function<double()>& standard_normal);

  /// Fits every kernel again, from `point` and from starts at bounds it may lie at, and keeps the
  /// best. The shared parameters stay.
  [[nodiscard]] ArrowPoint restart(const ArrowPoint& point) const;

 private:
  [[nodiscard]] std::size_t clock_index(const ClockPair& clock);
  [[nodiscard]] ArrowResiduals residuals(const ArrowPoint& at, const BlockMask& mask = {}) const;

  GpuSpec frame_;
  const Sweep& sweep_;
  /// Of each kernel that was measured at the power limit only; the others have none.
  std::vector<std::optional<LimitedKernelPrior>> limited_;
  SweepFitOptions options_;
  std::vector<SpecParameter> parameters_;
  std::vector<ClockPair> clocks_;      ///< distinct ones
  std::vector<std::size_t> clock_of_;  ///< of all points, kernel after kernel
  ArrowPoint centre_;                  ///< means of the priors
  Eigen::MatrixXd sigma_;  ///< standard deviations of the kernels' priors, shape [7 x kernels]
  Eigen::VectorXd noise_;  ///< random error added to each residual of the blocks (perturb)
  ArrowProblem problem_;
};

}  // namespace rubato
