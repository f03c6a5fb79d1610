#pragma once
// The residuals of a calibration. Its parameters are natural logarithms in one vector, the point:
// first those that all kernels share, then six per kernel.

#include <optional>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "models/calibration/paper_fit.hpp"
#include "models/calibration/paper_normal.hpp"
#include "models/linear/levenberg_marquardt.hpp"

namespace rubato {

/// Times and energies of kernels, shape [kernels x clocks].
struct PaperTable {
  using Rows = Eigen::Array<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  PaperTable(Eigen::Index kernels, Eigen::Index clocks)
      : time_s(kernels, clocks), energy_j(kernels, clocks) {}

  Rows time_s;
  Rows energy_j;
};

/// Which parameters a fit moves: all, or those that specs do not hold.
enum class PaperFitted { all, not_in_specs };

/// Parameters, model and residuals bound to the data.
class CalibrationProblem {
 public:
  static constexpr Eigen::Index per_kernel = 6;
  enum KernelParameter : Eigen::Index { cycles, bytes, fixed, core_energy, limit_offset, overlap };

  CalibrationProblem(const GpuSpec& frame, const Trace& trace, const ClockGrid& grid,
                     const PaperData& paper, const std::vector<SweepKernel>& sweep,
                     bool use_table1);

  /// Starting point: rough physical values, independent of any fitted spec.
  [[nodiscard]] Eigen::VectorXd start() const;

  [[nodiscard]] Eigen::VectorXd residuals(const Eigen::VectorXd& point) const;

  /// The Jacobian of the residuals by forward differences; zero for parameters that are not fitted.
  /// A parameter of one kernel moves only that kernel's residuals and its share of the sums, so one
  /// evaluation serves all kernels: 6 evaluations instead of 6 x kernels. For a shared parameter
  /// only those cells are filled again that it moves.
  [[nodiscard]] PaperSlopes slopes(const Eigen::VectorXd& point,
                                   PaperFitted fitted = PaperFitted::all) const;

  /// The problem to be minimised; refers to this one.
  [[nodiscard]] DampedProblem least_squares(PaperFitted fitted = PaperFitted::all) const;

  /// The objective has many local minima per kernel: for example, it may be limited by power or by
  /// the boost ceiling. Restarts each kernel from several points, with the shared parameters fixed,
  /// and keeps the best.
  [[nodiscard]] Eigen::VectorXd restart_kernels(const Eigen::VectorXd& point) const;

  /// The point of a spec that was fitted to this trace. What no spec holds (kernels of the sweep,
  /// their card, the price of time) is fitted, the rest is held. Nothing for other specs.
  [[nodiscard]] std::optional<Eigen::VectorXd> point_of(const GpuSpec& spec) const;

  /// How many parameters all kernels share; they come first.
  [[nodiscard]] Eigen::Index shared_count() const { return shared_count_; }

  /// The frame with the shared parameters of `point`.
  [[nodiscard]] GpuSpec spec_at(const Eigen::VectorXd& point) const;
  [[nodiscard]] KernelCoefficients coefficients_at(const Eigen::VectorXd& point,
                                                   std::size_t kernel) const;
  [[nodiscard]] PaperTable evaluate(const Eigen::VectorXd& point) const;

  /// Relative errors of time and power over the sweep, in the order of its points.
  [[nodiscard]] std::pair<std::vector<double>, std::vector<double>> sweep_errors(
      const Eigen::VectorXd& point) const;

 private:
  using Matrix = Eigen::MatrixXd;
  static constexpr double difference = 1e-5;  // step of forward differences

  [[nodiscard]] Eigen::Index paper_kernels() const {
    return static_cast<Eigen::Index>(paper_.kernels.size());
  }
  [[nodiscard]] Eigen::Index sweep_kernels() const {
    return static_cast<Eigen::Index>(sweep_.size());
  }
  [[nodiscard]] Eigen::Index kernel_offset(Eigen::Index kernel) const {
    return shared_count_ + kernel * per_kernel;
  }
  [[nodiscard]] GpuSpec gpu_at(const Eigen::VectorXd& point) const;
  [[nodiscard]] KernelCoefficients kernel_at(const Eigen::VectorXd& point,
                                             Eigen::Index kernel) const;
  [[nodiscard]] PaperTable evaluate_sweep(const Eigen::VectorXd& point) const;

