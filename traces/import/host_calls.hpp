#pragma once
// Which calls of a GPU's runtime tell what waits for what, by their names.

#include <optional>
#include <string_view>

#include "traces/capture.hpp"

namespace rubato {

/// What a call of the CUDA runtime, the CUDA driver or HIP does, by its name with or without the
/// version that Nsight Systems appends ("cudaStreamWaitEvent_v3020"); nothing for those that
/// neither launch nor wait.
[[nodiscard]] std::optional<CallKind> call_kind_of(std::string_view api_name);

/// What else is known of a copy.
struct CopyEnds {
  bool within_device = false;
  bool to_pageable = false;  ///< from a device to memory of the host that is not pinned
};

/// Whether a copy of that call blocks, which does not follow from its name alone: copies within a
/// device never do, copies to pageable memory always do.
/// Source: CUDA runtime API, "API synchronization behavior", 12.9.
[[nodiscard]] CallKind copy_kind(CallKind by_name, CopyEnds ends);

}  // namespace rubato
