#pragma once
// What each launch of a capture waited for. Rules and their limits: docs/replay.md, section 3.

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

/// A launch starts `lag_s` after the last of: its host call, the end of the launch
/// before it on its stream, the end of the awaited launch on another stream.
struct LaunchOrder {
  std::optional<std::uint32_t> previous;  ///< index into Capture::launches
  std::optional<std::uint32_t> awaited;   ///< index into Capture::launches, earlier end
  bool has_call = false;                  ///< its host call is in `calls`
  double lag_s = 0.0;
};

/// A host call that launches. It comes `gap_s` after the call before it on the same
/// device or, where the host waited for the GPU, after the end of `awaited`.
struct HostCall {
  std::uint32_t launch = 0;
  std::optional<std::uint32_t> awaited;  ///< index into Capture::launches
  double gap_s = 0.0;                    ///< first call: since time 0, may be negative
};

struct CaptureOrder {
  std::vector<LaunchOrder> launches;         ///< shape [launches]
  std::vector<std::vector<HostCall>> calls;  ///< per device, in order of time
  double overlap_s = 0.0;  ///< by which launches of one stream overlapped in the capture, in all
};

/// An awaited launch on another stream ended no longer than this before the start.
inline constexpr std::int64_t event_window_ns = 10'000;
/// A host that waited for the GPU calls again within this, after at least as long a wait.
inline constexpr std::int64_t sync_window_ns = 50'000;

/// Times count from `origin_ns`.
[[nodiscard]] CaptureOrder capture_order(const Capture& capture, std::int64_t origin_ns);

}  // namespace rubato