  using KernelList = std::vector<Eigen::Index>;
  [[nodiscard]] std::vector<KernelCoefficients> kernels_at(const Eigen::VectorXd& point,
                                                           const KernelList& kernels) const;
  /// Cells of some of the paper's kernels, shape [kernels of the list x clocks].
  [[nodiscard]] PaperTable evaluate(const Eigen::VectorXd& point, const KernelList& kernels) const;
  [[nodiscard]] Matrix paper_residuals(const Eigen::VectorXd& point, const PaperTable& table,
                                       const KernelList& kernels) const;

  /// What each kernel adds to the published sums, all its launches together.
  struct Shares {
    PaperTable passed;                         ///< at all clocks, of kernels of the forward pass
    Eigen::ArrayXd default_s, least_energy_s;  ///< times at the default clocks, at least energy

    Shares(Eigen::Index kernels, Eigen::Index in_pass, Eigen::Index clocks)
        : passed(in_pass, clocks), default_s(kernels), least_energy_s(kernels) {}
  };
  [[nodiscard]] Shares shares_of(const PaperTable& table) const;
  void swap_kernel(Shares& some, Shares& other, Eigen::Index kernel) const;
  [[nodiscard]] Eigen::VectorXd pass_residuals(const PaperTable& passed) const;
  [[nodiscard]] double least_energy_residual(const Shares& shares) const;
  [[nodiscard]] Eigen::VectorXd sum_residuals(const Shares& shares) const;

  /// Clocks at which a parameter may change cells.
  struct Reach {
    std::vector<ClockPair> clocks;
    std::vector<Eigen::Index> columns;  ///< of each in the tables
  };
  struct SharedReach {
    Reach paper, sweep;
  };
  [[nodiscard]] std::vector<SharedReach> shared_reach() const;

  [[nodiscard]] Matrix sweep_residuals(const Eigen::VectorXd& point, const PaperTable& table) const;
  [[nodiscard]] Eigen::VectorXd kernel_priors(const Eigen::VectorXd& point,
                                              Eigen::Index kernel) const;
  [[nodiscard]] Eigen::VectorXd shared_priors(const Eigen::VectorXd& point) const;

  /// Tables and residuals at one point.
  struct State;
  [[nodiscard]] State state_at(const Eigen::VectorXd& point) const;
  void add_shared_slope(const State& base, Eigen::Index parameter, PaperSlopes& slopes) const;
  void add_kernel_slopes(const State& base, Eigen::Index parameter, PaperFitted fitted,
                         PaperSlopes& slopes) const;

  [[nodiscard]] Matrix kernel_costs(const Eigen::VectorXd& point, const KernelList& kernels) const;
  void update_slopes(const Eigen::VectorXd& at, const Matrix& now, const KernelList& kernels,
                     std::vector<Matrix>& slopes) const;
  [[nodiscard]] Eigen::VectorXd fit_kernels(Eigen::VectorXd at) const;

  const GpuSpec& frame_;
  GpuSpec gpu_;  ///< the frame without what tables do not need
  const ClockGrid& grid_;
  const PaperData& paper_;
  const std::vector<SweepKernel>& sweep_;
  bool use_table1_;
  std::vector<double> published_bytes_;  ///< compulsory DRAM bytes per paper kernel
  std::vector<bool> is_gemm_;
  std::vector<std::string> names_;  ///< of paper kernels
  Eigen::Index shared_count_;
  KernelList all_kernels_, sweep_kernels_;  ///< of the paper, and those behind them
  KernelList place_in_pass_;  ///< per paper kernel, in the forward pass; -1: it is not there
  Eigen::Index in_pass_ = 0;  ///< how many kernels the forward pass has
  Eigen::Index longest_sweep_ = 0;
  std::vector<ClockPair> sweep_clocks_;                   ///< distinct ones, by memory state
  std::vector<std::vector<Eigen::Index>> sweep_columns_;  ///< where each point of a kernel is
  Eigen::VectorXd start_;
  Eigen::VectorXd prior_weights_;  ///< of shared parameters
  std::vector<SharedReach> reach_;
};

}  // namespace rubato
