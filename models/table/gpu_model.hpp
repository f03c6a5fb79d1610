#pragma once
// Time and energy of a trace's kernels on one GPU at any clock.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/ids.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/spec.hpp"
#include "models/kernel/anchor.hpp"
#include "models/kernel/model.hpp"
#include "models/table/measured_cells.hpp"
#include "models/table/profile_table.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// What the coefficients of a kernel rest on. measured: this kernel at these shapes. anchored: its
/// captured time, the split modelled. scaled: this kernel, measured at other shapes. derived: its
/// work (FLOPs, bytes) and the fit of its class, or its shape and the fit of the architecture.
/// guessed: an unknown class, a spec without a fit, or a time captured on another GPU.
enum class CoefficientSource { measured, anchored, scaled, derived, guessed };

inline constexpr std::size_t coefficient_sources = 5;

[[nodiscard]] std::string_view name_of(CoefficientSource value) noexcept;

/// measured where the kernel's own fit says how its captured time splits, else anchored.
[[nodiscard]] CoefficientSource source_of(const AnchoredKernel& kernel) noexcept;

/// Coefficients and where they are from.
struct FoundCoefficients {
  KernelCoefficients coefficients;
  CoefficientSource source;
};

/// Coefficients of the calibrated kernel of that name, else from the class, else from peak rates.
/// Nothing if the work (FLOPs, DRAM bytes) that its class needs is missing.
[[nodiscard]] std::optional<FoundCoefficients> find_coefficients(const GpuSpec& spec,
                                                                 const Kernel& kernel);

/// Whether the measured times of a trace count as this GPU's: no device name says another chip.
[[nodiscard]] bool captured_here(const GpuSpec& spec, const Trace& trace);

/// A spec bound to the kernels of one trace: coefficients are looked up or derived once, here.
/// Kernels that were captured on this GPU return their captured time at the captured clocks.
class GpuModel {
 public:
  /// @param power_limit_w  W, replaces the spec's power limit
  /// @param measured       cells that evaluate() returns as they are. A kernel all of whose cells
  ///                       were measured needs no coefficients, and has none
  /// @throws DataError if a kernel has neither calibrated coefficients nor the work (FLOPs, DRAM
  ///         bytes) that its class needs, UsageError if the limit is outside the spec's range
  GpuModel(GpuSpec spec, const Trace& trace, std::optional<double> power_limit_w = {},
           std::shared_ptr<const MeasuredCells> measured = {});

  [[nodiscard]] const GpuSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] double power_limit_w() const noexcept { return power_limit_w_; }
  [[nodiscard]] std::size_t kernels() const noexcept { return coefficients_.size(); }
  [[nodiscard]] CoefficientSource source(KernelId kernel) const { return sources_[index(kernel)]; }
  /// Its measured cells; null if all of it is modelled.
  [[nodiscard]] const MeasuredCells* measured() const noexcept { return measured_.get(); }
  [[nodiscard]] const KernelCoefficients& coefficients(KernelId kernel) const {
    return coefficients_[index(kernel)];
  }
  [[nodiscard]] std::span<const KernelCoefficients> coefficients() const noexcept {
    return coefficients_;
  }

  /// The point at which the coefficients of a kernel return its captured time. Nothing: it was not
  /// captured on this GPU.
  [[nodiscard]] const std::optional<CapturePoint>& anchor(KernelId kernel) const {
    return anchors_[index(kernel)];
  }

  /// Whether a kernel's work was not used, since to do it in the captured time takes more than the
  /// GPU's peaks.
  [[nodiscard]] bool work_dropped(KernelId kernel) const { return work_dropped_[index(kernel)]; }

  /// The same GPU with other coefficients. @param coefficients  shape [kernels]
  [[nodiscard]] GpuModel with(std::vector<KernelCoefficients> coefficients) const;

  /// One launch at a requested clock. @throws DataError if it was neither measured nor is modelled
  [[nodiscard]] OperatingPoint evaluate(KernelId kernel, const ClockPair& clock) const;

  /// Board power while nothing runs at this clock, W.
  [[nodiscard]] double idle_power_w(const ClockPair& clock) const;

 private:
  // @return false if there are no coefficients for it
  [[nodiscard]] bool bind(const Kernel& kernel, std::optional<ClockPair> captured);
  void bind_measured();

  GpuSpec spec_;
  double power_limit_w_;
  std::vector<KernelCoefficients> coefficients_;
  std::vector<CoefficientSource> sources_;
  std::vector<std::optional<CapturePoint>> anchors_;
  std::vector<bool> work_dropped_;
  std::shared_ptr<const MeasuredCells> measured_;
};

/// Every kernel at every clock, shape [kernels x clocks] row-major, in parallel
/// (oneTBB). Same bits for any number of threads.
[[nodiscard]] std::vector<OperatingPoint> evaluate_all(const GpuModel& model,
                                                       const ClockGrid& grid);

/// Times and energies of evaluate_all. @throws DataError if a cell is not positive and finite
[[nodiscard]] ProfileTable profile_table(std::span<const OperatingPoint> cells, std::size_t kernels,
                                         std::size_t clocks);

}  // namespace rubato
