#include "models/linear/levenberg_marquardt.hpp"

#include <algorithm>
#include <cmath>

#include "models/linear/linear_algebra.hpp"

namespace rubato {

Eigen::VectorXd added_to_diagonal(const Eigen::VectorXd& diagonal, double damping) {
  constexpr double floor = 1e-3;  // keeps directions without data in place
  return damping * (diagonal.array() + floor).matrix();
}

Eigen::VectorXd levenberg_marquardt(const LeastSquaresProblem& problem, Eigen::VectorXd start,
                                    int iterations, double max_step) {
  constexpr double least_gain = 1e-5;
  constexpr int max_tries = 8;
  Eigen::VectorXd point = std::move(start);
  Eigen::VectorXd residuals = problem.residuals(point);
  double cost = residuals.squaredNorm();
  double damping = 1e-2;
  for (int i = 0; i < iterations; ++i) {
    const Eigen::MatrixXd jacobian = problem.jacobian(point, residuals);
    const Eigen::MatrixXd normal = transposed_product(jacobian, jacobian);
    const Eigen::VectorXd gradient = transposed_product(jacobian, residuals);
    double gain = 0.0;
    for (int attempt = 0; attempt < max_tries && gain == 0.0; ++attempt) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() += added_to_diagonal(normal.diagonal(), damping);
      const Eigen::VectorXd step = solve_symmetric(damped, -gradient);
      Eigen::VectorXd next = point + step.cwiseMax(-max_step).cwiseMin(max_step);
      Eigen::VectorXd next_residuals = problem.residuals(next);
      const double next_cost = next_residuals.squaredNorm();
      if (std::isfinite(next_cost) && next_cost < cost) {
        gain = (cost - next_cost) / cost;
        point = std::move(next);
        residuals = std::move(next_residuals);
        cost = next_cost;
        damping = std::max(damping / 4.0, 1e-9);
      } else {
        damping *= 4.0;
      }
    }
    if (gain < least_gain) break;
  }
  return point;
}

}  // namespace rubato
