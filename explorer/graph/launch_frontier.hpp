#pragma once
// Time-energy frontiers of launches: exact, or to a small gap where that takes long.

#include <cstdint>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/contraction.hpp"

namespace rubato {

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
  /// @param times_s  at which plans are wanted, see FrontierOptions
  [[nodiscard]] Frontier sweep(const Contraction& launches, std::vector<double> times_s,
                               const RunContext& context);

 private:
  std::uint64_t most_exact_visits_;
  bool exact_ = true;
};

}  // namespace rubato
