#include "models/linear/arrow_least_squares.hpp"

#include <algorithm>
#include <cmath>

#include "models/linear/levenberg_marquardt.hpp"
#include "models/linear/linear_algebra.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double slope_step = 1e-5;
constexpr double max_step = 0.5;
constexpr double first_damping = 1e-2, least_damping = 1e-9;

MatrixXd damped(const MatrixXd& normal, double damping) {
  MatrixXd out = normal;
  out.diagonal() += added_to_diagonal(normal.diagonal(), damping);
  return out;
}

MatrixXd clamped(const MatrixXd& step) { return step.cwiseMax(-max_step).cwiseMin(max_step); }

ArrowPoint step(const ArrowNormal& normal, double damping) {
  ArrowNormal with_damping = normal;
  with_damping.shared = damped(normal.shared, damping);
  for (std::size_t k = 0; k < normal.own.size(); ++k)
    with_damping.own[k] = damped(normal.own[k], damping);
  const ArrowSolution solution(with_damping);
  const VectorXd shared = clamped(solution.shared());
  return {shared, clamped(solution.blocks(shared))};
}

}  // namespace

ArrowSolution::ArrowSolution(const ArrowNormal& normal)
    : reduced_(normal.shared),
      right_(-normal.shared_gradient),
      inverse_mixed_(normal.own.size()),
      inverse_gradient_(normal.own_gradient.rows(), normal.own_gradient.cols()) {
  for (Index k = 0; k < inverse_gradient_.cols(); ++k) {
    const auto i = static_cast<std::size_t>(k);
    const MatrixXd& mixed = normal.mixed[i];
    inverse_mixed_[i] = solve_symmetric(normal.own[i], mixed);
    inverse_gradient_.col(k) = solve_symmetric(normal.own[i], normal.own_gradient.col(k));
    reduced_.topLeftCorner(mixed.cols(), mixed.cols()) -=
        transposed_product(mixed, inverse_mixed_[i]);
    right_.head(mixed.cols()) += transposed_product(mixed, inverse_gradient_.col(k));
  }
}

VectorXd ArrowSolution::shared() const { return solve_symmetric(reduced_, right_); }

MatrixXd ArrowSolution::blocks(const VectorXd& shared) const {
  MatrixXd blocks = -inverse_gradient_;
  for (Index k = 0; k < blocks.cols(); ++k) {
    const MatrixXd& response = inverse_mixed_[static_cast<std::size_t>(k)];
    blocks.col(k) -= product(response, shared.head(response.cols()));
  }
  return blocks;
}

ArrowNormal arrow_normal(const ArrowProblem& problem, const ArrowPoint& at,
                         const ArrowResiduals& now, bool with_shared, const BlockMask& mask) {
  const Index shared = with_shared ? at.shared.size() : 0, own = at.blocks.rows(),
              blocks = at.blocks.cols();
  MatrixXd by_shared(now.blocks.size(), shared), priors(now.shared.size(), shared),
      by_own(now.blocks.size(), own);
  for (Index j = 0; j < shared; ++j) {
    ArrowPoint moved = at;
    moved.shared[j] += slope_step;
    const ArrowResiduals then = problem.residuals(moved, mask);
    by_shared.col(j) = (then.blocks - now.blocks) / slope_step;
    priors.col(j) = (then.shared - now.shared) / slope_step;
  }
  for (Index j = 0; j < own; ++j) {
    ArrowPoint moved = at;
    moved.blocks.row(j).array() += slope_step;
    by_own.col(j) = (problem.residuals(moved, mask).blocks - now.blocks) / slope_step;
  }
  ArrowNormal normal{
      transposed_product(by_shared, by_shared) + transposed_product(priors, priors),
      {},
      {},
      transposed_product(by_shared, now.blocks) + transposed_product(priors, now.shared),
      MatrixXd(own, blocks)};
  for (Index k = 0; k < blocks; ++k) {
    const Index first = problem.first[static_cast<std::size_t>(k)],
                count = problem.first[static_cast<std::size_t>(k) + 1] - first;
    const auto mine = by_own.middleRows(first, count);
    normal.own.push_back(transposed_product(mine, mine));
    normal.mixed.push_back(transposed_product(mine, by_shared.middleRows(first, count)));
    normal.own_gradient.col(k) = transposed_product(mine, now.blocks.segment(first, count));
  }
  return normal;
}

ArrowPoint fit_arrow(const ArrowProblem& problem, ArrowPoint start, int iterations) {
  constexpr double least_gain = 1e-5;
  constexpr int max_tries = 8;
  ArrowPoint point = std::move(start);
  ArrowResiduals now = problem.residuals(point, {});
  double damping = first_damping;
  for (int i = 0; i < iterations; ++i) {
    const ArrowNormal normal = arrow_normal(problem, point, now);
    double gain = 0.0;
    for (int attempt = 0; attempt < max_tries && gain == 0.0; ++attempt) {
      const ArrowPoint move = step(normal, damping);
      ArrowPoint next{point.shared + move.shared, point.blocks + move.blocks};
      ArrowResiduals then = problem.residuals(next, {});
      const double cost = now.cost(), next_cost = then.cost();
      if (std::isfinite(next_cost) && next_cost < cost) {
        gain = (cost - next_cost) / cost;
        point = std::move(next);
        now = std::move(then);
        damping = std::max(damping / 4.0, least_damping);
      } else {
        damping *= 4.0;
      }
    }
    if (gain < least_gain) break;
  }
  return point;
}

