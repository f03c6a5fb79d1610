// Other points to start from: kernels moved while the shared parameters stay, and fits made before.

#include <algorithm>
#include <array>
#include <cmath>

#include "models/calibration/paper_parameters.hpp"
#include "models/calibration/paper_problem.hpp"
#include "models/linear/linear_algebra.hpp"

namespace rubato {

using enum CalibrationProblem::KernelParameter;

Eigen::MatrixXd CalibrationProblem::kernel_costs(const Eigen::VectorXd& point,
                                                 const KernelList& kernels) const {
  return paper_residuals(point, evaluate(point, kernels), kernels);
}

// Computes anew the slopes of some kernels by their own parameters.
// @param now  residuals of all kernels at `at`
void CalibrationProblem::update_slopes(const Eigen::VectorXd& at, const Matrix& now,
                                       const KernelList& kernels,
                                       std::vector<Matrix>& slopes) const {
  for (Eigen::Index j = 0; j < per_kernel; ++j) {
    Eigen::VectorXd moved = at;
    for (const Eigen::Index k : kernels) moved[kernel_offset(k) + j] += difference;
    const Matrix costs = kernel_costs(moved, kernels);
    for (Eigen::Index i = 0; i < costs.cols(); ++i) {
      const Eigen::Index k = kernels[static_cast<std::size_t>(i)];
      slopes[static_cast<std::size_t>(k)].col(j) = (costs.col(i) - now.col(k)) / difference;
    }
  }
}

// Levenberg-Marquardt for every kernel on its own, shared parameters fixed. A kernel whose step was
// refused has not moved, so its slopes stay.
Eigen::VectorXd CalibrationProblem::fit_kernels(Eigen::VectorXd at) const {
  constexpr int iterations = 25;
  constexpr double max_step = 0.4;
  Eigen::VectorXd damping = Eigen::VectorXd::Constant(paper_kernels(), 1e-2);
  Matrix now = kernel_costs(at, all_kernels_);
  std::vector<Matrix> slopes(all_kernels_.size(), Matrix(now.rows(), per_kernel));
  KernelList moved = all_kernels_;
  for (int i = 0; i < iterations; ++i) {
    update_slopes(at, now, moved, slopes);
    Eigen::VectorXd next = at;
    for (const Eigen::Index k : all_kernels_) {
      const Matrix& jacobian = slopes[static_cast<std::size_t>(k)];
      Matrix normal = transposed_product(jacobian, jacobian);
      normal.diagonal() += (damping[k] * normal.diagonal().array() + 1e-6).matrix();
      next.segment(kernel_offset(k), per_kernel) +=
          solve_symmetric(normal, -transposed_product(jacobian, now.col(k)))
              .cwiseMax(-max_step)
              .cwiseMin(max_step);
    }
    const Matrix tried = kernel_costs(next, all_kernels_);
    moved.clear();
    for (const Eigen::Index k : all_kernels_) {
      const bool better = tried.col(k).squaredNorm() < now.col(k).squaredNorm();
      damping[k] *= better ? 1.0 / 3.0 : 5.0;
      if (!better) continue;
      at.segment(kernel_offset(k), per_kernel) = next.segment(kernel_offset(k), per_kernel);
      now.col(k) = tried.col(k);
      moved.push_back(k);
    }
  }
  return at;
}

Eigen::VectorXd CalibrationProblem::restart_kernels(const Eigen::VectorXd& point) const {
  // Shifts of the logarithms of (cycles, core energy, overlap): between core and DRAM bound, and
  // between limited by power and by the boost ceiling.
  static constexpr std::array<std::array<double, 3>, 9> shifts{{{0, 0, 0},
                                                                {0, -0.3, 0},
                                                                {0, 0.3, 0},
                                                                {0.15, -0.2, 0},
                                                                {-0.3, -0.2, 0},
                                                                {0, -0.2, 0.4},
                                                                {0, -0.2, -0.4},
                                                                {-0.3, 0.2, 0.3},
                                                                {0, -0.6, 0}}};
  constexpr double worth_it = 1e-6;
  Eigen::VectorXd best = point;
  Eigen::VectorXd best_cost = kernel_costs(point, all_kernels_).colwise().squaredNorm().transpose();
  for (const auto& shift : shifts) {
    Eigen::VectorXd start = point;
    for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
      auto p = start.segment(kernel_offset(k), per_kernel);
      p[cycles] += shift[0];
      p[core_energy] += shift[1];
      p[overlap] += shift[2];
      p[limit_offset] = 0.0;
    }
    const Eigen::VectorXd found = fit_kernels(std::move(start));
    const Eigen::VectorXd cost =
        kernel_costs(found, all_kernels_).colwise().squaredNorm().transpose();
    for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
      if (cost[k] >= best_cost[k] - worth_it) continue;
      best_cost[k] = cost[k];
      best.segment(kernel_offset(k), per_kernel) = found.segment(kernel_offset(k), per_kernel);
    }
  }
  return best;
}

std::optional<Eigen::VectorXd> CalibrationProblem::point_of(const GpuSpec& spec) const {
  constexpr int iterations = 15;
  constexpr double max_step = 0.5;
  const SharedLayout layout(frame_);
  const auto shared = layout.parameters_of(spec);
  if (!shared || !std::ranges::equal(spec.kernels, names_, {}, &CalibratedKernel::name))
    return std::nullopt;
  Eigen::VectorXd point = start_;
  point.head(shared_count_) = *shared;
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    const KernelCoefficients& c = spec.kernels[static_cast<std::size_t>(k)].coefficients;
    point.segment(kernel_offset(k), per_kernel) << std::log(c.core_cycles * 1e-6),
        std::log(c.dram_bytes * 1e-9), std::log(c.fixed_s), std::log(c.core_j),
        std::log(c.limit_scale), std::log(c.overlap_scale);
  }
  if (!point.allFinite()) return std::nullopt;
  return levenberg_marquardt(least_squares(PaperFitted::not_in_specs), std::move(point), iterations,
                             max_step);
}

}  // namespace rubato
