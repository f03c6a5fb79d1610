#pragma once
// Maximal repetitions ("runs") of a sequence: layers within a step, steps within a capture.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rubato {

/// A maximal repetition, e.g. "ababa" in "xababay" with period 2: symbols[i] == symbols[i + period]
/// within [first, end). That part is at least two periods long and cannot be made longer on either
/// side. No smaller period does the same.
struct Repetition {
  std::size_t first = 0, end = 0, period = 0;

  /// Whole periods.
  [[nodiscard]] std::size_t count() const noexcept { return (end - first) / period; }
  /// By how many symbols the sequence is shorter if one period stands for all whole ones.
  [[nodiscard]] std::size_t saved() const noexcept { return (count() - 1) * period; }
  friend bool operator==(const Repetition&, const Repetition&) = default;
};

/// All of them, by first, end, period; fewer than there are symbols. Takes O(n log n) time. Parts
/// are compared by hashes of 61 bits, so a repetition may be a wrong one, with a tiny probability.
/// Source: Bannai et al., The "Runs" Theorem, SIAM J. Comput. 46(5), 2017.
[[nodiscard]] std::vector<Repetition> all_repetitions(std::span<const std::uint32_t> symbols);

/// Repetitions that do not overlap, by position. The choice is greedy: the one that saves most
/// symbols is taken first, then the best of what is left around it, and so on. Of equal ones the
/// shortest period is taken, then the first. Each reaches over whole periods only:
/// (end - first) % period == 0.
/// @param least_saved  symbols, > 0; repetitions that save fewer are not taken
[[nodiscard]] std::vector<Repetition> best_repetitions(std::span<const std::uint32_t> symbols,
                                                       std::size_t least_saved);

}  // namespace rubato
