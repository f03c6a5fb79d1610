#pragma once
// Who called what and waited for whom, out of an Nsight Systems export.

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/import/builder.hpp"
#include "traces/import/nsight_tables.hpp"

namespace rubato::nsight {

/// Hands the builder the calls that launch or wait. The streams of all work must be known to it.
///
/// Exports name the record call of a wait without rows of events: `eventSyncId` counts the
/// cudaEventRecord calls of a process, from a number that the file does not say. No wait is for a
/// record that comes after it, and most are for the latest one; so the largest difference between
/// id and count of records so far is that number, and it is taken if half of the waits have it.
/// Source: three exports of schema 3.25.0, where 616 of 616 waits have the same difference.
/// @return for each piece of work: index of its call for CapturedLaunch::call
[[nodiscard]] std::vector<std::optional<std::uint32_t>> keep_calls(const Tables& tables,
                                                                   CaptureBuilder& builder);

/// Hands the builder what communication kernels do: the innermost range `nccl:...` around the
/// launch says it, else the kernel's name.
/// @return for each piece of work: index for CapturedLaunch::collective
[[nodiscard]] std::vector<std::optional<std::uint32_t>> keep_collectives(const Tables& tables,
                                                                         CaptureBuilder& builder);

}  // namespace rubato::nsight
