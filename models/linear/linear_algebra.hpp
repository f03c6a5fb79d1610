#pragma once
// Products and decompositions of dense matrices. They are Eigen's, compiled in one place: every
// source file that spells one out costs the compiler two to ten seconds.

#include <optional>

#include <Eigen/Core>

namespace rubato {

/// A matrix, a vector or a block of columns or rows of either, not copied.
using DenseView = Eigen::Ref<const Eigen::MatrixXd>;

/// a^T b; shapes [n x p] and [n x q] give [p x q].
[[nodiscard]] Eigen::MatrixXd transposed_product(const DenseView& a, const DenseView& b);

/// a b; shapes [m x n] and [n x q] give [m x q].
[[nodiscard]] Eigen::MatrixXd product(const DenseView& a, const DenseView& b);

/// The solution x of a x = b for a symmetric `a`, which need not be definite (LDL^T with pivots).
[[nodiscard]] Eigen::MatrixXd solve_symmetric(const DenseView& a, const DenseView& b);

/// The lower triangular L with L L^T = a, for a symmetric positive definite `a`.
[[nodiscard]] Eigen::MatrixXd cholesky_factor(const DenseView& a);

/// The inverse of a symmetric positive definite `a`.
[[nodiscard]] Eigen::MatrixXd inverse(const DenseView& a);

/// The inverse of a symmetric `a`; none if its condition number is above 1e10.
[[nodiscard]] std::optional<Eigen::MatrixXd> inverse_if_well_conditioned(const DenseView& a);

/// A root R of a symmetric `a`, R R^T = a; tiny negative eigenvalues from rounding count as 0.
[[nodiscard]] Eigen::MatrixXd symmetric_root(const DenseView& a);

/// The least-squares solution x of a x = b (QR with pivots).
[[nodiscard]] Eigen::VectorXd least_squares(const DenseView& a, const DenseView& b);

}  // namespace rubato
