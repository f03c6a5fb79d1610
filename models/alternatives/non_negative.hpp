#pragma once
// Linear least squares of a few non-negative numbers, exactly.

#include <Eigen/Core>

namespace rubato {

/// The x >= 0 that minimises |a x - b|: the best of the unconstrained solutions over all subsets of
/// columns that come out non-negative. For a few columns: their subsets are tried.
/// @param a  shape [n x p], n >= 1, p from 1 to 4, finite
/// @param b  shape [n]
/// Of columns that say the same the first ones are used.
[[nodiscard]] Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& a,
                                                         const Eigen::VectorXd& b);

}  // namespace rubato
