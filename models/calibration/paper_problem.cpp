#include "models/calibration/paper_problem.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/algorithms/sort_by.hpp"
#include "models/calibration/paper_parameters.hpp"
#include "models/linear/dense_loops.hpp"
#include "models/linear/robust_loss.hpp"
#include "models/table/fill.hpp"

namespace rubato {

namespace {

// Standard deviations of each kind of residual, as relative errors where no unit is named: how far
// a fit may stay off without regret. Published times repeat to about 0.1 %, energies to about 1 %.
// The rest is what this form of model can be asked to follow.
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
constexpr double energy_tie = 0.01;  // relative noise that decides which energy is the least
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

// Time of a launch at the clocks of its least energy, shape [kernels]. Noise decides between clocks
// that are nearly as good. So this is a mean over clocks, weighted by how near each energy comes to
// the least (soft minimum): exp(-(E / E_least - 1) / energy_tie).
Eigen::ArrayXd least_energy_times_s(const PaperTable& table) {
  constexpr double lost = -90.0;  // of a logarithm: a sum of at least 1 does not notice
  constexpr auto padding = static_cast<Eigen::Index>(dense_padding);
  const Eigen::Index kernels = table.time_s.rows(), clocks = table.time_s.cols();
  Eigen::ArrayXd numbers =
      Eigen::ArrayXd::Zero((kernels * clocks + padding - 1) / padding * padding);
  Eigen::Map<PaperTable::Rows> weight(numbers.data(), kernels, clocks);
  for (Eigen::Index k = 0; k < kernels; ++k) {
    const auto energy_j = table.energy_j.row(k);
    const double least_j = energy_j.minCoeff();
    weight.row(k) = ((1.0 - energy_j / least_j) * (std::numbers::log2e / energy_tie)).max(lost);
  }
  dense_loops().back().exp2(static_cast<std::size_t>(numbers.size()), numbers.data());
  Eigen::ArrayXd times_s(kernels);
  for (Eigen::Index k = 0; k < kernels; ++k) {
    const double unsound = 0.0 * table.energy_j.row(k).sum();  // not a number then
    times_s[k] = (weight.row(k) * table.time_s.row(k)).sum() / weight.row(k).sum() + unsound;
  }
  return times_s;
}

}  // namespace

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
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    all_kernels_.push_back(k);
    const bool in_pass = paper_.in_forward_pass[static_cast<std::size_t>(k)];
    place_in_pass_.push_back(in_pass ? in_pass_++ : -1);
  }
  for (Eigen::Index k = 0; k < sweep_kernels(); ++k) sweep_kernels_.push_back(paper_kernels() + k);
  for (const SweepKernel& kernel : sweep_) {
    longest_sweep_ = std::max(longest_sweep_, static_cast<Eigen::Index>(kernel.points.size()));
    for (const SweepPoint& point : kernel.points) {
      if (std::ranges::find(sweep_clocks_, point.clock) == sweep_clocks_.end())
        sweep_clocks_.push_back(point.clock);
    }
  }
  sort_by(sweep_clocks_,
          [](ClockPair clock) { return index(clock.mem); });  // as tables are filled the fastest
  for (const SweepKernel& kernel : sweep_) {
    auto& columns = sweep_columns_.emplace_back();
    for (const SweepPoint& point : kernel.points)
      columns.push_back(std::ranges::find(sweep_clocks_, point.clock) - sweep_clocks_.begin());
  }
  start_ = start();
  prior_weights_ = SharedLayout(frame_).prior_weights();
  reach_ = shared_reach();
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

std::vector<KernelCoefficients> CalibrationProblem::kernels_at(const Eigen::VectorXd& point,
                                                               const KernelList& kernels) const {
  std::vector<KernelCoefficients> coefficients;
  coefficients.reserve(kernels.size());
  for (const Eigen::Index k : kernels) coefficients.push_back(kernel_at(point, k));
  return coefficients;
}

KernelCoefficients CalibrationProblem::coefficients_at(const Eigen::VectorXd& point,
                                                       std::size_t kernel) const {
  return kernel_at(point, static_cast<Eigen::Index>(kernel));
}

