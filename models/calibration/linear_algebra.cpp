#include "models/calibration/linear_algebra.hpp"

#include <algorithm>
#include <vector>

#include <Eigen/Dense>

namespace rubato {

using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Columns {
  Eigen::Index begin, end;
};

// Runs of columns of each row that are not zero.
std::vector<std::vector<Columns>> runs_of(const RowMajor& a) {
  std::vector<std::vector<Columns>> runs(static_cast<std::size_t>(a.rows()));
  for (Eigen::Index r = 0; r < a.rows(); ++r) {
    auto& of_row = runs[static_cast<std::size_t>(r)];
    for (Eigen::Index c = 0; c < a.cols(); ++c) {
      if (a(r, c) == 0.0) continue;
      if (of_row.empty() || of_row.back().end != c) of_row.push_back({c, c});
      of_row.back().end = c + 1;
    }
  }
  return runs;
}

// Rows that are added up before their sum is added to that of the chunks before.
Eigen::Index rows_of_chunk(Eigen::Index rows) {
  constexpr Eigen::Index most = 504, multiple = 8;
  const Eigen::Index chunks = std::max<Eigen::Index>(1, (rows + most - 1) / most);
  return (rows / chunks + multiple) / multiple * multiple;
}

}  // namespace

MatrixXd sparse_normal(const DenseView& a) {
  const RowMajor rows = a;
  const auto runs = runs_of(rows);
  MatrixXd sum = MatrixXd::Zero(a.cols(), a.cols());
  const Eigen::Index chunk = rows_of_chunk(a.rows());
  VectorXd part(a.cols());
  for (Eigen::Index first = 0; first < a.rows(); first += chunk) {
    for (Eigen::Index c = 0; c < a.cols(); ++c) {
      part.tail(a.cols() - c).setZero();
      for (Eigen::Index r = first; r < std::min(first + chunk, a.rows()); ++r) {
        const double factor = rows(r, c);
        if (factor == 0.0) continue;
        for (const Columns& run : runs[static_cast<std::size_t>(r)]) {
          const Eigen::Index begin = std::max(run.begin, c), count = run.end - begin;
          if (count > 0)
            part.segment(begin, count) += factor * rows.row(r).segment(begin, count).transpose();
        }
      }
      sum.col(c).tail(a.cols() - c) += part.tail(a.cols() - c);
    }
  }
  sum.triangularView<Eigen::StrictlyUpper>() = sum.transpose();
  return sum;
}

MatrixXd transposed_product(const DenseView& a, const DenseView& b) { return a.transpose() * b; }

MatrixXd product(const DenseView& a, const DenseView& b) { return a * b; }

MatrixXd solve_symmetric(const DenseView& a, const DenseView& b) { return a.ldlt().solve(b); }

MatrixXd cholesky_factor(const DenseView& a) { return a.llt().matrixL(); }

VectorXd solve_transposed_lower(const DenseView& lower, const DenseView& b) {
  return lower.transpose().triangularView<Eigen::Upper>().solve(b);
}

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
