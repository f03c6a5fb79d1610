#pragma once
// Models as textbooks have them: roofline, linear, CMOS power. They are fitted to the points of
// each kernel by non-negative least squares (NNLS) of relative errors. They know no power limit.

#include <Eigen/Core>

#include "models/alternatives/cell_model.hpp"

namespace rubato {

/// What a clock offers, in the quantities that textbook models use.
struct ClockTerms {
  double core_hz = 0.0;           ///< core clock in effect
  double mem_hz = 0.0;            ///< memory clock
  double volts = 1.0;             ///< the spec's, relative to its floor
  double dram_bytes_per_s = 0.0;  ///< what kernels reach in this memory state at high core clocks
};

/// Gives the terms of the clocks of one sweep.
class ClockReader {
 public:
  /// Copies what it needs of `data`.
  explicit ClockReader(const ModelData& data);
  [[nodiscard]] ClockTerms terms(const ClockPair& clock) const;
  /// Whether points of more than one memory clock were measured.
  [[nodiscard]] bool memory_varies() const noexcept { return memory_varies_; }

 private:
  GpuSpec spec_;
  bool applied_clocks_;
  bool memory_varies_;
};

/// What was measured of one kernel, point by point.
struct SeenPoints {
  std::vector<ClockTerms> terms;
  std::vector<double> time_s, power_w;
};
[[nodiscard]] SeenPoints seen_points(const SweepKernel& kernel, const ClockReader& clocks);

/// time_s = max(cycles / core clock, bytes / bandwidth of the memory state).
struct Roofline {
  double cycles = 0.0, bytes = 0.0;
  [[nodiscard]] double time_s(const ClockTerms& at) const;
};

/// The roofline with least squared relative errors, exactly. A roofline divides the points into
/// those that the core bounds and those that memory bounds. Two sorts of candidates are tried: for
/// every division, the best cycles and bytes; for every point, the best under which core and memory
/// bound that point alike. @param terms, time_s  shape [n], n >= 1
[[nodiscard]] Roofline fit_roofline(std::span<const ClockTerms> terms,
                                    std::span<const double> time_s);

/// time = fixed + cycles / core clock [+ cycles of memory / memory clock];
/// power = constant + slope x core clock [+ slope x memory clock].
/// The terms in brackets are there where the memory clock was varied.
class LinearModel final : public CellModel {
 public:
  explicit LinearModel(const ModelData& data);
  [[nodiscard]] OperatingPoint at(std::size_t kernel, const ClockPair& clock) const override;

 private:
  struct Kernel {
    Eigen::Vector3d time, power;  ///< constant, of the core clock, of the memory clock
  };
  ClockReader clocks_;
  std::vector<Kernel> kernels_;
};

/// power = constant + c x core clock x V^2 [+ slope x memory clock], V being the spec's voltage;
/// time by roofline. The term in brackets is there where the memory clock was varied.
class CmosModel final : public CellModel {
 public:
  explicit CmosModel(const ModelData& data);
  [[nodiscard]] OperatingPoint at(std::size_t kernel, const ClockPair& clock) const override;

 private:
  struct Kernel {
    Roofline time;
    Eigen::Vector3d power;  ///< constant, c, of the memory clock
  };
  ClockReader clocks_;
  std::vector<Kernel> kernels_;
};

}  // namespace rubato
