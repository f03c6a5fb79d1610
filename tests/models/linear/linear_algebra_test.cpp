#include "models/linear/linear_algebra.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "models/linear/levenberg_marquardt.hpp"

namespace rubato {
namespace {

// y = a exp(b x): the minimum is known because the data follow it exactly.
TEST(LevenbergMarquardt, FindsTheParametersOfAnExponential) {
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(20, 0.0, 2.0);
  const Eigen::VectorXd y = 3.0 * (0.7 * x.array()).exp();
  const LeastSquaresProblem problem{.residuals = [&](const Eigen::VectorXd& p) -> Eigen::VectorXd {
                                      return (p[0] * (p[1] * x.array()).exp()).matrix() - y;
                                    },
                                    .jacobian =
                                        [&](const Eigen::VectorXd& p, const Eigen::VectorXd&) {
                                          Eigen::MatrixXd j(x.size(), 2);
                                          j.col(0) = (p[1] * x.array()).exp();
                                          j.col(1) = p[0] * x.array() * (p[1] * x.array()).exp();
                                          return j;
                                        }};
  const Eigen::VectorXd found = levenberg_marquardt(problem, Eigen::Vector2d(1.0, 0.0), 100, 1.0);
  EXPECT_NEAR(found[0], 3.0, 1e-4);
  EXPECT_NEAR(found[1], 0.7, 1e-4);
}

}  // namespace
}  // namespace rubato
