#pragma once
// Coefficients of a kernel that nobody measured, from its shape and from what GPUs of its
// architecture share (models/gpu/operators.hpp). Shape and clock part here: coefficients are found
// once for each kernel, and the formulas of cell_formulas.hpp make times and energies of them at
// every clock. docs/models.md, section 4.

#include <optional>

#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// Core cycles of a matrix product: the least over tiles and splits of the depth k.
/// @param flop_per_cycle  that an SM reaches on large products, > 0
/// @param element_bytes   of an operand's element, > 0
[[nodiscard]] double product_cycles(const ProductCosts& costs, const GemmShape& shape,
                                    double flop_per_cycle, double element_bytes, double sm_count);

/// DRAM traffic of a matrix product, bytes: each operand once or, where A and B exceed half of the
/// L2, what waves of tiles read again.
[[nodiscard]] double product_bytes(const GemmShape& shape, double element_bytes, double sm_count,
                                   double l2_bytes);

/// Coefficients from a kernel's shape; of a product without one from FLOPs and bytes, as of a large
/// one. Nothing if the spec has no operators or not the kernel's type, if the work is missing that
/// its class needs, and for what a link bounds: collectives and copies from or to the host.
[[nodiscard]] std::optional<KernelCoefficients> from_shape(const GpuSpec& spec,
                                                           const Kernel& kernel);

}  // namespace rubato
