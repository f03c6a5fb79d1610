#pragma once
// Non-negative least squares (NNLS) of a few unknowns, solved exactly.

#include <Eigen/Core>

namespace rubato {

/// The x >= 0 that minimises |a x - b|. All subsets of columns are tried, which only a few columns
/// allow: of the unconstrained solutions that come out non-negative, the best one is it. Of columns
/// that are linearly dependent the first ones are used.
/// @param a  shape [n x p], n >= 1, p from 1 to 4, finite
/// @param b  shape [n]
[[nodiscard]] Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& a,
                                                         const Eigen::VectorXd& b);

}  // namespace rubato
