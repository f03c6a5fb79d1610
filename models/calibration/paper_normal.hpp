#pragma once
// The normal equations of a calibration. Most residuals depend on the shared parameters and those
// of one kernel. A few, the sums over kernels, depend on more.

#include <vector>

#include <Eigen/Core>

#include "models/linear/arrow_least_squares.hpp"

namespace rubato {

/// Slopes of the residuals of a calibration: their Jacobian, zeros left out. Residuals come in this
/// order: of each of the paper's kernels; sums over these kernels, all but the last over some of
/// them, the last over all; of each of the sweep's kernels; priors of the shared parameters.
struct PaperSlopes {
  std::vector<bool> in_sums;       ///< of each of the paper's kernels: whether it is in all sums
  Eigen::Index sweep_kernels = 0;  ///< how many kernels the sweep has
  Eigen::MatrixXd shared;          ///< by the shared parameters, shape [residuals x shared]
  Eigen::MatrixXd paper;           ///< by each kernel's own, shape [paper's residuals x own]
  Eigen::MatrixXd sums;            ///< shape [sums x own of all of the paper's kernels]
  Eigen::MatrixXd sweep;           ///< by each kernel's own, shape [sweep's residuals x own]

  [[nodiscard]] Eigen::Index paper_kernels() const { return std::ssize(in_sums); }

  /// The Jacobian with its zeros, by the shared parameters, then by those of each kernel. Shape
  /// [residuals x parameters].
  [[nodiscard]] Eigen::MatrixXd dense() const;
};

/// Normal equations that are solved block by block. Kernels that only the last sum joins to others
/// are eliminated first (Schur complement). What is left has a third of the parameters.
class PaperNormal {
 public:
  PaperNormal(const PaperSlopes& slopes, const Eigen::VectorXd& residuals);

  /// The damped step of all parameters, see DampedProblem.
  [[nodiscard]] Eigen::VectorXd step(double damping) const;

 private:
  void add_kernel(const Eigen::MatrixXd& slopes, const Eigen::VectorXd& residuals,
                  Eigen::Index place);
  void add_sums(const PaperSlopes& slopes, const Eigen::VectorXd& residuals);
  [[nodiscard]] Eigen::Index joined_at(Eigen::Index place) const {
    return shared_ + 1 + own_ * place;
  }

  Eigen::Index shared_, own_;
  std::vector<Eigen::Index> place_;  ///< of a kernel among those in all sums or, ~place, the blocks
  /// Its shared part: the shared parameters, the last sum, parameters of kernels in all sums. The
  /// change of the last sum is an unknown of its own: else that sum would join all blocks.
  ArrowNormal normal_;
  Eigen::VectorXd shared_diagonal_;  ///< what damping is scaled by
  Eigen::MatrixXd own_diagonal_;     ///< of the blocks, shape [own x blocks]
};

}  // namespace rubato
