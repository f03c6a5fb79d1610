#pragma once
// Nonlinear least squares (Levenberg and Marquardt) for problems in which a few parameters are
// shared by all residuals, and every block of residuals has a few more of its own. Example: the
// parameters of a GPU, and those of each kernel. The matrix of the normal equations is an arrow: a
// border for the shared parameters, and small blocks on the diagonal. Eliminating the blocks first
// (Schur complement) makes the work of a step linear in their number.

#include <functional>
#include <vector>

#include <Eigen/Core>

namespace rubato {

/// A point: shared parameters, and one column of own parameters per block.
struct ArrowPoint {
  Eigen::VectorXd shared;  ///< shape [shared]
  Eigen::MatrixXd blocks;  ///< shape [own x blocks]
};

/// Residuals at a point.
struct ArrowResiduals {
  Eigen::VectorXd blocks;  ///< block after block
  Eigen::VectorXd shared;  ///< of the shared parameters alone (priors)
  [[nodiscard]] double cost() const { return blocks.squaredNorm() + shared.squaredNorm(); }
};

/// Which blocks are asked for, shape [blocks]; empty means all.
using BlockMask = std::vector<bool>;

/// Sum of squares to be minimised. Residuals of blocks that are not asked for may be anything
/// finite.
struct ArrowProblem {
  std::function<ArrowResiduals(const ArrowPoint&, const BlockMask&)> residuals;
  std::vector<Eigen::Index> first;  ///< shape [blocks + 1]: where the residuals of each block begin
};

/// Normal equations at a point: J^T J and J^T r, J being the Jacobian of the residuals r.
struct ArrowNormal {
  Eigen::MatrixXd shared;              ///< shape [shared x shared]
  std::vector<Eigen::MatrixXd> own;    ///< per block [own x own]
  std::vector<Eigen::MatrixXd> mixed;  ///< per block [own x shared]; with fewer columns, the first
  Eigen::VectorXd shared_gradient;
  Eigen::MatrixXd own_gradient;  ///< shape [own x blocks]
};

/// Solves normal equations for the step that takes the gradient to zero (Gauss-Newton step).
class ArrowSolution {
 public:
  explicit ArrowSolution(const ArrowNormal& normal);

  /// The step of the shared parameters.
  [[nodiscard]] Eigen::VectorXd shared() const;

  /// The steps of the blocks, shape [own x blocks], if `shared` is that of the shared parameters.
  [[nodiscard]] Eigen::MatrixXd blocks(const Eigen::VectorXd& shared) const;

 private:
  Eigen::MatrixXd reduced_;  ///< Schur complement: what is left once the blocks are eliminated
  Eigen::VectorXd right_;
  std::vector<Eigen::MatrixXd> inverse_mixed_;
  Eigen::MatrixXd inverse_gradient_;
};

/// Derivatives by forward differences. An own parameter is moved in all blocks at once, so `own`
/// evaluations serve all blocks.
/// @param now          residuals at `at`
/// @param with_shared  false: the parts of the shared parameters stay empty
[[nodiscard]] ArrowNormal arrow_normal(const ArrowProblem& problem, const ArrowPoint& at,
                                       const ArrowResiduals& now, bool with_shared = true,
                                       const BlockMask& mask = {});

/// Fits all parameters. @return the best point found, deterministic
[[nodiscard]] ArrowPoint fit_arrow(const ArrowProblem& problem, ArrowPoint start, int iterations);

/// Fits the blocks alone, each with its own damping; the shared parameters stay.
[[nodiscard]] ArrowPoint fit_blocks(const ArrowProblem& problem, ArrowPoint start, int iterations);

/// Sum of squared residuals of each block, shape [blocks].
[[nodiscard]] Eigen::VectorXd block_costs(const ArrowProblem& problem,
                                          const ArrowResiduals& residuals);

/// The Gaussian around a minimum (Laplace approximation of the posterior): covariance of the shared
/// parameters, and of each block given the shared ones.
class ArrowPosterior {
 public:
  /// @param variance  of one residual, usually the mean square of all at the minimum
  ArrowPosterior(const ArrowNormal& normal, double variance);

  /// Standard deviation of each shared parameter.
  [[nodiscard]] Eigen::VectorXd shared_sigma() const;

  /// A draw, as a difference from the minimum. @param standard_normal  gives a standard normal
  /// number with every call; called once for each parameter
  [[nodiscard]] ArrowPoint draw(const std::function<double()>& standard_normal) const;

  /// Covariance of a block's own parameters, what the shared ones leave uncertain included.
  [[nodiscard]] Eigen::MatrixXd block_covariance(Eigen::Index block) const;

 private:
  Eigen::MatrixXd shared_covariance_;
  Eigen::MatrixXd shared_root_;
  std::vector<Eigen::MatrixXd> own_covariance_;
  std::vector<Eigen::MatrixXd> own_root_;
  std::vector<Eigen::MatrixXd> response_;  ///< slope of the block by the shared, [own x shared]
};

}  // namespace rubato
