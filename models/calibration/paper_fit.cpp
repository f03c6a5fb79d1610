#include "models/calibration/paper_fit.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <random>
#include <span>

#include <fmt/format.h>

#include "common/algorithms/parallel.hpp"
#include "common/statistics.hpp"
#include "common/version.hpp"
#include "models/calibration/change_errors.hpp"
#include "models/calibration/paper_problem.hpp"
#include "models/gpu/spec_parameters.hpp"
#include "models/linear/linear_algebra.hpp"

namespace rubato {

namespace {

double mean_abs(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += std::abs(value);
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

// Coefficients per unit of work of each class: medians over its calibrated kernels.
std::vector<ClassCoefficients> class_medians(const std::vector<CalibratedKernel>& kernels) {
  std::vector<ClassCoefficients> classes;
  for (const CalibratedKernel& first : kernels) {
    if (std::ranges::find(classes, first.kind, &ClassCoefficients::kind) != classes.end()) continue;
    std::vector<double> cycles, factor, core_nj, fixed_s, overlap;
    for (const CalibratedKernel& kernel : kernels) {
      if (kernel.kind != first.kind) continue;
      const KernelCoefficients& c = kernel.coefficients;
      const double work =
          kernel.gemm ? kernel.flops.value_or(1.0) : kernel.dram_bytes.value_or(1.0);
      cycles.push_back(c.core_cycles / work);
      factor.push_back(c.dram_bytes / kernel.dram_bytes.value_or(1.0));
      core_nj.push_back(c.core_j / work * 1e9);
      fixed_s.push_back(c.fixed_s);
      overlap.push_back(c.overlap_scale);
    }
    classes.push_back({.kind = first.kind,
                       .cycles_per_unit = median(cycles),
                       .dram_factor = median(factor),
                       .core_nj_per_unit = median(core_nj),
                       .fixed_s = median(fixed_s),
                       .overlap_scale = median(overlap)});
  }
  return classes;
}

// Classes that the training step has but the paper did not measure: each is like a measured class.
void add_unmeasured_classes(std::vector<ClassCoefficients>& classes) {
  const auto copy = [&](KernelClass from, KernelClass to) {
    const auto found = std::ranges::find(classes, from, &ClassCoefficients::kind);
    if (found == classes.end()) return;
    ClassCoefficients like = *found;
    like.kind = to;
    classes.push_back(like);
  };
  copy(KernelClass::gelu, KernelClass::elementwise);
  copy(KernelClass::gelu, KernelClass::optimizer);
  copy(KernelClass::gelu, KernelClass::memset);
  copy(KernelClass::gelu, KernelClass::memcpy);
  copy(KernelClass::bias, KernelClass::reduce);
  copy(KernelClass::gemm_batched, KernelClass::attention);
}

// Mean absolute errors (MAPE) over the clock pairs of the published forward pass, %.
struct PassErrors {
  double time_mape_pct = 0.0, energy_mape_pct = 0.0;
};

PassErrors pass_errors(const PaperTable& table, const ClockGrid& grid, const PaperData& paper) {
  const auto reference = static_cast<Eigen::Index>(index(grid.default_clock()));
  std::vector<double> time, energy;
  for (const PaperPassPoint& published : paper.forward_pass) {
    if (index(grid[published.clock].mem) == 0) continue;  // the bar is over memory >= 810 MHz
    const auto c = static_cast<Eigen::Index>(index(published.clock));
    double time_s = 0.0, energy_j = 0.0, base_time_s = 0.0, base_energy_j = 0.0;
    for (std::size_t i = 0; i < paper.kernels.size(); ++i) {
      if (!paper.in_forward_pass[i]) continue;
      const auto k = static_cast<Eigen::Index>(i);
      time_s += paper.kernels[i].count * table.time_s(k, c);
      energy_j += paper.kernels[i].count * table.energy_j(k, c);
      base_time_s += paper.kernels[i].count * table.time_s(k, reference);
      base_energy_j += paper.kernels[i].count * table.energy_j(k, reference);
    }
    time.push_back(100.0 *
                   (time_s / base_time_s / (1.0 + published.time_change_pct / 100.0) - 1.0));
    energy.push_back(
        100.0 * (energy_j / base_energy_j / (1.0 + published.energy_change_pct / 100.0) - 1.0));
  }
  return {mean_abs(time), mean_abs(energy)};
}

void add_errors(GpuSpec& spec, const CalibrationProblem& problem, const Eigen::VectorXd& point,
                const ClockGrid& grid, const PaperData& paper) {
  const PaperTable table = problem.evaluate(point);
  const auto reference = static_cast<Eigen::Index>(index(grid.default_clock()));
  std::vector<double> table1_time, table1_energy;
  for (std::size_t i = 0; i < paper.kernels.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    const auto best = static_cast<Eigen::Index>(index(paper.kernels[i].best_clock));
    table1_time.push_back(100.0 * (table.time_s(k, best) / table.time_s(k, reference) - 1.0) -
                          paper.kernels[i].best_time_change_pct);
    table1_energy.push_back(100.0 * (table.energy_j(k, best) / table.energy_j(k, reference) - 1.0) -
                            paper.kernels[i].best_energy_change_pct);
  }
  const PassErrors passes = pass_errors(table, grid, paper);
  spec.fit_errors = {{"table1_time_mae_points", mean_abs(table1_time)},
                     {"table1_energy_mae_points", mean_abs(table1_energy)},
                     {"forward_sweep_time_mape_pct", passes.time_mape_pct},
                     {"forward_sweep_energy_mape_pct", passes.energy_mape_pct}};
  // Errors of whole passes are those that all kernels share. All of these are errors of changes.
  constexpr double sigma_per_mean_error = 1.2533;  // of a Gaussian, sqrt(pi / 2)
  spec.fit_errors["shared_time_pct"] =
      sigma_per_mean_error * passes.time_mape_pct / time_change_error;
  spec.fit_errors["shared_energy_pct"] =
      sigma_per_mean_error * passes.energy_mape_pct / energy_change_error;
  const auto [time_errors, power_errors] = problem.sweep_errors(point);
  if (!time_errors.empty()) {
    spec.fit_errors["other_kernels_time_mape_pct"] = 100.0 * mean_abs(time_errors);
    spec.fit_errors["other_kernels_power_mape_pct"] = 100.0 * mean_abs(power_errors);
  }
}

// The Gaussian around a minimum (Laplace approximation), its width scaled by the residuals.
class DrawsAround {
 public:
  DrawsAround(const CalibrationProblem& problem, const Eigen::VectorXd& point)
      : problem_(problem), point_(point) {
    constexpr double ridge = 0.1;  // as a prior of three e-folds
    const Eigen::VectorXd residuals = problem.residuals(point);
    const Eigen::MatrixXd jacobian = problem.slopes(point).dense();
    Eigen::MatrixXd normal = transposed_product(jacobian, jacobian);
    normal.diagonal().array() += ridge;
    const auto freedom =
        static_cast<double>(std::max<Eigen::Index>(1, residuals.size() - point.size()));
    cost_ = residuals.squaredNorm();
    sigma_ = std::sqrt(std::max(1.0, cost_ / freedom));
    factor_ = cholesky_factor(normal);
  }

  // The sum of squares that a draw of so many parameters may reach.
  [[nodiscard]] double allowed(Eigen::Index parameters) const {
    return cost_ + 2.0 * sigma_ * sigma_ * static_cast<double>(parameters);
  }

  // The Gaussian knows nothing of bounds: core cycles hidden behind DRAM time, for example, may be
  // any number below it. So draws that fit far worse are pulled in: the shared parameters first,
  // then kernel by kernel.
  template <class Random>
  [[nodiscard]] Eigen::VectorXd draw(Random& random, Eigen::Index kernels) const {
    std::normal_distribution<double> gaussian;
    Eigen::VectorXd standard(point_.size());
    for (double& value : standard) value = sigma_ * gaussian(random);
    const Eigen::VectorXd drawn = solve_transposed_lower(factor_, standard);
    const Eigen::Index shared = problem_.shared_count();
    Eigen::VectorXd moved = point_;
    for (Eigen::Index k = -1; k < kernels; ++k) {
      const Eigen::Index first = k < 0 ? 0 : shared + k * CalibrationProblem::per_kernel;
      const Eigen::Index count = k < 0 ? shared : CalibrationProblem::per_kernel;
      Eigen::VectorXd move = Eigen::VectorXd::Zero(point_.size());
      move.segment(first, count) = drawn.segment(first, count);
      pull_in(move);
      moved += move;
    }
    return moved;
  }

 private:
  void pull_in(Eigen::VectorXd& move) const {
    constexpr double shorter = 0.7;
    constexpr int most_pulls = 20;
    const double most = allowed((move.array() != 0.0).count());
    for (int i = 0; i < most_pulls && problem_.residuals(point_ + move).squaredNorm() > most; ++i)
      move *= shorter;
  }

  const CalibrationProblem& problem_;
  Eigen::VectorXd point_;
  Eigen::MatrixXd factor_;
  double cost_ = 0.0, sigma_ = 1.0;
};

// Adds the ensemble (GpuSpec::ensemble): draws around the fit and, in turn, around other local
// minima that fit as well as such draws do.
// @param minima  the fit first
void add_ensemble(GpuSpec& spec, const CalibrationProblem& problem,
                  const std::vector<Eigen::VectorXd>& minima) {
  constexpr std::size_t members = 16;
  std::vector<DrawsAround> around;
  for (const Eigen::VectorXd& point : minima) {
    if (around.empty() ||
        problem.residuals(point).squaredNorm() <= around.front().allowed(point.size()))
      around.emplace_back(problem, point);
  }
  std::mt19937_64 random(20260113);
  const Eigen::VectorXd shared = read_parameters(spec);
  for (std::size_t i = 0; i < members; ++i) {
    const Eigen::VectorXd moved = around[i % around.size()].draw(random, std::ssize(spec.kernels));
    std::vector<double>& member = spec.ensemble.emplace_back();
    const auto add = [&](const Eigen::VectorXd& offsets) {
      for (const double offset : offsets) member.push_back(std::round(offset * 1e4) / 1e4);
    };
    add(read_parameters(problem.spec_at(moved)) - shared);
    for (std::size_t k = 0; k < spec.kernels.size(); ++k)
      add(read_coefficients(problem.coefficients_at(moved, k)) -
          read_coefficients(spec.kernels[k].coefficients));
  }
  spec.sources["uncertainty"] = fmt::format(
      "draws from the Gaussians around {} minima that fit alike, their widths scaled by the "
      "residuals",
      around.size());
}

// One descent, restarted kernel by kernel. The objective has many local minima that fit alike, and
// a restart may end in a worse one: the best point seen counts.
Eigen::VectorXd descend(const CalibrationProblem& problem, const Eigen::VectorXd& start,
                        const RunContext& context) {
  constexpr int rounds = 3;
  constexpr int first_iterations = 60, later_iterations = 40;
  constexpr double max_step = 0.5;
  const DampedProblem squares = problem.least_squares();
  Eigen::VectorXd point = levenberg_marquardt(squares, start, first_iterations, max_step);
  Eigen::VectorXd best = point;
  for (int round = 0; round < rounds && !context.stop_requested(); ++round) {
    point =
        levenberg_marquardt(squares, problem.restart_kernels(point), later_iterations, max_step);
    if (problem.residuals(point).squaredNorm() < problem.residuals(best).squaredNorm())
      best = point;
  }
  return best;
}

// Where descents from the physical start, and from points around it, end; for each problem, the
// best first. With several starts rounding does not decide alone which minimum is found.
std::vector<std::vector<Eigen::VectorXd>> minima_of(std::span<const CalibrationProblem> problems,
                                                    double moved_starts,
                                                    const RunContext& context) {
  constexpr std::size_t starts = 3;
  constexpr double around = 0.1;  // in logarithms
  std::vector<Eigen::VectorXd> points;
  for (const CalibrationProblem& problem : problems) {
    for (std::size_t i = 0; i < starts; ++i) {
      Eigen::VectorXd& point = points.emplace_back(problem.start());
      std::mt19937_64 random(i);
      std::normal_distribution<double> gaussian;
      for (double& value : point) {
        if (i > 0) value += around * gaussian(random);
        if (moved_starts > 0.0) value += moved_starts * gaussian(random);
      }
    }
  }
  std::mutex reporting;
  std::size_t done = 0;
  const auto descend_from = [&](std::size_t i) {
    points[i] = descend(problems[i / starts], points[i], context);
    const std::scoped_lock lock(reporting);
    context.report({.done = ++done, .total = points.size(), .note = "descents"});
  };
  parallel_for(points.size(), descend_from, LoopTasks::singly);
  std::vector<std::vector<Eigen::VectorXd>> minima(problems.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    minima[i / starts].push_back(std::move(points[i]));
  for (std::size_t p = 0; p < problems.size(); ++p) {
    std::ranges::sort(minima[p], {}, [&](const Eigen::VectorXd& point) {
      return problems[p].residuals(point).squaredNorm();
    });
  }
  return minima;
}

// What a fit rests on, as its spec says it.
std::string what_was_fitted(bool use_table1, bool with_sweep) {
  return fmt::format(
      "calibrate on Spaan et al., arXiv 2601.08539: Fig. 3, Fig. 5{}{}",
      use_table1 ? ", Table 1" : "",
      with_sweep ? "; other kernels on an RTX 3080 Ti (apAdomas/GPU-FREQUENCY-DVFS 13eb4b4)" : "");
}

// Puts an earlier fit to the same numbers first, unless the descents found a clearly better one.
void keep_earlier(const CalibrationProblem& problem, std::span<const GpuSpec> earlier,
                  const std::string& fitted_to, std::vector<Eigen::VectorXd>& minima) {
  for (const GpuSpec& spec : earlier) {
    const auto source = spec.sources.find("kernels");
    if (source == spec.sources.end() || !source->second.ends_with(fitted_to)) continue;
    const std::optional<Eigen::VectorXd> known = problem.point_of(spec);
    if (!known) continue;
    const double found = problem.residuals(minima.front()).squaredNorm();
    if (problem.residuals(*known).squaredNorm() <= (1.0 + alike_frac) * found) {
      minima.insert(minima.begin(), *known);
      return;
    }
  }
}

// Errors of single kernels, from Table 1 and a fit that did not see it.
void add_own_errors(const GpuSpec& blind, GpuSpec& spec) {
  // Student's t with four degrees of freedom has a mean absolute value equal to its scale.
  spec.fit_errors["own_time_pct"] =
      blind.fit_errors.at("table1_time_mae_points") / time_change_error;
  spec.fit_errors["own_energy_pct"] =
      blind.fit_errors.at("table1_energy_mae_points") / energy_change_error;
}

}  // namespace

GpuSpec calibrate(const GpuSpec& frame, const Trace& trace, const ClockGrid& grid,
                  const PaperData& paper, const std::vector<SweepKernel>& sweep,
                  const CalibrationOptions& options, const RunContext& context) {
  std::vector<CalibrationProblem> problems;
  std::vector<bool> with_table1{options.use_table1};
  if (options.estimate_errors) with_table1.push_back(false);
  for (const bool use_table1 : with_table1)
    problems.emplace_back(frame, trace, grid, paper, sweep, use_table1);
  std::vector<std::vector<Eigen::VectorXd>> minima =
      minima_of(problems, options.moved_starts, context);
  parallel_for(
      problems.size(),
      [&](std::size_t p) {
        keep_earlier(problems[p], options.earlier, what_was_fitted(with_table1[p], !sweep.empty()),
                     minima[p]);
      },
      LoopTasks::singly);
  const CalibrationProblem& problem = problems.front();
  const Eigen::VectorXd& point = minima.front().front();
  GpuSpec spec = problem.spec_at(point);
  spec.calibrated = true;
  spec.kernels.clear();
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    const Kernel& kernel = trace.kernels[i];
    spec.kernels.push_back({.name = kernel.name,
                            .kind = kernel.kind,
                            .flops = kernel.flops,
                            .dram_bytes = kernel.dram_bytes,
                            .gemm = kernel.gemm,
                            .coefficients = problem.coefficients_at(point, i)});
  }
  spec.classes = class_medians(spec.kernels);
  add_unmeasured_classes(spec.classes);
  const std::string fit = fmt::format("fitted by rubato {} {}", program_version(),
                                      what_was_fitted(options.use_table1, !sweep.empty()));
  for (const char* key : {"core_power", "memory", "kernels"}) spec.sources[key] = fit;
  spec.sources["classes"] =
      "medians over the calibrated kernels of a class; classes without one are like gelu, bias or "
      "gemm_batched";
  add_errors(spec, problem, point, grid, paper);
  spec.ensemble.clear();
  add_ensemble(spec, problem, minima.front());
  if (options.estimate_errors) {
    GpuSpec blind;
    add_errors(blind, problems.back(), minima.back().front(), grid, paper);
    add_own_errors(blind, spec);
  }
  return spec;
}

std::optional<double> misfit(const GpuSpec& fitted, const Trace& trace, const ClockGrid& grid,
                             const PaperData& paper, const std::vector<SweepKernel>& sweep,
                             bool use_table1) {
  const CalibrationProblem problem(fitted, trace, grid, paper, sweep, use_table1);
  const std::optional<Eigen::VectorXd> point = problem.point_of(fitted);
  if (!point) return std::nullopt;
  return problem.residuals(*point).squaredNorm();
}

}  // namespace rubato
