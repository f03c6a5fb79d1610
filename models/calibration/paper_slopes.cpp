// Slopes of the residuals (their Jacobian) by forward differences, and the least-squares problem
// that a descent takes.

#include <span>

#include "models/calibration/paper_parameters.hpp"
#include "models/calibration/paper_problem.hpp"
#include "models/table/fill.hpp"

namespace rubato {

struct CalibrationProblem::State {
  Eigen::VectorXd point;
  PaperTable table, sweep_table;
  Shares shares;
  Matrix paper, sweep;
  Eigen::VectorXd sums, priors;
};

namespace {

// `base` with some columns, those at `clocks`, filled again.
PaperTable refilled(const BoundKernels& kernels, const ClockSettings& clocks,
                    std::span<const Eigen::Index> columns, const PaperTable& base) {
  const auto count = std::ssize(columns);
  PaperTable part(base.time_s.rows(), count);
  (void)fill_cells(kernels, clocks, part.time_s.data(), part.energy_j.data());
  if (count == base.time_s.cols()) return part;
  PaperTable table = base;
  for (Eigen::Index i = 0; i < count; ++i) {
    const Eigen::Index column = columns[static_cast<std::size_t>(i)];
    table.time_s.col(column) = part.time_s.col(i);
    table.energy_j.col(column) = part.energy_j.col(i);
  }
  return table;
}

}  // namespace

CalibrationProblem::State CalibrationProblem::state_at(const Eigen::VectorXd& point) const {
  const PaperTable table = evaluate(point), sweep_table = evaluate_sweep(point);
  const Shares shares = shares_of(table);
  return {.point = point,
          .table = table,
          .sweep_table = sweep_table,
          .shares = shares,
          .paper = paper_residuals(point, table, all_kernels_),
          .sweep = sweep_residuals(point, sweep_table),
          .sums = sum_residuals(shares),
          .priors = shared_priors(point)};
}

std::vector<CalibrationProblem::SharedReach> CalibrationProblem::shared_reach() const {
  const SharedLayout layout(frame_);
  std::vector<SharedReach> all(static_cast<std::size_t>(shared_count_));
  for (Eigen::Index g = 0; g < shared_count_; ++g) {
    const auto reach_in = [&](std::span<const ClockPair> clocks, bool of_sweep) {
      Reach reach;
      for (std::size_t i = 0; i < clocks.size(); ++i) {
        if (!layout.moves_cells(frame_, g, clocks[i], of_sweep)) continue;
        reach.clocks.push_back(clocks[i]);
        reach.columns.push_back(static_cast<Eigen::Index>(i));
      }
      return reach;
    };
    all[static_cast<std::size_t>(g)] = {reach_in(grid_.pairs(), false),
                                        reach_in(sweep_clocks_, true)};
  }
  return all;
}

void CalibrationProblem::add_shared_slope(const State& base, Eigen::Index parameter,
                                          PaperSlopes& slopes) const {
  const auto& [paper_reach, sweep_reach] = reach_[static_cast<std::size_t>(parameter)];
  Eigen::VectorXd moved = base.point;
  moved[parameter] += difference;
  const GpuSpec spec = gpu_at(moved);
  auto column = slopes.shared.col(parameter);
  const Eigen::Index paper = base.paper.size(), sums = base.sums.size();
  const auto paper_slope = [&](const PaperTable& table) -> Matrix {
    return (paper_residuals(moved, table, all_kernels_) - base.paper) / difference;
  };
  if (paper_reach.clocks.empty()) {
    column.head(paper) = paper_slope(base.table).reshaped();
  } else {
    const auto kernels = kernels_at(moved, all_kernels_);
    const PaperTable table = refilled({spec, kernels, spec.power_limit.limit_w},
                                      {paper_reach.clocks}, paper_reach.columns, base.table);
    column.head(paper) = paper_slope(table).reshaped();
    column.segment(paper, sums) = (sum_residuals(shares_of(table)) - base.sums) / difference;
  }
  if (!sweep_reach.clocks.empty()) {
    const GpuSpec card = SharedLayout(gpu_).sweep_card(spec, moved.head(shared_count_));
    const auto kernels = kernels_at(moved, sweep_kernels_);
    const PaperTable table =
        refilled({card, kernels, card.power_limit.limit_w}, {sweep_reach.clocks, true},
                 sweep_reach.columns, base.sweep_table);
    column.segment(paper + sums, base.sweep.size()) =
        ((sweep_residuals(moved, table) - base.sweep) / difference).reshaped();
  }
  column.tail(shared_count_) = (shared_priors(moved) - base.priors) / difference;
}

// Slopes by one parameter of each kernel.
void CalibrationProblem::add_kernel_slopes(const State& base, Eigen::Index parameter,
                                           PaperFitted fitted, PaperSlopes& slopes) const {
  Eigen::VectorXd moved = base.point;
  for (Eigen::Index k = 0; k < paper_kernels() + sweep_kernels(); ++k)
    moved[kernel_offset(k) + parameter] += difference;
  slopes.sweep.col(parameter) =
      ((sweep_residuals(moved, evaluate_sweep(moved)) - base.sweep) / difference).reshaped();
  if (fitted != PaperFitted::all) return;
  const PaperTable table = evaluate(moved);
  slopes.paper.col(parameter) =
      ((paper_residuals(moved, table, all_kernels_) - base.paper) / difference).reshaped();
  Shares shares = base.shares, other = shares_of(table);
  const Eigen::Index last = base.sums.size() - 1;
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    auto column = slopes.sums.col(k * per_kernel + parameter);
    swap_kernel(shares, other, k);
    if (paper_.in_forward_pass[static_cast<std::size_t>(k)]) {
      column = (sum_residuals(shares) - base.sums) / difference;
    } else {  // the pass does not launch it: its residuals stay, to the last bit
      column[last] = (least_energy_residual(shares) - base.sums[last]) / difference;
    }
    swap_kernel(shares, other, k);
  }
}

PaperSlopes CalibrationProblem::slopes(const Eigen::VectorXd& point, PaperFitted fitted) const {
  const State base = state_at(point);
  const Eigen::Index residuals =
      base.paper.size() + base.sums.size() + base.sweep.size() + base.priors.size();
  PaperSlopes slopes{.in_sums = paper_.in_forward_pass,
                     .sweep_kernels = sweep_kernels(),
                     .shared = Matrix::Zero(residuals, shared_count_),
                     .paper = Matrix::Zero(base.paper.size(), per_kernel),
                     .sums = Matrix::Zero(base.sums.size(), per_kernel * paper_kernels()),
                     .sweep = Matrix::Zero(base.sweep.size(), per_kernel)};
  const std::vector<bool> in_specs = SharedLayout(frame_).in_specs();
  for (Eigen::Index g = 0; g < shared_count_; ++g) {
    if (fitted == PaperFitted::all || !in_specs[static_cast<std::size_t>(g)])
      add_shared_slope(base, g, slopes);
  }
  for (Eigen::Index j = 0; j < per_kernel; ++j) add_kernel_slopes(base, j, fitted, slopes);
  return slopes;
}

DampedProblem CalibrationProblem::least_squares(PaperFitted fitted) const {
  return {
      .residuals = [this](const Eigen::VectorXd& at) { return residuals(at); },
      .step = [this, fitted](const Eigen::VectorXd& at, const Eigen::VectorXd& now) -> DampedStep {
        return [normal = PaperNormal(slopes(at, fitted), now)](double damping) {
          return normal.step(damping);
        };
      }};
}

}  // namespace rubato
