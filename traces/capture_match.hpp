#pragma once
// The same step captured several times: which launch of one capture is which of another.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traces/capture.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// For each position of `a` that of the same symbol in `b`, along a longest common subsequence;
/// nothing where it has no partner. Time and memory grow with the square of the number of
/// differences (symbols of either that have no partner). With more than 4000 nothing is matched.
/// Source: E. W. Myers, An O(ND) difference algorithm, Algorithmica 1, 1986.
[[nodiscard]] std::vector<std::optional<std::size_t>> matched_positions(
    std::span<const std::uint32_t> a, std::span<const std::uint32_t> b);

/// Time of a kernel in a capture.
struct TypicalTime {
  double time_s = 0.0;          ///< mean over its positions in the step of the median over steps
  double relative_error = 0.0;  ///< standard error of time_s, over time_s
  std::size_t launches = 0;     ///< in all steps together
};

/// How long the kernels of a step took in another capture of the same step. Launches are matched by
/// kernel_key and position. Steps of `capture` are compared one by one, on the stream with most
/// time of kernels that `reference` knows.
/// @param reference  a folded step of the capture that kernels are named after
/// @return shape [kernels of reference]; nothing for kernels that do not occur
[[nodiscard]] std::vector<std::optional<TypicalTime>> typical_times(const Trace& reference,
                                                                    const Capture& capture);

/// The capture with launches that its profiler lost. A kernel of the step that is missing from a
/// step of `capture` is put into the gap it left, if the gap is at least 0.8 of the time that the
/// kernel usually takes.
/// @param typical  of the same capture, see typical_times
[[nodiscard]] Capture with_lost_launches(const Trace& reference,
                                         std::span<const std::optional<TypicalTime>> typical,
                                         Capture capture);

/// Label, grid, block, matrix sizes and bytes (of a collective or copy) of a kernel: equal for the
/// same kernel in two captures.
[[nodiscard]] std::string kernel_key(const Kernel& kernel);

/// The kernel of `reference` that each kernel of a capture is, by kernel_key; nothing for others.
/// @return shape [kernels of capture]
[[nodiscard]] std::vector<std::optional<KernelId>> same_kernels(const Trace& reference,
                                                                const Capture& capture);

}  // namespace rubato
