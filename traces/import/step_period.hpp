#pragma once
// Steps of a capture that nobody marked: the period in its sequence of kernels. The rules and
// their limits are in docs/trace-import.md.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

/// A sequence of launches, all vectors of its length.
struct NameSequence {
  std::vector<std::uint32_t> names;
  std::vector<std::uint8_t> parts;      ///< bits: forward 1, backward 2, optimizer 4; 0: not known
  std::vector<std::int64_t> pauses_ns;  ///< before each launch, >= 0, at most a day
};

/// `count` steps of `period` launches each, the first at `first`.
struct StepPeriod {
  std::size_t first = 0, period = 0, count = 0;
  friend bool operator==(const StepPeriod&, const StepPeriod&) = default;
};

inline constexpr std::size_t least_period = 8;  ///< launches; shorter ones say nothing

/// The period of the longest exact repetition that can be training steps. Such a repetition covers
/// half of the sequence, or nine tenths if it has two periods only. A period holds every part that
/// the sequence has, and among them an optimizer, or both forward and backward: layers repeat too.
/// A step begins behind an optimizer's launches, else behind the longest pauses.
[[nodiscard]] std::optional<StepPeriod> find_step_period(const NameSequence& sequence);

/// Names of the kernels on the busiest compute stream of a device, without copies, memsets and
/// collectives.
/// @param device   index into Capture::devices
/// @param indices  filled with positions in Capture::launches, same length
[[nodiscard]] NameSequence name_sequence(const Capture& capture, std::uint32_t device,
                                         std::vector<std::size_t>& indices);

/// Gives a capture without steps those that its sequence repeats, and its launches their step; sets
/// step_source. Leaves the capture as it is where it has steps or no period is found.
void find_periodic_steps(Capture& capture);

}  // namespace rubato
