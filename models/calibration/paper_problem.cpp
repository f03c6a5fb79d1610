#include "models/calibration/paper_problem.hpp"

#include <algorithm>
#include <cmath>

#include "common/algorithms/sort_by.hpp"
#include "models/calibration/paper_parameters.hpp"
#include "models/calibration/robust_loss.hpp"
#include "models/table/fill.hpp"

namespace rubato {

namespace {

// Expected size of each kind of residual; what a fit may leave without regret.
// Published times repeat to about 0.1 %, energies to about 1 %; the rest is what
// this form of model can be asked to follow.
constexpr double auto_time_sigma = 0.003;
constexpr double auto_energy_sigma = 0.01;
constexpr double least_time_sigma = 0.005;
constexpr double most_time_sigma = 0.08;
constexpr double least_energy_sigma = 0.02;
constexpr double most_energy_sigma = 0.10;
constexpr double table1_time_sigma_pct = 0.6;
constexpr double table1_energy_sigma_pct = 0.8;
constexpr double choice_sigma =
    0.004;  // regret of the published choice, share of the kernel's cost
constexpr double pass_time_sigma = 0.010;
constexpr double pass_energy_sigma = 0.013;
constexpr double pass_low_memory_weight =
    0.2;  // memory 405 MHz: pass and kernel runs disagree there
constexpr double least_energy_time_sigma = 0.003;  // printed as a whole percent of the default
constexpr double energy_tie = 0.01;                // noise that decides which energy is the least
constexpr double sweep_sigma = 0.03 / 0.6;
constexpr double limit_prior_sigma = 0.02;
constexpr double overlap_prior_sigma = 0.3;
constexpr double bytes_prior_sigma = 0.15;
constexpr double gemm_bytes_prior_sigma = 0.7;  // re-reads of a GEMM depend on its tiling
constexpr double fixed_prior_sigma = 0.5;
constexpr double free_prior_sigma = 3.0;
constexpr double usual_fixed_s = 2e-6;  // launch latency

using enum CalibrationProblem::KernelParameter;

double change_pct(double value, double reference) { return 100.0 * (value / reference - 1.0); }

// Time of a launch at the clocks of its least energy, shapes [clocks]. Noise decides between clocks
// that are nearly as good, so each counts by how near it comes.
double least_energy_time_s(const Eigen::ArrayXd& time_s, const Eigen::ArrayXd& energy_j) {
  const Eigen::ArrayXd weight = ((1.0 - energy_j / energy_j.minCoeff()) / energy_tie).exp();
  return (weight * time_s).sum() / weight.sum();
}

}  // namespace

// What the kernels add to the published sums.
struct CalibrationProblem::Shares {
  PaperTable launched;  // all launches of each kernel
  Eigen::ArrayXd least_energy_s;

