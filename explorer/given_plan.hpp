#pragma once
// A plan from elsewhere, kernel by kernel, such as a published one.

#include <span>
#include <string>
#include <string_view>

#include "explorer/transfer.hpp"

namespace rubato {

/// A plan that nobody here searched for, as `transfer` needs it. Its question is the one that the
/// trace's own plan will answer: a clock per kernel, one budget, no slower than the default clocks,
/// changes of clock free.
/// @param csv   columns kernel (Kernel::name), mem and core (MHz or auto), each kernel once
/// @param grid  as make_clock_grid takes it; the plan's clocks must be in it
/// @throws DataError listing rows whose clock is not in the grid or whose kernel is in an earlier
///         row; or if there are no rows
[[nodiscard]] StoredPlan parse_given_plan(std::string_view csv, const std::string& name,
                                          const GpuSpec& spec, const std::string& grid);

/// @throws UsageError naming the first kernel of the plan that no trace has, with the most similar
void require_known_kernels(const StoredPlan& plan, std::span<const Trace> traces);

}  // namespace rubato
