#include "models/linear/linear_algebra.hpp"

#include <Eigen/Dense>

namespace rubato {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd transposed_product(const DenseView& a, const DenseView& b) { return a.transpose() * b; }

MatrixXd product(const DenseView& a, const DenseView& b) { return a * b; }

MatrixXd solve_symmetric(const DenseView& a, const DenseView& b) { return a.ldlt().solve(b); }

MatrixXd cholesky_factor(const DenseView& a) { return a.llt().matrixL(); }

MatrixXd inverse(const DenseView& a) {
  return solve_symmetric(a, MatrixXd::Identity(a.rows(), a.cols()));
}

std::optional<MatrixXd> inverse_if_well_conditioned(const DenseView& a) {
  constexpr double least_reciprocal = 1e-10;
  const VectorXd values = Eigen::SelfAdjointEigenSolver<MatrixXd>(a).eigenvalues().cwiseAbs();
  if (values.size() == 0 || values.minCoeff() <= least_reciprocal * values.maxCoeff())
    return std::nullopt;
  return inverse(a);
}

MatrixXd symmetric_root(const DenseView& a) {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> eigen(a);
  return eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0.0).cwiseSqrt().asDiagonal();
}

VectorXd least_squares(const DenseView& a, const DenseView& b) {
  return a.colPivHouseholderQr().solve(b);
}

}  // namespace rubato
