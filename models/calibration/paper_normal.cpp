#include "models/calibration/paper_normal.hpp"

#include "models/linear/levenberg_marquardt.hpp"
#include "models/linear/linear_algebra.hpp"

namespace rubato {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd PaperSlopes::dense() const {
  const Index first = shared.cols(), own = paper.cols(), of_sweep = paper.rows() + sums.rows();
  MatrixXd out = MatrixXd::Zero(shared.rows(), first + own * (paper_kernels() + sweep_kernels));
  out.leftCols(first) = shared;
  out.block(paper.rows(), first, sums.rows(), sums.cols()) = sums;
  const auto put = [&](const MatrixXd& slopes, Index kernels, Index row, Index column) {
    const Index rows = kernels == 0 ? 0 : slopes.rows() / kernels;
    for (Index k = 0; k < kernels; ++k)
      out.block(row + k * rows, column + k * own, rows, own) = slopes.middleRows(k * rows, rows);
  };
  put(paper, paper_kernels(), 0, first);
  put(sweep, sweep_kernels, of_sweep, first + own * paper_kernels());
  return out;
}

PaperNormal::PaperNormal(const PaperSlopes& slopes, const VectorXd& residuals)
    : shared_(slopes.shared.cols()), own_(slopes.paper.cols()) {
  Index joined = 0, blocks = 0;
  for (const bool in_sums : slopes.in_sums) place_.push_back(in_sums ? joined++ : ~blocks++);
  for (Index k = 0; k < slopes.sweep_kernels; ++k) place_.push_back(~blocks++);
  normal_.own.resize(static_cast<std::size_t>(blocks));
  normal_.mixed.resize(static_cast<std::size_t>(blocks));
  normal_.own_gradient.resize(own_, blocks);
  own_diagonal_.resize(own_, blocks);
  normal_.shared = MatrixXd::Zero(joined_at(joined), joined_at(joined));
  normal_.shared_gradient = VectorXd::Zero(joined_at(joined));
  const auto add_kernels = [&](const MatrixXd& own, Index kernels, Index first, Index place) {
    const Index rows = kernels == 0 ? 0 : own.rows() / kernels;
    MatrixXd both(rows, shared_ + own_);
    for (Index k = 0; k < kernels; ++k) {
      const Index row = first + k * rows;
      both << slopes.shared.middleRows(row, rows), own.middleRows(k * rows, rows);
      add_kernel(both, residuals.segment(row, rows), place_[static_cast<std::size_t>(place + k)]);
    }
  };
  add_kernels(slopes.paper, slopes.paper_kernels(), 0, 0);
  add_kernels(slopes.sweep, slopes.sweep_kernels, slopes.paper.rows() + slopes.sums.rows(),
              slopes.paper_kernels());
  const MatrixXd priors = slopes.shared.bottomRows(shared_);
  normal_.shared.topLeftCorner(shared_, shared_) += sparse_normal(priors);
  normal_.shared_gradient.head(shared_) += transposed_product(priors, residuals.tail(shared_));
  add_sums(slopes, residuals);
}

// Adds residuals that depend on the shared parameters and on those of one kernel.
void PaperNormal::add_kernel(const MatrixXd& slopes, const VectorXd& residuals, Index place) {
  const MatrixXd normal = sparse_normal(slopes);
  const VectorXd gradient = transposed_product(slopes, residuals);
  normal_.shared.topLeftCorner(shared_, shared_) += normal.topLeftCorner(shared_, shared_);
  normal_.shared_gradient.head(shared_) += gradient.head(shared_);
  const auto own = normal.bottomRightCorner(own_, own_),
             mixed = normal.bottomLeftCorner(own_, shared_);
  if (place >= 0) {
    const Index at = joined_at(place);
    normal_.shared.block(at, at, own_, own_) += own;
    normal_.shared.block(at, 0, own_, shared_) += mixed;
    normal_.shared.block(0, at, shared_, own_) += mixed.transpose();
    normal_.shared_gradient.segment(at, own_) += gradient.tail(own_);
  } else {
    const auto block = static_cast<std::size_t>(~place);
    normal_.own[block] = own;
    normal_.mixed[block] = MatrixXd::Zero(own_, shared_ + 1);
    normal_.mixed[block].leftCols(shared_) = mixed;
    normal_.own_gradient.col(~place) = gradient.tail(own_);
    own_diagonal_.col(~place) = own.diagonal();
  }
}

void PaperNormal::add_sums(const PaperSlopes& slopes, const VectorXd& residuals) {
  const Index first = slopes.paper.rows(), sums = slopes.sums.rows() - 1;
  MatrixXd all = MatrixXd::Zero(sums + 1, normal_.shared.cols());
  all.leftCols(shared_) = slopes.shared.middleRows(first, sums + 1);
  const double last_residual = residuals[first + sums];
  for (Index k = 0; k < slopes.paper_kernels(); ++k) {
    const auto by_kernel = slopes.sums.middleCols(k * own_, own_);
    const Index place = place_[static_cast<std::size_t>(k)];
    if (place >= 0) {
      all.middleCols(joined_at(place), own_) = by_kernel;
    } else {
      const VectorXd last = by_kernel.row(sums).transpose();
      normal_.mixed[static_cast<std::size_t>(~place)].col(shared_) = last;
      normal_.own_gradient.col(~place) += last_residual * last;
      own_diagonal_.col(~place) += last.cwiseAbs2();
    }
  }
  const VectorXd last = all.row(sums).transpose();
  normal_.shared += sparse_normal(all.topRows(sums));
  normal_.shared_gradient += transposed_product(all, residuals.segment(first, sums + 1));
  shared_diagonal_ = normal_.shared.diagonal() + last.cwiseAbs2();
  normal_.shared.row(shared_) = last.transpose();
  normal_.shared.col(shared_) = last;
  normal_.shared(shared_, shared_) = -1.0;
}

VectorXd PaperNormal::step(double damping) const {
  ArrowNormal damped = normal_;
  VectorXd added = added_to_diagonal(shared_diagonal_, damping);
  added[shared_] = 0.0;
  damped.shared.diagonal() += added;
  for (Index k = 0; k < own_diagonal_.cols(); ++k) {
    damped.own[static_cast<std::size_t>(k)].diagonal() +=
        added_to_diagonal(own_diagonal_.col(k), damping);
  }
  const ArrowSolution solution(damped);
  const VectorXd shared = solution.shared();
  const MatrixXd blocks = solution.blocks(shared);
  VectorXd step(shared_ + own_ * std::ssize(place_));
  step.head(shared_) = shared.head(shared_);
  for (Index k = 0; k < std::ssize(place_); ++k) {
    const Index place = place_[static_cast<std::size_t>(k)];
    auto own = step.segment(shared_ + own_ * k, own_);
    if (place >= 0) {
      own = shared.segment(joined_at(place), own_);
    } else {
      own = blocks.col(~place);
    }
  }
  return step;
}

}  // namespace rubato
