#pragma once
// What can be asked of an execution graph, and which questions' plans answer others too.

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "explorer/goal.hpp"

namespace rubato {

/// Least energy within (1 + slack_frac) x the time at the default clocks.
struct GraphQuestion {
  Granularity grain = Granularity::kernel;
  double slack_frac = 0.0;  ///< > -1
  /// Local: the launches of every unit take no more than the slack longer by themselves.
  Aggregation aggregation = Aggregation::global;

  [[nodiscard]] bool is_local() const noexcept {
    return aggregation == Aggregation::local && grain != Granularity::run;
  }

  friend bool operator==(const GraphQuestion&, const GraphQuestion&) = default;
};

/// Whether a plan for `other` is one for `question` too, if it ends by the deadline of `question`.
[[nodiscard]] bool takes_plans_of(const GraphQuestion& question, const GraphQuestion& other);

/// Whether the answer to `question` looks at the plan for `other`: one of questions_within() for
/// it, or of the same slack. So an answer does not depend on what else is asked.
/// @param any_clock_frac  as of questions_within()
[[nodiscard]] bool looks_at(const GraphQuestion& question, const GraphQuestion& other,
                            double any_clock_frac);

/// Whether two questions are the same but for their slack.
[[nodiscard]] bool differ_in_slack(const GraphQuestion& a, const GraphQuestion& b);

/// Slacks at which questions look at each other's plans, see questions_within().
inline constexpr std::array usual_slacks_frac{0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};

/// Questions whose plans answer the given ones too: the same and coarser grains, each at the same
/// slack and at the usual smaller ones. For example, on one GPU kernel at 2 % brings pass at 0, 1
/// and 2 % and kernel at 0 and 1 %. Searches are not exact, and one for less time may find what
/// another misses. An answer that looks at all of these does not depend on what else is asked.
/// @param gpus            number of GPUs of the graph
/// @param any_clock_frac  slack at which every single clock ends in time. Questions with as much,
///                        and with more than the usual slacks, bring no smaller slacks
/// @return those that are not asked already, each once
[[nodiscard]] std::vector<GraphQuestion> questions_within(std::span<const GraphQuestion> asked,
                                                          std::size_t gpus, double any_clock_frac);

}  // namespace rubato
