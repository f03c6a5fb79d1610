#pragma once
// Runs of a sequence that repeat: layers within a step, steps within a capture.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rubato {

/// A maximal repetition: symbols[i] == symbols[i + period] within [first, end), which is at least
/// two periods long and cannot be made longer on either side. No smaller period does the same.
struct Repetition {
  std::size_t first = 0, end = 0, period = 0;

  [[nodiscard]] std::size_t count() const noexcept { return (end - first) / period; }
  /// Symbols less if one period stands for all whole ones.
  [[nodiscard]] std::size_t saved() const noexcept { return (count() - 1) * period; }
  friend bool operator==(const Repetition&, const Repetition&) = default;
};

/// All of them, by first, end, period; fewer than there are symbols. Time n log n. Source: Bannai
/// et al., The "Runs" Theorem, SIAM J. Comput. 46(5), 2017; symbols are compared by hashes of 61
/// bits.
[[nodiscard]] std::vector<Repetition> all_repetitions(std::span<const std::uint32_t> symbols);

/// Repetitions that do not overlap, in order: the one that saves most symbols first, then the same
/// between them. Of equal ones the shortest period, then the first.
/// @param least_saved  smaller ones are not taken, > 0
/// Each reaches over whole periods only: (end - first) % period == 0.
[[nodiscard]] std::vector<Repetition> best_repetitions(std::span<const std::uint32_t> symbols,
                                                       std::size_t least_saved);

}  // namespace rubato
