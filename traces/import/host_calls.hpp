#pragma once
// Which calls of a GPU's runtime tell what waits for what, by their names.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/import/builder.hpp"

namespace rubato {

/// What a call of the CUDA runtime, the CUDA driver or HIP does, by its name. The name may have the
/// version that Nsight Systems appends ("cudaStreamWaitEvent_v3020"). Nothing for calls that
/// neither launch, wait nor have to do with an event.
[[nodiscard]] std::optional<CallKind> call_kind_of(std::string_view api_name);

/// From where to where a copy goes, as far as it decides whether the call blocks.
struct CopyEnds {
  bool within_device = false;  ///< from a device to itself
  bool to_pageable = false;    ///< from a device to memory of the host that is not pinned
};

/// Whether the call of a copy blocks (blocking_copy) or not (launch). That does not follow from its
/// name alone: copies within a device never block, copies to pageable memory always do.
/// Source: CUDA runtime API, "API synchronization behavior", 12.9.
[[nodiscard]] CallKind copy_kind(CallKind by_name, CopyEnds ends);

/// Whether a call of that kind waits for, or asks after, an event that another call recorded.
[[nodiscard]] bool waits_for_event(CallKind kind);

/// A call as its file has it.
struct RecordedCall {
  std::optional<CallKind> kind;  ///< nothing: kept only for the work it launched
  CaptureThread thread;
  std::int64_t start_ns = 0, duration_ns = 0;
};

/// Which of a file's calls the capture keeps, by their positions in the file's table.
class KeptCalls {
 public:
  KeptCalls(CaptureBuilder& builder, std::size_t calls) : builder_(builder), index_(calls) {}

  /// The call's index in the capture, to which it is added the first time.
  /// @param call  the one at `position`
  std::uint32_t keep(std::uint32_t position, const RecordedCall& call);

  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t position) const {
    return index_[position];
  }

 private:
  CaptureBuilder& builder_;
  std::vector<std::optional<std::uint32_t>> index_;
};

}  // namespace rubato
