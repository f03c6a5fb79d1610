#pragma once
// A sweep as a least squares problem: shared parameters are those of spec_parameters, blocks are
// kernels.

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
  /// @param like   kept: the spec whose kernels those of the sweep are like; null: they are like
  ///               nothing
  SweepProblem(const GpuSpec& frame, const Sweep& sweep, const SweepFitOptions& options,
               const GpuSpec* like);
  SweepProblem(const SweepProblem&) = delete;
  SweepProblem& operator=(const SweepProblem&) = delete;

  [[nodiscard]] const ArrowProblem& problem() const { return problem_; }
  [[nodiscard]] const ArrowPoint& start() const { return centre_; }
  [[nodiscard]] std::span<const SpecParameter> parameters() const { return parameters_; }
  [[nodiscard]] GpuSpec spec_at(const Eigen::VectorXd& shared) const;

  /// Moves every measured number, and what kernels are like before any, by its error: the fit to
  /// this is one draw of the kernels that the points leave possible (randomised maximum likelihood;
  /// Oliver, He and Reynolds, ECMOR V, 1996).
  void perturb(const std::function<double()>& standard_normal);

  /// Starts every kernel again from bounds it may lie at, and keeps what is best.
  [[nodiscard]] ArrowPoint restart(const ArrowPoint& point) const;

 private:
  [[nodiscard]] std::size_t clock_index(const ClockPair& clock);
  [[nodiscard]] ArrowResiduals residuals(const ArrowPoint& at, const BlockMask& mask = {}) const;

  GpuSpec frame_;
  const Sweep& sweep_;
  /// Of kernels of which only points at the power limit were measured, others have none.
  std::vector<std::optional<LimitedKernelPrior>> limited_;
  SweepFitOptions options_;
  std::vector<SpecParameter> parameters_;
  std::vector<ClockPair> clocks_;      ///< distinct ones
  std::vector<std::size_t> clock_of_;  ///< of all points, kernel after kernel
  ArrowPoint centre_;
  Eigen::MatrixXd sigma_;
  Eigen::VectorXd noise_;  ///< of every row of the blocks, in standard errors
  ArrowProblem problem_;
};

}  // namespace rubato