GpuSpec CalibrationProblem::spec_at(const Eigen::VectorXd& point) const {
  return SharedLayout(frame_).spec(frame_, point.head(shared_count_));
}

// What tables need of spec_at(): copying a spec's kernels and draws takes longer than filling a
// table.
GpuSpec CalibrationProblem::gpu_at(const Eigen::VectorXd& point) const {
  return SharedLayout(gpu_).spec(gpu_, point.head(shared_count_));
}

PaperTable CalibrationProblem::evaluate(const Eigen::VectorXd& point) const {
  return evaluate(point, all_kernels_);
}

PaperTable CalibrationProblem::evaluate(const Eigen::VectorXd& point,
                                        const KernelList& kernels) const {
  const GpuSpec spec = gpu_at(point);
  const auto coefficients = kernels_at(point, kernels);
  PaperTable table(std::ssize(kernels), static_cast<Eigen::Index>(grid_.size()));
  // A point may be anything: where cells are not sound, neither are its residuals.
  (void)fill_cells({spec, coefficients, spec.power_limit.limit_w}, {grid_.pairs()},
                   table.time_s.data(), table.energy_j.data());
  return table;
}

// Shape [residuals x kernels of the list].
Eigen::MatrixXd CalibrationProblem::paper_residuals(const Eigen::VectorXd& point,
                                                    const PaperTable& table,
                                                    const KernelList& kernels) const {
  const auto reference = static_cast<Eigen::Index>(index(grid_.default_clock()));
  const double price_w = SharedLayout(frame_).time_price_w(point.head(shared_count_));
  Matrix out(use_table1_ ? 13 : 10, std::ssize(kernels));
  for (Eigen::Index column = 0; column < out.cols(); ++column) {
    const Eigen::Index k = kernels[static_cast<std::size_t>(column)];
    const PaperKernel& paper = paper_.kernels[static_cast<std::size_t>(k)];
    const auto time_s = table.time_s.row(column), energy_j = table.energy_j.row(column);
    Eigen::Index r = 0;
    const auto put = [&](double value) { out(r++, column) = robust(value); };
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
  const auto reference = static_cast<Eigen::Index>(index(grid_.default_clock()));
  Shares shares(paper_kernels(), in_pass_, table.time_s.cols());
  const Eigen::ArrayXd least_energy_s = least_energy_times_s(table);
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    const auto i = static_cast<std::size_t>(k);
    const double count = paper_.kernels[i].count;
    shares.default_s[k] = table.time_s(k, reference) * count;
    shares.least_energy_s[k] = count * least_energy_s[k];
    if (const Eigen::Index place = place_in_pass_[i]; place >= 0) {
      shares.passed.time_s.row(place) = table.time_s.row(k) * count;
      shares.passed.energy_j.row(place) = table.energy_j.row(k) * count;
    }
  }
  return shares;
}

void CalibrationProblem::swap_kernel(Shares& some, Shares& other, Eigen::Index kernel) const {
  std::swap(some.default_s[kernel], other.default_s[kernel]);
  std::swap(some.least_energy_s[kernel], other.least_energy_s[kernel]);
  const Eigen::Index place = place_in_pass_[static_cast<std::size_t>(kernel)];
  if (place < 0) return;
  some.passed.time_s.row(place).swap(other.passed.time_s.row(place));
  some.passed.energy_j.row(place).swap(other.passed.energy_j.row(place));
}

