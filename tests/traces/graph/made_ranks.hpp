#pragma once
// Runs of several ranks whose clocks, collectives and transfers are known, for tests.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

inline constexpr std::int64_t us = 1'000;

// Ranks of one run under construction: all ranks' clocks read the time since the run began, plus
// the rank's own error.
class MadeRanks {
 public:
  explicit MadeRanks(std::vector<std::int64_t> clock_error_ns)
      : error_ns_(std::move(clock_error_ns)), captures_(error_ns_.size()) {
    for (std::size_t r = 0; r < captures_.size(); ++r) {
      Capture& capture = captures_[r];
      capture.name = "rank" + std::to_string(r);
      capture.rank = static_cast<std::uint32_t>(r);
      capture.devices = {{0, "A100"}};
      capture.streams = {{0, 7}, {0, 20}, {0, 21}};
      Kernel compute, reduce;
      compute.name = compute.label = "gemm";
      compute.kind = KernelClass::gemm;
      reduce.name = reduce.label = "nccl";
      reduce.kind = KernelClass::communication;
      capture.kernels = {compute, reduce};
    }
  }

  /// One group for all that follows, on a stream; nothing: files do not say.
  void group(std::optional<std::uint32_t> number, std::uint32_t stream = 1) {
    group_ = number;
    stream_ = stream;
    if (!number) return;
    for (Capture& capture : captures_) {
      while (capture.groups.size() <= *number)
        capture.groups.push_back({std::to_string(capture.groups.size()), "", {}, {}});
    }
  }

  struct Part {
    std::size_t rank = 0;
    std::int64_t start_ns = 0;
    std::int64_t late_end_ns = 0;  // jitter
  };

  /// @param transfer_ns  from the last start to the end of all
  void collective(const std::vector<Part>& parts, std::int64_t transfer_ns,
                  CapturedCollective said = {}) {
    const std::int64_t end_ns =
        std::ranges::max_element(parts, {}, &Part::start_ns)->start_ns + transfer_ns;
    said.group = group_;
    for (const Part& part : parts) {
      Capture& capture = captures_[part.rank];
      CapturedLaunch launch;
      launch.kernel = KernelId{1};
      launch.stream = stream_;
      launch.start_ns = part.start_ns + error_ns_[part.rank];
      launch.duration_ns = end_ns + part.late_end_ns - part.start_ns;
      launch.collective = static_cast<std::uint32_t>(capture.collectives.size());
      capture.collectives.push_back(said);
      capture.launches.push_back(launch);
    }
  }

  void compute(std::size_t rank, std::int64_t start_ns, std::int64_t duration_ns) {
    CapturedLaunch launch;
    launch.start_ns = start_ns + error_ns_[rank];
    launch.duration_ns = duration_ns;
    captures_[rank].launches.push_back(launch);
  }

  [[nodiscard]] std::vector<Capture> finish() const {
    std::vector<Capture> sorted = captures_;
    for (Capture& capture : sorted)
      std::ranges::stable_sort(capture.launches, {}, &CapturedLaunch::start_ns);
    return sorted;
  }

  [[nodiscard]] std::vector<Capture>& captures() { return captures_; }

 private:
  std::vector<std::int64_t> error_ns_;
  std::vector<Capture> captures_;
  std::optional<std::uint32_t> group_;
  std::uint32_t stream_ = 1;
};

inline CapturedCollective all_reduce(std::uint64_t bytes) {
  CapturedCollective said;
  said.kind = CollectiveKind::all_reduce;
  said.in_bytes = bytes;
  return said;
}

inline CapturedCollective numbered(std::uint64_t sequence) {
  CapturedCollective said = all_reduce(1024);
  said.sequence = sequence;
  return said;
}

}  // namespace rubato
