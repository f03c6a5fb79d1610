#include "models/alternatives/non_negative.hpp"

#include <limits>
#include <vector>

#include "models/linear/linear_algebra.hpp"

namespace rubato {

Eigen::VectorXd non_negative_least_squares(const Eigen::MatrixXd& a, const Eigen::VectorXd& b) {
  using Eigen::Index;
  constexpr double rounding = 1e-12;  // a larger subset must gain more than this to be taken
  // Columns of about the same size, whatever their units.
  const Eigen::VectorXd size = a.colwise().norm().cwiseMax(std::numeric_limits<double>::min());
  Eigen::VectorXd best = Eigen::VectorXd::Zero(a.cols());
  double best_cost = b.squaredNorm();
  for (unsigned subset = 1; subset < (1U << static_cast<unsigned>(a.cols())); ++subset) {
    std::vector<Index> used;
    for (Index j = 0; j < a.cols(); ++j) {
      if ((subset >> static_cast<unsigned>(j) & 1U) != 0U) used.push_back(j);
    }
    if (static_cast<Index>(used.size()) > a.rows()) continue;
    Eigen::MatrixXd part(a.rows(), static_cast<Index>(used.size()));
    for (Index j = 0; j < part.cols(); ++j)
      part.col(j) =
          a.col(used[static_cast<std::size_t>(j)]) / size[used[static_cast<std::size_t>(j)]];
    const Eigen::VectorXd x = least_squares(part, b);  // of equal columns one stays 0
    if (!x.allFinite() || x.minCoeff() < 0.0) continue;
    const double cost = (part * x - b).squaredNorm();
    if (cost >= best_cost - rounding * b.squaredNorm()) continue;
    best_cost = cost;
    best.setZero();
    for (Index j = 0; j < part.cols(); ++j)
      best[used[static_cast<std::size_t>(j)]] = x[j] / size[used[static_cast<std::size_t>(j)]];
  }
  return best;
}

}  // namespace rubato
