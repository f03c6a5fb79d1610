#pragma once
// Whether a plan can be set on GPUs as it is: one rule for planners, plan files and what applies
// them. docs/apply.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// Shares of a step's time in short stretches up to this one can be applied.
inline constexpr double most_short_frac = 0.05;

/// A stretch shorter than this many latencies of the changes at its ends is short: its clock would
/// hardly be in force before the next one is asked for.
inline constexpr double shortest_latencies = 2.0;

/// Time of a target's step with one setting, gaps included. Neighbours may have the same setting.
struct AppliedStretch {
  double time_s = 0.0;  ///< >= 0
  ClockPair clock;
  std::uint64_t count =
      1;  ///< of how many alike it stands, all that follows it up to a like one too
};

/// Who is told clocks: a GPU, a rank, a stage. Its step repeats for ever.
struct AppliedTarget {
  std::string label;                 ///< for people: "rank 2"; empty where there is one target only
  std::vector<AppliedStretch> step;  ///< in order of time
};

struct PlanVerdict {
  bool applicable = true;
  std::string because = {};  ///< why not, in words; empty if it is

  friend bool operator==(const PlanVerdict&, const PlanVerdict&) = default;
};

/// Shares of a step's time in stretches that are short, 0 to 1. A stretch that ends a step goes on
/// at the begin of the next one if the clock is the same.
[[nodiscard]] double short_frac(std::span<const AppliedStretch> step, const SwitchModel& switching);

/// Judges the steps of all targets:
/// - At most `most_short_frac` of a step lies in short stretches.
/// - The power limit of a target does not change: nobody measured how long a limit takes to act.
/// - The memory clock changes only where it is known what that takes
///   (SwitchModel::knows_memory).
/// @param switching  what changes take in earnest, see switching_in_earnest(): also of a plan that
///                   took them to be free
[[nodiscard]] PlanVerdict applicable(std::span<const AppliedTarget> targets,
                                     const SwitchModel& switching);

}  // namespace rubato
