#pragma once
// What kernels that nobody measured may be like: the measured ones of all shipped specs, whatever
// their size. docs/graphs.md, section 3.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/gpu/spec.hpp"

namespace rubato {

/// A measured kernel as a pattern for others, at its GPU's default clocks.
struct KernelShape {
  std::string gpu;  ///< name of the spec that it was fitted in
  KernelClass kind = KernelClass::other;
  double lean = 0.5;      ///< core time over core and DRAM time, 0 to 1
  double fixed = 0.0;     ///< share of the time that no clock changes, 0 to 1
  double overlap = 4.0;   ///< exponent p of the soft maximum of core and DRAM time, >= 1
  double idle = 1.0;      ///< factor on idle power
  double of_limit = 0.7;  ///< power over the power limit; above 1: the limit lowers its clock
};

/// The fitted kernels of a spec: of a sweep, not of captures.
[[nodiscard]] std::vector<KernelShape> shapes_of(const GpuSpec& spec);

/// Coefficients of a launch of a shape that takes one second at the spec's default clocks, where no
/// power limit holds it.
[[nodiscard]] KernelCoefficients coefficients_of(const GpuSpec& spec, const KernelShape& shape);

/// Whether measured kernels are this GPU's own: those of the spec, or of the shipped one behind a
/// spec whose kernels were fitted to captures.
[[nodiscard]] bool has_own_shapes(const GpuSpec& spec);

/// Patterns for kernels on one GPU: its own fitted kernels, and those of all other shipped specs. A
/// spec's kernels count with the root of their number, the GPU's own four times as much; 15 % of
/// the weight is spread evenly over all leans, since kernels of another kind exist.
class ShapePriors {
 public:
  explicit ShapePriors(const GpuSpec& spec);

  /// The pattern at a quantile of how much time a lower core clock takes.
  /// @param kind      kernels of like classes count, others little; `other`: all count
  /// @param quantile  0 to 1
  /// @param position  where it lies between following no core clock (0) and nothing else (1), if
  ///                  that is known: patterns like it only
  [[nodiscard]] const KernelShape& at(KernelClass kind, double quantile,
                                      std::optional<double> position = {}) const;

  /// The pattern at a quantile, with the power of one of any class that follows the core clock
  /// about as much: how near to its limit a board runs is of the GPU, whose own kernels may have no
  /// class.
  /// @param power_quantile  of these, by power over the limit
  [[nodiscard]] KernelShape with_any_power(KernelClass kind, double quantile,
                                           double power_quantile) const;

 private:
  struct Weighted {
    std::size_t shape;
    double position, until;  // until: sum of the weights up to it, as a share
  };

  [[nodiscard]] static std::pair<double, double> near(const std::vector<Weighted>& of,
                                                      double position);
  [[nodiscard]] const Weighted& found(KernelClass kind, double quantile,
                                      std::optional<double> position) const;

  std::vector<KernelShape> shapes_;              // least slowed down first
  std::vector<std::vector<Weighted>> of_class_;  // by KernelClass
};

}  // namespace rubato
