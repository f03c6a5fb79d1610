#pragma once
// A plan from elsewhere, kernel by kernel, such as a published one.

#include <span>
#include <string>
#include <string_view>

#include "explorer/transfer.hpp"

namespace rubato {

/// What `transfer` needs of a plan that nobody here searched for. Its question is the one for the
/// trace's own plan: kernels, one budget, no slower than the default clocks; changes of clock free.
/// @param csv   columns kernel (Kernel::name), mem and core (MHz or auto), each kernel once
/// @param grid  as make_clock_grid takes it; the plan's clocks must be in it
/// @throws DataError listing rows with a clock or a second line for a kernel that cannot be
[[nodiscard]] StoredPlan parse_given_plan(std::string_view csv, const std::string& name,
                                          const GpuSpec& spec, const std::string& grid);

/// @throws UsageError naming the first kernel of the plan that no trace has, with the nearest
void require_known_kernels(const StoredPlan& plan, std::span<const Trace> traces);

}  // namespace rubato
