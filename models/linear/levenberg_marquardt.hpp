#pragma once
// Nonlinear least squares by the method of Levenberg and Marquardt: Gauss-Newton steps that are
// damped, for problems of some hundred parameters.

#include <functional>

#include <Eigen/Core>

namespace rubato {

/// Sum of squares to be minimised.
struct LeastSquaresProblem {
  std::function<Eigen::VectorXd(const Eigen::VectorXd&)> residuals;
  std::function<Eigen::MatrixXd(const Eigen::VectorXd&, const Eigen::VectorXd& residuals)> jacobian;
};

/// What damping adds to the diagonal of normal equations.
[[nodiscard]] Eigen::VectorXd added_to_diagonal(const Eigen::VectorXd& diagonal, double damping);

/// @param max_step  bound of each component of a step
/// @return the best point found. Ends after `iterations`, or when a step lowers the sum of squares
///         by less than 1e-5 of it
/// Source: D. W. Marquardt, J. SIAM 11(2), 1963, with scaling by the diagonal.
[[nodiscard]] Eigen::VectorXd levenberg_marquardt(const LeastSquaresProblem& problem,
                                                  Eigen::VectorXd start, int iterations,
                                                  double max_step);

}  // namespace rubato
