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

// Rows of blocks, and rows of all, as in a fit; more rows than one chunk holds.
TEST(LinearAlgebra, SparseNormalIsTheProduct) {
  constexpr Eigen::Index rows = 1300, columns = 23, shared = 5;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(rows, columns);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const Eigen::Index own = shared + (r / 100) % (columns - shared);
    for (Eigen::Index c = 0; c < columns; ++c) {
      if (c < shared || c == own || r % 10 == 0)
        a(r, c) = std::sin(static_cast<double>(7 * r + 3 * c + 1));
    }
  }
  const Eigen::MatrixXd expected = a.transpose() * a, found = sparse_normal(a);
  EXPECT_LT((found - expected).cwiseAbs().maxCoeff(), 1e-12 * expected.cwiseAbs().maxCoeff());
  EXPECT_EQ(found, found.transpose());
}

// Sizes around those where panels begin and sums are broken; a matrix that is not definite, and one
// of less than full rank.
TEST(LinearAlgebra, SolvesAsEigenDoesToTheLastBit) {
  for (const Eigen::Index size : {3, 64, 77, 127, 128, 129, 145, 300}) {
    Eigen::MatrixXd a(size, size), b(size, 2);
    for (Eigen::Index c = 0; c < size; ++c) {
      for (Eigen::Index r = 0; r < size; ++r)
        a(r, c) = std::sin(static_cast<double>(r * r + 5 * c + 1)) / static_cast<double>(1 + c % 9);
      b(c, 0) = std::cos(static_cast<double>(c));
      b(c, 1) = static_cast<double>(c % 7);
    }
    const Eigen::MatrixXd definite = a.transpose() * a, mixed = a + a.transpose();
    Eigen::MatrixXd singular = definite;
    singular.row(size / 2).setZero();
    singular.col(size / 2).setZero();
    for (const Eigen::MatrixXd& matrix : {definite, mixed, singular}) {
      const Eigen::MatrixXd expected = matrix.ldlt().solve(b);
      EXPECT_EQ(solve_symmetric(matrix, b), expected) << size;
    }
  }
}

}  // namespace
}  // namespace rubato