VectorXd block_costs(const ArrowProblem& problem, const ArrowResiduals& residuals) {
  VectorXd costs(static_cast<Index>(problem.first.size()) - 1);
  for (Index k = 0; k < costs.size(); ++k) {
    const Index first = problem.first[static_cast<std::size_t>(k)],
                last = problem.first[static_cast<std::size_t>(k) + 1];
    costs[k] = residuals.blocks.segment(first, last - first).squaredNorm();
  }
  return costs;
}

ArrowPoint fit_blocks(const ArrowProblem& problem, ArrowPoint start, int iterations) {
  constexpr double enough_gain = 1e-6, most_damping = 1e6;
  ArrowPoint point = std::move(start);
  const Index blocks = point.blocks.cols();
  BlockMask open(static_cast<std::size_t>(blocks), true);
  ArrowResiduals now = problem.residuals(point, open);
  VectorXd damping = VectorXd::Constant(blocks, first_damping);
  VectorXd costs = block_costs(problem, now);
  for (int i = 0; i < iterations && std::ranges::find(open, true) != open.end(); ++i) {
    const ArrowNormal normal = arrow_normal(problem, point, now, false, open);
    ArrowPoint next = point;
    for (Index k = 0; k < blocks; ++k) {
      const auto block = static_cast<std::size_t>(k);
      if (!open[block]) continue;
      const MatrixXd own = damped(normal.own[block], damping[k]);
      next.blocks.col(k) -= clamped(solve_symmetric(own, normal.own_gradient.col(k)));
    }
    const ArrowResiduals then = problem.residuals(next, open);
    const VectorXd tried = block_costs(problem, then);
    for (Index k = 0; k < blocks; ++k) {
      const auto block = static_cast<std::size_t>(k);
      if (!open[block]) continue;
      const bool better = tried[k] < costs[k];
      damping[k] = better ? std::max(damping[k] / 4.0, least_damping) : damping[k] * 4.0;
      open[block] =
          better ? tried[k] <= costs[k] * (1.0 - enough_gain) : damping[k] <= most_damping;
      if (!better) continue;
      costs[k] = tried[k];
      point.blocks.col(k) = next.blocks.col(k);
      const Index first = problem.first[block], count = problem.first[block + 1] - first;
      now.blocks.segment(first, count) = then.blocks.segment(first, count);
    }
  }
  return point;
}

ArrowPosterior::ArrowPosterior(const ArrowNormal& normal, double variance) {
  MatrixXd reduced = normal.shared;
  for (std::size_t k = 0; k < normal.own.size(); ++k) {
    const Index own = normal.own[k].rows();
    const MatrixXd regular = normal.own[k] + 1e-9 * MatrixXd::Identity(own, own);
    const MatrixXd spread = inverse(regular);
    response_.emplace_back(-product(spread, normal.mixed[k]));
    own_covariance_.emplace_back(variance * spread);
    own_root_.push_back(cholesky_factor(own_covariance_.back()));
    reduced += transposed_product(normal.mixed[k], response_.back());
  }
  const Index shared = reduced.rows();
  reduced += 1e-9 * MatrixXd::Identity(shared, shared);
  shared_covariance_ = variance * solve_symmetric(reduced, MatrixXd::Identity(shared, shared));
  shared_root_ = symmetric_root(shared_covariance_);
}

VectorXd ArrowPosterior::shared_sigma() const {
  return shared_covariance_.diagonal().cwiseMax(0.0).cwiseSqrt();
}

ArrowPoint ArrowPosterior::draw(const std::function<double()>& standard_normal) const {
  const auto numbers = [&](Index count) {
    VectorXd out(count);
    for (Index i = 0; i < count; ++i) out[i] = standard_normal();
    return out;
  };
  const auto blocks = static_cast<Index>(own_root_.size());
  ArrowPoint out{product(shared_root_, numbers(shared_root_.cols())), {}};
  out.blocks.resize(blocks == 0 ? 0 : own_root_.front().rows(), blocks);
  for (Index k = 0; k < blocks; ++k) {
    const auto i = static_cast<std::size_t>(k);
    out.blocks.col(k) =
        product(response_[i], out.shared) + product(own_root_[i], numbers(own_root_[i].rows()));
  }
  return out;
}

MatrixXd ArrowPosterior::block_covariance(Index block) const {
  const auto i = static_cast<std::size_t>(block);
  return own_covariance_[i] +
         product(product(response_[i], shared_covariance_), response_[i].transpose());
}

}  // namespace rubato
