#pragma once
// Which partial choices of the search in core.cpp are dominated by others, as far as a coarse look
// at their weights tells. Those need not be merged by weight.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rubato {

/// Steps are equal ranges of weight (a histogram's bins). Of each step: the least cost among the
/// choices seen in the steps below it.
class CostsBelow {
 public:
  /// Forgets what was seen. Weights will lie in [least, most], a range below 2^63. With few
  /// `choices` to come there is one step only, so that none is ruled out.
  void begin(std::int64_t least, std::int64_t most, std::size_t choices) {
    constexpr std::size_t few = 16, most_steps = 4096;  // 32 kB of costs
    const std::size_t steps = choices < few ? 1 : std::bit_floor(std::min(choices, most_steps));
    least_ = least;
    const auto range = static_cast<std::uint64_t>(most - least);
    shift_ = std::max(0, static_cast<int>(std::bit_width(range)) - std::countr_zero(steps));
    cost_.assign(steps + 1, std::numeric_limits<std::int64_t>::max());
  }
  [[nodiscard]] bool useful() const noexcept { return cost_.size() > 2; }

  /// False only if a choice seen is lighter and costs no more. Before settle() some such choices
  /// are missed; after it all count that lie in a lower step.
  [[nodiscard]] bool takes(std::int64_t weight, std::int64_t cost) const {
    return cost < cost_[step(weight)];
  }
  void see(std::int64_t weight, std::int64_t cost) {
    std::int64_t& known = cost_[step(weight) + 1];
    known = std::min(known, cost);
  }
  void settle() {
    for (std::size_t i = 1; i < cost_.size(); ++i) cost_[i] = std::min(cost_[i], cost_[i - 1]);
  }

 private:
  [[nodiscard]] std::size_t step(std::int64_t weight) const {
    return static_cast<std::uint64_t>(weight - least_) >> shift_;
  }

  std::int64_t least_ = 0;
  int shift_ = 0;
  std::vector<std::int64_t> cost_;  ///< least cost below each step, shape [steps + 1]
};

}  // namespace rubato
