#pragma once
// Time-energy frontiers of launches: exact, or to a small gap where that takes long.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/contraction.hpp"

namespace rubato {

/// A price of time that no frontier reaches: all of its vertices.
inline constexpr double all_prices = std::numeric_limits<double>::infinity();

/// Frontiers of one graph at several costs.
class LaunchFrontiers {
 public:
  /// @param most_exact_visits  of nodes, before a sweep is begun again less finely: a tenth of a
  ///                           second or so
  explicit LaunchFrontiers(std::uint64_t most_exact_visits = 1'000'000)
      : most_exact_visits_(most_exact_visits) {}

  /// Exact where that is soon done. Else, for this sweep and those after it, savings per second
  /// are told apart to 2^-20 of the greatest, and so is the price of time; bounds stay bounds, and
  /// the gap shows what it costs (docs/graphs.md, section 5). Of large graphs curves lose those
  /// vertices that change no cost by more than a ten-thousandth of what a launch can save.
  /// @param times_s   at which plans are wanted, see FrontierOptions
  /// @param enough_w  vertices that are faster than all of times_s are wanted up to the first at
  ///                  this price of time or above
  [[nodiscard]] Frontier sweep(const Contraction& launches, std::vector<double> times_s,
                               double enough_w, const RunContext& context);

 private:
  std::uint64_t most_exact_visits_;
  bool exact_ = true;
};

/// Frontier plans for deadlines, and for somewhat less time each. Those for much less are swept for
/// when the first of them is asked for: most of a sweep's time goes into the fastest plans.
class ShorterPlans {
 public:
  /// @param sweeps   must outlive this
  /// @param shorter  shares by which plans end before their deadline, rising; must outlive this
  ShorterPlans(LaunchFrontiers& sweeps, const CrashProblem& problem,
               std::vector<double> deadlines_s, std::span<const double> shorter)
      : sweeps_(sweeps),
        launches_(problem),
        deadlines_s_(std::move(deadlines_s)),
        shorter_(shorter) {}

  /// @return by positions of deadline and share, until the next call; null if it was interrupted
  [[nodiscard]] const FrontierPlan* at(std::size_t deadline, std::size_t share,
                                       const RunContext& context);

 private:
  LaunchFrontiers& sweeps_;
  Contraction launches_;
  std::vector<double> deadlines_s_;
  std::span<const double> shorter_;
  std::size_t shares_made_ = 0;
  std::vector<FrontierPlan> plans_;  // shape [deadlines x shares made]
};

}  // namespace rubato
