#pragma once
// Measured time and energy of the passes of each pipeline stage at each clock,
// and their assignment to the passes of a schedule.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

using PassTypeId = Id<struct PassTypeTag>;  ///< into PipelineWork::types
using OptionId = Id<struct OptionTag>;      ///< into PassType::options

/// One pass at one clock, on one GPU.
struct ClockOption {
  double core_mhz = 0.0;       ///< > 0
  double time_s = 0.0;         ///< > 0
  double energy_j = 0.0;       ///< board energy over time_s, >= 0
  double mem_mhz = 0.0;        ///< 0 where the memory clock is not a choice
  double power_limit_w = 0.0;  ///< 0 where the board's power limit is not a choice
  bool mixed = false;          ///< kernels have clocks of their own: MHz are means over time

  friend bool operator==(const ClockOption&, const ClockOption&) = default;
};

/// Options of one kind of pass on one stage. The first is the baseline. In a measured profile it is
/// the highest clock: options fall in clock, then in power limit, and no two are equal in both. In
/// a modelled one it is the default clocks.
struct PassType {
  std::uint32_t stage = 0;
  PassKind kind = PassKind::forward;
  std::vector<ClockOption> options;  ///< not empty
};

/// A profile file: one entry per stage and kind, in the order of first appearance.
struct PipelineProfile {
  std::string name;
  std::vector<PassType> passes;
  std::vector<std::string> notes = {};  ///< what whoever uses it should know, a sentence each

  /// Number of stages: one more than the highest stage.
  [[nodiscard]] std::uint32_t stages() const noexcept;

  /// Options of a stage's pass; nullptr if the profile has none.
  [[nodiscard]] const PassType* find(std::uint32_t stage, PassKind kind) const noexcept;

  /// Whether some stage has options of a kind.
  [[nodiscard]] bool has(PassKind kind) const noexcept;
};

/// Everything that defines the planning problem of one pipeline.
struct PipelineWork {
  PipelineSchedule schedule;
  std::vector<PassType> types;
  std::vector<PassTypeId> type_of_pass;  ///< shape [passes]
  double blocked_power_w = 0.0;          ///< of one GPU that waits for others, >= 0
  double host_power_w = 0.0;             ///< of the rest of the node; in blocked power and options

  [[nodiscard]] const PassType& type_of(PassId pass) const {
    return types[index(type_of_pass[index(pass)])];
  }
};

/// Reads a Zeus profile. Units: MHz, s, J of one GPU, W.
/// - Short form: `stage,instruction,frequency,time,energy`.
/// - Long form: also `rank,dp_rank,pp_rank,tp_rank`. Of the ranks of one stage the longest time is
///   kept, since the slowest rank decides, and the mean energy.
/// - Either form may have `power_limit`. Options are then pairs of clock and limit.
/// - Instruction `load` is skipped: loading data overlaps with computing.
/// - Power (energy over time), times and clocks must be a GPU's, and the times of one pass such
/// that
///   its clocks explain them (traces/plausible.hpp). A row that is the copy of an earlier one
///   counts once, with a note.
/// - An energy of 0 J was not measured. Such clocks are left out where others of the pass have an
///   energy, and such ranks are left out of the mean; notes say so.
/// @throws IoError, DataError listing the bad lines (a clock given twice among them) and passes
///         whose highest clock has no energy but others have
[[nodiscard]] PipelineProfile read_pipeline_profile(const std::filesystem::path& path);
[[nodiscard]] PipelineProfile parse_pipeline_profile(std::string_view text, std::string name);

/// Gives every pass of a schedule its options. Where the profile has no entry of a kind:
/// - A recompute pass is the forward pass. The backward pass contained it, so its time and energy
///   are taken off the backward pass.
/// - Each of the two gradients of a split backward pass is half of the backward pass.
/// With several chunks and a profile of one entry per physical stage, a chunk takes an equal share
/// of its stage's time and energy. What ends a step is the sum over the chunks of a stage, or the
/// first chunk's where the profile has it for first chunks only. A pass of 0 J draws blocked power:
/// none of its durations is then cheaper than another.
/// @param blocked_power_w  of one GPU that waits for others, >= 0
/// @param stage_map        profile stage of each virtual stage (chunk * stages + stage) or of each
///                         stage; empty: equal numbers
/// @throws DataError if the profile lacks a stage or kind, or a clock that is needed to add up
///         chunks or to take recomputing off; or if blocked power is out of range
[[nodiscard]] PipelineWork pipeline_work(PipelineSchedule schedule, const PipelineProfile& profile,
                                         double blocked_power_w,
                                         const std::vector<std::uint32_t>& stage_map = {});

/// Adds the power of the rest of the node to every energy and to blocked power.
/// @param host_power_w  for each GPU, >= 0
[[nodiscard]] PipelineWork with_host_power(PipelineWork work, double host_power_w);

}  // namespace rubato