// Residuals of Fig. 3: first all times, then all energies.
Eigen::VectorXd CalibrationProblem::pass_residuals(const PaperTable& passed) const {
  Eigen::ArrayXd time_s = Eigen::ArrayXd::Zero(passed.time_s.cols());
  Eigen::ArrayXd energy_j = time_s;
  for (Eigen::Index k = 0; k < in_pass_; ++k) {
    time_s += passed.time_s.row(k).transpose();
    energy_j += passed.energy_j.row(k).transpose();
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

// Residual of the time of all kernels, each at the clocks of its own least energy.
double CalibrationProblem::least_energy_residual(const Shares& shares) const {
  double default_s = 0.0, least_energy_s = 0.0;
  for (Eigen::Index k = 0; k < paper_kernels(); ++k) {
    default_s += shares.default_s[k];
    least_energy_s += shares.least_energy_s[k];
  }
  return robust(
      std::log(least_energy_s / default_s / (1.0 + paper_.least_energy_time_change_pct / 100.0)) /
      least_energy_time_sigma);
}

Eigen::VectorXd CalibrationProblem::sum_residuals(const Shares& shares) const {
  Eigen::VectorXd out(2 * std::ssize(paper_.forward_pass) + 1);
  out << pass_residuals(shares.passed), least_energy_residual(shares);
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

// Shape [sweep kernels x sweep clocks], on the card of the sweeps.
PaperTable CalibrationProblem::evaluate_sweep(const Eigen::VectorXd& point) const {
  const GpuSpec card = SharedLayout(gpu_).sweep_card(gpu_at(point), point.head(shared_count_));
  const auto kernels = kernels_at(point, sweep_kernels_);
  PaperTable table(sweep_kernels(), std::ssize(sweep_clocks_));
  if (!sweep_.empty()) {
    (void)fill_cells({card, kernels, card.power_limit.limit_w}, {sweep_clocks_, true},
                     table.time_s.data(), table.energy_j.data());
  }
  return table;
}

// Shape [2 x longest sweep + priors, sweep kernels]; missing points are zero.
Eigen::MatrixXd CalibrationProblem::sweep_residuals(const Eigen::VectorXd& point,
                                                    const PaperTable& table) const {
  Matrix out = Matrix::Zero(2 * longest_sweep_ + per_kernel, sweep_kernels());
  for (Eigen::Index k = 0; k < sweep_kernels(); ++k) {
    const auto& points = sweep_[static_cast<std::size_t>(k)].points;
    const auto& columns = sweep_columns_[static_cast<std::size_t>(k)];
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double time_s = table.time_s(k, columns[i]),
                   power_w = table.energy_j(k, columns[i]) / time_s;
      const auto r = static_cast<Eigen::Index>(i);
      out(r, k) = robust(std::log(time_s / *points[i].time_s) / sweep_sigma);
      out(longest_sweep_ + r, k) = robust(std::log(power_w / *points[i].power_w) / sweep_sigma);
    }
    out.col(k).tail(per_kernel) = kernel_priors(point, paper_kernels() + k).unaryExpr(&robust);
  }
  return out;
}

Eigen::VectorXd CalibrationProblem::shared_priors(const Eigen::VectorXd& point) const {
  return ((point - start_).head(shared_count_).array() * prior_weights_.array()).matrix();
}

Eigen::VectorXd CalibrationProblem::residuals(const Eigen::VectorXd& point) const {
  const PaperTable table = evaluate(point);
  const Matrix paper = paper_residuals(point, table, all_kernels_);
  const Eigen::VectorXd sums = sum_residuals(shares_of(table));
  const Matrix sweep = sweep_residuals(point, evaluate_sweep(point));
  Eigen::VectorXd out(paper.size() + sums.size() + sweep.size() + shared_count_);
  out << paper.reshaped(), sums, sweep.reshaped(), shared_priors(point);
  return out;
}

std::pair<std::vector<double>, std::vector<double>> CalibrationProblem::sweep_errors(
    const Eigen::VectorXd& point) const {
  const PaperTable table = evaluate_sweep(point);
  std::pair<std::vector<double>, std::vector<double>> errors;
  for (std::size_t k = 0; k < sweep_.size(); ++k) {
    const auto row = static_cast<Eigen::Index>(k);
    for (std::size_t i = 0; i < sweep_[k].points.size(); ++i) {
      const SweepPoint& measured = sweep_[k].points[i];
      const Eigen::Index c = sweep_columns_[k][i];
      const double time_s = table.time_s(row, c), power_w = table.energy_j(row, c) / time_s;
      errors.first.push_back(time_s / *measured.time_s - 1.0);
      errors.second.push_back(power_w / *measured.power_w - 1.0);
    }
  }
  return errors;
}

}  // namespace rubato