  void swap_kernel(Shares& other, Eigen::Index k) {
    launched.time_s.row(k).swap(other.launched.time_s.row(k));
    launched.energy_j.row(k).swap(other.launched.energy_j.row(k));
    std::swap(least_energy_s[k], other.least_energy_s[k]);
  }
};

CalibrationProblem::CalibrationProblem(const GpuSpec& frame, const Trace& trace,
                                       const ClockGrid& grid, const PaperData& paper,
                                       const std::vector<SweepKernel>& sweep, bool use_table1)
    : frame_(frame),
      gpu_(frame),
      grid_(grid),
      paper_(paper),
      sweep_(sweep),
      use_table1_(use_table1),
      shared_count_(SharedLayout(frame).size()) {
  gpu_.kernels.clear();
  gpu_.classes.clear();
  gpu_.ensemble.clear();
  gpu_.sources.clear();
  gpu_.fit_errors.clear();
  for (const Kernel& kernel : trace.kernels) {
    published_bytes_.push_back(kernel.dram_bytes.value_or(1.0));
    is_gemm_.push_back(kernel.gemm.has_value());
    names_.push_back(kernel.name);
  }
  for (const SweepKernel& kernel : sweep_) {
    longest_sweep_ = std::max(longest_sweep_, static_cast<Eigen::Index>(kernel.points.size()));
    for (const SweepPoint& point : kernel.points) {
      if (std::ranges::find(sweep_clocks_, point.clock) == sweep_clocks_.end())
        sweep_clocks_.push_back(point.clock);
    }
  }
  sort_by(sweep_clocks_,
          [](ClockPair clock) { return index(clock.mem); });  // as tables are filled the fastest
  start_ = start();
}

Eigen::VectorXd CalibrationProblem::start() const {
  constexpr double usual_mhz = 1800.0, usual_gbs = 860.0, usual_volt_squared = 1.6;
  Eigen::VectorXd point(kernel_offset(paper_kernels() + sweep_kernels()));
  point.head(shared_count_) = SharedLayout(frame_).start();
  const auto set = [&](Eigen::Index kernel, double time_s, double core_share, double gigabytes,
                       double core_j) {
    auto p = point.segment(kernel_offset(kernel), per_kernel);
    p << std::log(time_s * core_share * usual_mhz), std::log(gigabytes), std::log(usual_fixed_s),
        std::log(core_j / usual_volt_squared), 0.0, 0.0;
  };
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    const auto i = static_cast<std::size_t>(k);
    const PaperKernel& kernel = paper_.kernels[i];
    const bool gemm = is_gemm_[i];
    set(k, kernel.auto_time_s, gemm ? 0.97 : 0.3,
        gemm ? published_bytes_[i] * 1e-9 : kernel.auto_time_s * usual_gbs,
        0.35 * kernel.auto_energy_j);
  }
  for (Eigen::Index k = 0; k < sweep_kernels(); ++k) {
    const auto& points = sweep_[static_cast<std::size_t>(k)].points;
    const double time_s = *std::ranges::min_element(points, {}, &SweepPoint::time_s)->time_s;
    set(paper_kernels() + k, time_s, 0.8, 0.5 * usual_gbs * time_s, 100.0 * time_s);
  }
  return point;
}

KernelCoefficients CalibrationProblem::kernel_at(const Eigen::VectorXd& point,
                                                 Eigen::Index kernel) const {
  const auto p = point.segment(kernel_offset(kernel), per_kernel);
  return {.core_cycles = std::exp(p[cycles]) * 1e6,
          .dram_bytes = std::exp(p[bytes]) * 1e9,
          .fixed_s = std::exp(p[fixed]),
          .core_j = std::exp(p[core_energy]),
          .limit_scale = std::exp(p[limit_offset]),
          .overlap_scale = std::exp(p[overlap])};
}

KernelCoefficients CalibrationProblem::coefficients_at(const Eigen::VectorXd& point,
                                                       std::size_t kernel) const {
  return kernel_at(point, static_cast<Eigen::Index>(kernel));
}

GpuSpec CalibrationProblem::spec_at(const Eigen::VectorXd& point) const {
  return SharedLayout(frame_).spec(frame_, point.head(shared_count_));
}

// What tables need of it: a spec's kernels and draws take longer to copy than a table to fill.
GpuSpec CalibrationProblem::gpu_at(const Eigen::VectorXd& point) const {
  return SharedLayout(gpu_).spec(gpu_, point.head(shared_count_));
}

PaperTable CalibrationProblem::evaluate(const Eigen::VectorXd& point) const {
  const GpuSpec spec = gpu_at(point);
  std::vector<KernelCoefficients> kernels;
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) kernels.push_back(kernel_at(point, k));
  PaperTable table(paper_kernels(), static_cast<Eigen::Index>(grid_.size()));
  // A point may be anything: where cells are not sound, neither are its residuals.
  (void)fill_cells({spec, kernels, spec.power_limit.limit_w}, {grid_.pairs()}, table.time_s.data(),
                   table.energy_j.data());
  return table;
}

