#pragma once
// Damped least squares for dense problems of some hundred parameters.

#include <functional>

#include <Eigen/Core>

namespace rubato {

/// Sum of squares to be minimised.
struct LeastSquaresProblem {
  std::function<Eigen::VectorXd(const Eigen::VectorXd&)> residuals;
  std::function<Eigen::MatrixXd(const Eigen::VectorXd&, const Eigen::VectorXd& residuals)> jacobian;
};

/// @param max_step  bound of each component of a step
/// @return the best point found; ends after `iterations`, or when a step gains less than 1e-5
/// Source: D. W. Marquardt, J. SIAM 11(2), 1963, with scaling by the diagonal.
[[nodiscard]] Eigen::VectorXd levenberg_marquardt(const LeastSquaresProblem& problem,
                                                  Eigen::VectorXd start, int iterations,
                                                  double max_step);

}  // namespace rubato
