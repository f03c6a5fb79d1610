#include "models/linear/arrow_least_squares.hpp"

#include <random>

#include <gtest/gtest.h>
#include <Eigen/Dense>

namespace rubato {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Linear residuals with two shared and three own parameters in each of four
// blocks: everything is known from the dense normal equations.
struct Linear {
  static constexpr Index shared = 2, own = 3, blocks = 4, rows = 7;
  MatrixXd matrix = MatrixXd::Zero(rows * blocks + shared, shared + own * blocks);
  VectorXd right = VectorXd::Zero(rows * blocks + shared);

  Linear() {
    std::mt19937_64 random(1);
    std::normal_distribution<double> gaussian;
    for (Index b = 0; b < blocks; ++b) {
      for (Index r = b * rows; r < (b + 1) * rows; ++r) {
        for (Index j = 0; j < shared; ++j) matrix(r, j) = gaussian(random);
        for (Index j = 0; j < own; ++j) matrix(r, shared + b * own + j) = gaussian(random);
        right[r] = 0.1 * gaussian(random);
      }
    }
    matrix.bottomLeftCorner(shared, shared).setIdentity();
  }

  [[nodiscard]] ArrowProblem problem() const {
    ArrowProblem out;
    for (Index b = 0; b <= blocks; ++b) out.first.push_back(b * rows);
    out.residuals = [this](const ArrowPoint& at, const BlockMask&) {
      VectorXd x(matrix.cols());
      x << at.shared, at.blocks.reshaped();
      const VectorXd r = matrix * x - right;
      return ArrowResiduals{r.head(rows * blocks), r.tail(shared)};
    };
    return out;
  }
  [[nodiscard]] ArrowPoint start() const {
    return {VectorXd::Zero(shared), MatrixXd::Zero(own, blocks)};
  }
};

TEST(ArrowLeastSquares, FindsTheDenseSolution) {
  const Linear linear;
  const ArrowPoint found = fit_arrow(linear.problem(), linear.start(), 50);
  const VectorXd dense = linear.matrix.colPivHouseholderQr().solve(linear.right);
  VectorXd ours(dense.size());
  ours << found.shared, found.blocks.reshaped();
  EXPECT_LT((ours - dense).norm(), 1e-4);
}

TEST(ArrowLeastSquares, BlocksAloneKeepTheSharedParameters) {
  const Linear linear;
  ArrowPoint start = linear.start();
  start.shared << 0.3, -0.2;
  const ArrowPoint found = fit_blocks(linear.problem(), start, 50);
  EXPECT_EQ(found.shared, start.shared);
  const MatrixXd own = linear.matrix.block(0, Linear::shared, Linear::rows, Linear::own);
  const VectorXd rest = linear.right.head(Linear::rows) -
                        linear.matrix.topLeftCorner(Linear::rows, Linear::shared) * start.shared;
  EXPECT_LT((found.blocks.col(0) - own.colPivHouseholderQr().solve(rest)).norm(), 1e-4);
}

TEST(ArrowLeastSquares, PosteriorIsTheInverseOfTheDenseNormalMatrix) {
  const Linear linear;
  const ArrowProblem problem = linear.problem();
  const ArrowPoint at = linear.start();
  const double variance = 0.25;
  const ArrowPosterior posterior(arrow_normal(problem, at, problem.residuals(at, {})), variance);
  const MatrixXd covariance = variance * (linear.matrix.transpose() * linear.matrix).inverse();
  for (Index j = 0; j < Linear::shared; ++j)
    EXPECT_NEAR(posterior.shared_sigma()[j], std::sqrt(covariance(j, j)), 1e-4);
  const Index block = 2, first = Linear::shared + block * Linear::own;
  EXPECT_LT(
      (posterior.block_covariance(block) - covariance.block(first, first, Linear::own, Linear::own))
          .norm(),
      1e-4);

  // Draws have that covariance: compared by the variance of one own parameter.
  std::mt19937_64 random(2);
  std::normal_distribution<double> gaussian;
  double squares = 0.0;
  constexpr int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    const double value = posterior.draw([&] { return gaussian(random); }).blocks(1, block);
    squares += value * value;
  }
  EXPECT_NEAR(squares / draws / covariance(first + 1, first + 1), 1.0, 0.05);
}

}  // namespace
}  // namespace rubato