// Shape [residuals x paper kernels].
Eigen::MatrixXd CalibrationProblem::paper_residuals(const Eigen::VectorXd& point,
                                                    const PaperTable& table) const {
  const auto reference = static_cast<Eigen::Index>(index(grid_.default_clock()));
  const double price_w = SharedLayout(frame_).time_price_w(point.head(shared_count_));
  Matrix out(use_table1_ ? 13 : 10, paper_kernels());
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    const PaperKernel& paper = paper_.kernels[static_cast<std::size_t>(k)];
    const auto time_s = table.time_s.row(k), energy_j = table.energy_j.row(k);
    Eigen::Index r = 0;
    const auto put = [&](double value) { out(r++, k) = robust(value); };
    put(std::log(time_s[reference] / paper.auto_time_s) / auto_time_sigma);
    put(std::log(energy_j[reference] / paper.auto_energy_j) / auto_energy_sigma);
    put(std::log(time_s.minCoeff() / paper.min_time_s) / least_time_sigma);
    put(std::log(time_s.maxCoeff() / paper.max_time_s) / most_time_sigma);
    put(std::log(energy_j.minCoeff() / paper.min_energy_j) / least_energy_sigma);
    put(std::log(energy_j.maxCoeff() / paper.max_energy_j) / most_energy_sigma);
    if (use_table1_) {
      const auto best = static_cast<Eigen::Index>(index(paper.best_clock));
      put((change_pct(time_s[best], time_s[reference]) - paper.best_time_change_pct) /
          table1_time_sigma_pct);
      put((change_pct(energy_j[best], energy_j[reference]) - paper.best_energy_change_pct) /
          table1_energy_sigma_pct);
      // The published clock is the optimum of energy + price x time.
      const auto cost = energy_j + price_w * time_s;
      put((cost[best] - cost.minCoeff()) /
          (choice_sigma * (paper.auto_energy_j + price_w * paper.auto_time_s)));
    }
    const auto i = static_cast<std::size_t>(k);
    const auto p = point.segment(kernel_offset(k), per_kernel);
    put(p[limit_offset] / limit_prior_sigma);
    put(p[overlap] / overlap_prior_sigma);
    put((p[bytes] - std::log(published_bytes_[i] * 1e-9)) /
        (is_gemm_[i] ? gemm_bytes_prior_sigma : bytes_prior_sigma));
    put((p[fixed] - std::log(usual_fixed_s)) / fixed_prior_sigma);
  }
  return out;
}

CalibrationProblem::Shares CalibrationProblem::shares_of(const PaperTable& table) const {
  Shares shares{table, Eigen::ArrayXd(paper_kernels())};
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    const double count = paper_.kernels[static_cast<std::size_t>(k)].count;
    shares.launched.time_s.row(k) *= count;
    shares.launched.energy_j.row(k) *= count;
    shares.least_energy_s[k] = count * least_energy_time_s(table.time_s.row(k).transpose(),
                                                           table.energy_j.row(k).transpose());
  }
  return shares;
}

// Fig. 3, first all times, then all energies.
Eigen::VectorXd CalibrationProblem::pass_residuals(const PaperTable& launched) const {
  Eigen::ArrayXd time_s = Eigen::ArrayXd::Zero(launched.time_s.cols());
  Eigen::ArrayXd energy_j = time_s;
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    if (!paper_.in_forward_pass[static_cast<std::size_t>(k)]) continue;
    time_s += launched.time_s.row(k).transpose();
    energy_j += launched.energy_j.row(k).transpose();
  }
  const auto reference = static_cast<Eigen::Index>(index(grid_.default_clock()));
  const auto points = static_cast<Eigen::Index>(paper_.forward_pass.size());
  Eigen::VectorXd out(2 * points);
  for (Eigen::Index i = 0; i < points; ++i) {
    const PaperPassPoint& published = paper_.forward_pass[static_cast<std::size_t>(i)];
    const auto c = static_cast<Eigen::Index>(index(published.clock));
    const double weight = index(grid_[published.clock].mem) == 0 ? pass_low_memory_weight : 1.0;
    const double time_ratio = time_s[c] / time_s[reference],
                 energy_ratio = energy_j[c] / energy_j[reference];
    out[i] = robust(weight * std::log(time_ratio / (1.0 + published.time_change_pct / 100.0)) /
                    pass_time_sigma);
    out[points + i] =
        robust(weight * std::log(energy_ratio / (1.0 + published.energy_change_pct / 100.0)) /
               pass_energy_sigma);
  }
  return out;
}

