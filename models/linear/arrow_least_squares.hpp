#pragma once
// Damped least squares for problems in which a few parameters are shared by
// all residuals and every block of residuals has a few more of its own. The
// normal equations are an arrow; eliminating the blocks first makes a step
// linear in their number.

#include <functional>
#include <vector>

#include <Eigen/Core>

namespace rubato {

/// A point: shared parameters, and one column of own parameters per block.
struct ArrowPoint {
  Eigen::VectorXd shared;  ///< shape [shared]
  Eigen::MatrixXd blocks;  ///< shape [own x blocks]
};

/// Residuals of the blocks at a point, block after block, and of the shared
/// parameters alone (priors).
struct ArrowResiduals {
  Eigen::VectorXd blocks;
  Eigen::VectorXd shared;
  [[nodiscard]] double cost() const { return blocks.squaredNorm() + shared.squaredNorm(); }
};

/// Which blocks are of interest; empty means all.
using BlockMask = std::vector<bool>;

/// Sum of squares to be minimised. Residuals of blocks that are not of interest may be anything
/// finite.
struct ArrowProblem {
  std::function<ArrowResiduals(const ArrowPoint&, const BlockMask&)> residuals;
  std::vector<Eigen::Index> first;  ///< shape [blocks + 1]: where the residuals of each block begin
};

/// Normal equations at a point.
struct ArrowNormal {
  Eigen::MatrixXd shared;              ///< shape [shared x shared]
  std::vector<Eigen::MatrixXd> own;    ///< per block [own x own]
  std::vector<Eigen::MatrixXd> mixed;  ///< per block [own x shared], or the first of the shared
  Eigen::VectorXd shared_gradient;
  Eigen::MatrixXd own_gradient;  ///< shape [own x blocks]
};

/// Solves normal equations for the step that takes the gradient to zero.
class ArrowSolution {
 public:
  explicit ArrowSolution(const ArrowNormal& normal);

  /// The step of the shared parameters.
  [[nodiscard]] Eigen::VectorXd shared() const;

  /// The steps of the blocks where the shared parameters take this one, shape [own x blocks].
  [[nodiscard]] Eigen::MatrixXd blocks(const Eigen::VectorXd& shared) const;

 private:
  Eigen::MatrixXd reduced_;  ///< of the shared parameters once the blocks are eliminated
  Eigen::VectorXd right_;
  std::vector<Eigen::MatrixXd> inverse_mixed_;
  Eigen::MatrixXd inverse_gradient_;
};

/// Derivatives by forward differences: all blocks move at once.
[[nodiscard]] ArrowNormal arrow_normal(const ArrowProblem& problem, const ArrowPoint& at,
                                       const ArrowResiduals& now, bool with_shared = true,
                                       const BlockMask& mask = {});

/// All parameters. @return the best point found, deterministic
[[nodiscard]] ArrowPoint fit_arrow(const ArrowProblem& problem, ArrowPoint start, int iterations);

/// The blocks alone, each with its own damping; the shared parameters stay.
[[nodiscard]] ArrowPoint fit_blocks(const ArrowProblem& problem, ArrowPoint start, int iterations);

/// Squared residuals of each block.
[[nodiscard]] Eigen::VectorXd block_costs(const ArrowProblem& problem,
                                          const ArrowResiduals& residuals);

/// The Gaussian around a minimum: covariance of the shared parameters, and of
/// each block given the shared ones.
class ArrowPosterior {
 public:
  /// @param variance  of a residual, usually their mean square
  ArrowPosterior(const ArrowNormal& normal, double variance);

  /// Standard deviation of each shared parameter.
  [[nodiscard]] Eigen::VectorXd shared_sigma() const;

  /// A draw, as a difference from the minimum. @param normal_draws  standard
  /// normal numbers, as many as parameters
  [[nodiscard]] ArrowPoint draw(const std::function<double()>& standard_normal) const;

  /// Covariance of a block's own parameters, shared ones included.
  [[nodiscard]] Eigen::MatrixXd block_covariance(Eigen::Index block) const;

 private:
  Eigen::MatrixXd shared_covariance_;
  Eigen::MatrixXd shared_root_;
  std::vector<Eigen::MatrixXd> own_covariance_;
  std::vector<Eigen::MatrixXd> own_root_;
  std::vector<Eigen::MatrixXd> response_;  ///< of the block to the shared, [own x shared]
};

}  // namespace rubato
