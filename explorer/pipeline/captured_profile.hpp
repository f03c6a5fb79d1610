#pragma once
// Stage profiles from captured ranks: what passes took at the clocks of the capture, and what they
// would take at other clocks. The second comes from the model of captured kernels
// (models/kernel/anchor.hpp).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "explorer/pipeline/captured_rank.hpp"
#include "traces/capture.hpp"
#include "traces/pipeline/captured_ranks.hpp"
#include "traces/pipeline/profile.hpp"
#include "traces/power_log.hpp"

namespace rubato {

struct CapturedProfileInput {
  std::span<const Capture> captures;  ///< the ranks of a pipeline
  std::optional<CapturedGpu> gpu;     ///< without one, only what was measured is known
  std::vector<PowerLog> power;        ///< empty, or one of each rank
};

/// A value and how far it is known, 0 < low <= value <= high.
struct Estimate {
  double value = 0.0, low = 0.0, high = 0.0;
};

/// A pass at one clock.
struct CapturedOption {
  double core_mhz = 0.0;  ///< 0 where no GPU is known
  bool captured = false;  ///< the clock of the capture
  /// Median over the passes, s. At the clock of the capture the interval is the 90 % interval of
  /// the median (of fewer than five passes, least to greatest). At other clocks it is widened: the
  /// split of kernels' times between core and memory may be off as far as their work leaves open.
  Estimate time_s;
  /// Of one GPU, J; nothing without power log and GPU model. The interval joins those of the time,
  /// of the splits and of the fit of measured power. An error of the sensor that is the same for
  /// all powers is not in it.
  std::optional<Estimate> energy_j;
};

/// All passes of a kind on a stage; or what ends its steps (reductions, the optimizer).
struct CapturedPassType {
  std::uint32_t stage = 0;  ///< virtual: chunk x stages + stage
  PassKind kind = PassKind::forward;
  std::size_t passes = 0;            ///< captured, of all ranks of the stage
  double low_s = 0.0, high_s = 0.0;  ///< 5th and 95th percentile of their times
  double kernel_frac = 0.0;          ///< share of the time in which the main stream is busy
  double guessed_frac = 0.0;         ///< share of the time whose split is guessed by kernel class
  std::optional<Estimate> measured_power_w;  ///< by the power logs, 90 % interval of the fit
  std::vector<CapturedOption> options;       ///< highest clock first, one of them captured

  [[nodiscard]] const CapturedOption& captured() const;
};

struct CapturedProfile {
  CapturedPipeline pipeline;              ///< shape.transfer_s and hold_s as find_stage_links says
  std::vector<CapturedPassType> types;    ///< by stage, forward first, what ends a step last
  std::optional<double> blocked_power_w;  ///< of a GPU that waits, mean over the ranks; by the logs
  double idle_power_w = 0.0;     ///< of the GPU model at the clock of the capture; 0 without one
  double other_s = 0.0;          ///< of a step, outside passes, on the rank where that is longest
  double captured_step_s = 0.0;  ///< first to last pass of a rank of stage 0, median of steps
  /// Time of a step if the schedule is replayed with the medians of passes, transfers and holds.
  /// Nothing if a stage is missing or the order of passes is not known.
  std::optional<double> replayed_step_s;
  std::vector<std::string> notes;

  /// Whether every stage has forward and backward passes.
  [[nodiscard]] bool complete() const;
};

/// Finds passes, times them and models other clocks. Of the ranks of one stage the slowest decides
/// the time. Of a reduction it is the fastest rank, which came last and waited for none. Energies
/// are means over the ranks. Gaps between kernels stay as they were captured. What ends a step
/// draws what the GPU model says, since power logs do not tell it.
/// @throws what find_pipeline, capture_graph and make_clock_grid throw; DataError if the number of
///         logs is wrong or one does not fit its rank
[[nodiscard]] CapturedProfile profile_captures(const CapturedProfileInput& input);

/// CSV `stage,instruction,frequency,time,energy`, in MHz, s and J, for read_pipeline_profile.
/// @throws DataError if energies or clocks are not known
[[nodiscard]] std::string profile_csv(const CapturedProfile& profile);

}  // namespace rubato