// The time of all kernels, each at the clocks of its own least energy.
double CalibrationProblem::least_energy_residual(const Shares& shares) const {
  const auto reference = static_cast<Eigen::Index>(index(grid_.default_clock()));
  double default_s = 0.0, least_energy_s = 0.0;
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    default_s += shares.launched.time_s(k, reference);
    least_energy_s += shares.least_energy_s[k];
  }
  return robust(
      std::log(least_energy_s / default_s / (1.0 + paper_.least_energy_time_change_pct / 100.0)) /
      least_energy_time_sigma);
}

Eigen::VectorXd CalibrationProblem::sum_residuals(const Shares& shares) const {
  Eigen::VectorXd out(2 * std::ssize(paper_.forward_pass) + 1);
  out << pass_residuals(shares.launched), least_energy_residual(shares);
  return out;
}

Eigen::VectorXd CalibrationProblem::kernel_priors(const Eigen::VectorXd& point,
                                                  Eigen::Index kernel) const {
  const auto p = point.segment(kernel_offset(kernel), per_kernel);
  const auto s = start_.segment(kernel_offset(kernel), per_kernel);
  Eigen::VectorXd out(per_kernel);
  out << (p[cycles] - s[cycles]) / free_prior_sigma, (p[bytes] - s[bytes]) / free_prior_sigma,
      (p[fixed] - s[fixed]) / fixed_prior_sigma,
      (p[core_energy] - s[core_energy]) / free_prior_sigma, p[limit_offset] / limit_prior_sigma,
      p[overlap] / overlap_prior_sigma;
  return out;
}

// Shape [sweep kernels x sweep clocks], on the other card.
PaperTable CalibrationProblem::evaluate_sweep(const Eigen::VectorXd& point) const {
  const GpuSpec card = SharedLayout(gpu_).sweep_card(gpu_at(point), point.head(shared_count_));
  std::vector<KernelCoefficients> kernels;
  for (Eigen::Index k = 0; k < sweep_kernels(); ++k)
    kernels.push_back(kernel_at(point, paper_kernels() + k));
  PaperTable table(sweep_kernels(), std::ssize(sweep_clocks_));
  if (!sweep_.empty()) {
    (void)fill_cells({card, kernels, card.power_limit.limit_w}, {sweep_clocks_, true},
                     table.time_s.data(), table.energy_j.data());
  }
  return table;
}

// Shape [2 x longest sweep + priors, sweep kernels]; missing points are zero.
Eigen::MatrixXd CalibrationProblem::sweep_residuals(const Eigen::VectorXd& point) const {
  const PaperTable table = evaluate_sweep(point);
  Matrix out = Matrix::Zero(2 * longest_sweep_ + per_kernel, sweep_kernels());
  for (Eigen::Index k = 0; k < sweep_kernels(); ++k) {
    const auto& points = sweep_[static_cast<std::size_t>(k)].points;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto c = std::ranges::find(sweep_clocks_, points[i].clock) - sweep_clocks_.begin();
      const double time_s = table.time_s(k, c), power_w = table.energy_j(k, c) / time_s;
      const auto r = static_cast<Eigen::Index>(i);
      out(r, k) = robust(std::log(time_s / *points[i].time_s) / sweep_sigma);
      out(longest_sweep_ + r, k) = robust(std::log(power_w / *points[i].power_w) / sweep_sigma);
    }
    out.col(k).tail(per_kernel) = kernel_priors(point, paper_kernels() + k).unaryExpr(&robust);
  }
  return out;
}

