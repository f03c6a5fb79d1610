#pragma once
// What can be asked of an execution graph, and which questions' plans answer others too.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rubato {

/// What gets one clock: the whole run, each GPU, each pass on a GPU, each kernel of a pass on a
/// GPU, or each launch. A finer plan never takes more energy than a coarser one for the same time.
/// Automatic knows what a change of clock takes: runs of launches share one.
enum class GraphGrain { iteration, gpu, pass, kernel, launch, automatic };
[[nodiscard]] std::string_view name_of(GraphGrain value) noexcept;
[[nodiscard]] std::optional<GraphGrain> grain_named(std::string_view name) noexcept;

/// Least energy within (1 + slack_frac) x the time at the default clocks.
struct GraphQuestion {
  GraphGrain grain = GraphGrain::kernel;
  double slack_frac = 0.0;  ///< > -1
  /// Launch, automatic: each step of a capture has clocks of its own. Only one of them can be
  /// played for all, see StepRepeats.
  bool own_steps = false;
  /// Automatic: from the effect of a change to the next request, if that is longer than what the
  /// switch model asks for, >= 0.
  double dwell_s = 0.0;

  friend bool operator==(const GraphQuestion&, const GraphQuestion&) = default;
};

/// Whether a plan for `other` is one for `question` too, if it ends by the deadline of that.
[[nodiscard]] bool takes_plans_of(const GraphQuestion& question, const GraphQuestion& other);

/// The same question but for its slack.
[[nodiscard]] bool differ_in_slack(const GraphQuestion& a, const GraphQuestion& b);

/// What is asked for where no slack is given, and beyond.
inline constexpr std::array usual_slacks_frac{0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};

/// Questions whose plans answer the given ones too: coarser grains, each at the same slack and at
/// the usual smaller ones. Searches are not exact, and one for less time may find what another
/// misses: an answer that looks at all of these is the same whatever is asked beside it.
/// @param gpus            of the graph
/// @param any_clock_frac  slack at which every single clock ends in time: with as much, and more
///                        than is usual, nothing smaller is looked at
/// @return those that are not asked already, each once
[[nodiscard]] std::vector<GraphQuestion> questions_within(std::span<const GraphQuestion> asked,
                                                          std::size_t gpus, double any_clock_frac);

}  // namespace rubato