Eigen::VectorXd CalibrationProblem::residuals(const Eigen::VectorXd& point) const {
  const PaperTable table = evaluate(point);
  const Matrix paper = paper_residuals(point, table);
  const Eigen::VectorXd sums = sum_residuals(shares_of(table));
  const Matrix sweep = sweep_residuals(point);
  Eigen::VectorXd out(paper.size() + sums.size() + sweep.size() + shared_count_);
  out << paper.reshaped(), sums, sweep.reshaped(),
      ((point - start_).head(shared_count_).array() * SharedLayout(frame_).prior_weights().array())
          .matrix();
  return out;
}

Eigen::MatrixXd CalibrationProblem::jacobian(const Eigen::VectorXd& point,
                                             const Eigen::VectorXd& base) const {
  Matrix out = Matrix::Zero(base.size(), point.size());
  for (Eigen::Index g = 0; g < shared_count_; ++g) {
    Eigen::VectorXd moved = point;
    moved[g] += difference;
    out.col(g) = (residuals(moved) - base) / difference;
  }
  fill_kernel_columns(point, out);
  return out;
}

void CalibrationProblem::fill_kernel_columns(const Eigen::VectorXd& point, Matrix& jacobian) const {
  const PaperTable table = evaluate(point);
  const Matrix paper = paper_residuals(point, table);
  Shares shares = shares_of(table);
  const Eigen::VectorXd sums = sum_residuals(shares);
  const Matrix sweep = sweep_residuals(point);
  for (Eigen::Index j = 0; j < per_kernel; ++j) {
    Eigen::VectorXd moved = point;
    for (Eigen::Index k = 0; k < paper_kernels() + sweep_kernels(); ++k)
      moved[kernel_offset(k) + j] += difference;
    const PaperTable moved_table = evaluate(moved);
    const Matrix paper_slope = (paper_residuals(moved, moved_table) - paper) / difference;
    const Matrix sweep_slope = (sweep_residuals(moved) - sweep) / difference;
    Shares other = shares_of(moved_table);
    for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
      auto column = jacobian.col(kernel_offset(k) + j);
      column.segment(k * paper.rows(), paper.rows()) = paper_slope.col(k);
      shares.swap_kernel(other, k);
      auto of_sums = column.segment(paper.size(), sums.size());
      const Eigen::Index last = sums.size() - 1;
      if (paper_.in_forward_pass[static_cast<std::size_t>(k)]) {
        of_sums = (sum_residuals(shares) - sums) / difference;
      } else {  // the pass does not launch it: its residuals stay, to the last bit
        of_sums[last] = (least_energy_residual(shares) - sums[last]) / difference;
      }
      shares.swap_kernel(other, k);
    }
    for (Eigen::Index k = 0; k < sweep_kernels(); ++k) {
      jacobian.col(kernel_offset(paper_kernels() + k) + j)
          .segment(paper.size() + sums.size() + k * sweep.rows(), sweep.rows()) =
          sweep_slope.col(k);
    }
  }
}

std::pair<std::vector<double>, std::vector<double>> CalibrationProblem::sweep_errors(
    const Eigen::VectorXd& point) const {
  const PaperTable table = evaluate_sweep(point);
  std::pair<std::vector<double>, std::vector<double>> errors;
  for (std::size_t k = 0; k < sweep_.size(); ++k) {
    for (const SweepPoint& measured : sweep_[k].points) {
      const auto row = static_cast<Eigen::Index>(k);
      const auto c = std::ranges::find(sweep_clocks_, measured.clock) - sweep_clocks_.begin();
      const double time_s = table.time_s(row, c), power_w = table.energy_j(row, c) / time_s;
      errors.first.push_back(time_s / *measured.time_s - 1.0);
      errors.second.push_back(power_w / *measured.power_w - 1.0);
    }
  }
  return errors;
}

}  // namespace rubato
