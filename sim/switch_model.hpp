#pragma once
// What it takes to change the clocks of a GPU.

#include <optional>
#include <string>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

/// One change of clock. It takes effect lead_s + stall_s after its request: the latency, as it is
/// measured. First comes the lead, then the stall. All zero: the setting of Spaan et al., arXiv
/// 2601.08539, where switching was not modelled.
struct SwitchCost {
  double stall_s = 0.0;   ///< nothing runs, idle power is drawn, >= 0
  double energy_j = 0.0;  ///< on top of idle power, >= 0
  double lead_s = 0.0;    ///< kernels run on at the old clock, >= 0

  [[nodiscard]] double latency_s() const noexcept { return lead_s + stall_s; }
};

/// Changes of clock on one GPU. Requests can be issued ahead of the launch they are for. One change
/// is under way at a time; the next is requested no earlier than dwell_s after its effect.
struct SwitchModel {
  SwitchCost core;
  /// Cost of a change of the memory clock. A change of both clocks then takes one after the other,
  /// and both take effect together. Nothing: any change of the pair costs `core`.
  std::optional<SwitchCost> mem;
  double dwell_s = 0.0;    ///< how long a clock must be held, >= 0
  std::string guess = {};  ///< why `core` is a guess, in words; empty: it is none
  /// False: of the core clock it was measured what a change takes, of the memory clock it was not.
  bool knows_memory = true;

  /// The change from one setting to another. @pre from != to
  [[nodiscard]] SwitchCost change(const ClockPair& from, const ClockPair& to) const noexcept;

  /// The same where it is known which clocks change. @pre at least one does
  [[nodiscard]] SwitchCost change(bool core_changes, bool mem_changes) const noexcept;

  /// Whether a wanted change may have to wait for the one before it.
  [[nodiscard]] bool may_delay() const noexcept {
    return core.lead_s > 0.0 || (mem && mem->lead_s > 0.0) || dwell_s > 0.0;
  }

  /// Whether changes take neither time nor energy, however many there are.
  [[nodiscard]] bool is_free() const noexcept {
    const auto costs = [](const SwitchCost& cost) {
      return cost.stall_s > 0.0 || cost.energy_j > 0.0;
    };
    return !may_delay() && !costs(core) && !(mem && costs(*mem));
  }
};

/// Latency, s, of a GPU of which none is known: the upper median of the four that are (4.1 ms V100,
/// 6 ms H200, 22 ms A100, 150 ms RTX 8000; their specs name the sources). Too long is the safe
/// side: a plan made for it ends in time where changes are quicker.
inline constexpr double guessed_switch_latency_s = 0.022;

/// The model for those who ask for nothing ahead of time: whole latencies are stalls.
[[nodiscard]] SwitchModel as_stalls(SwitchModel model);

/// What a spec knows of its GPU, or the guess.
[[nodiscard]] SwitchModel switch_model(const GpuSpec& spec);

/// What a change takes, in words: "22 ms (a guess: nobody measured this GPU)".
[[nodiscard]] std::string change_text(const SwitchModel& model);

/// @throws UsageError naming the first value that is negative or not finite
void validate(const SwitchModel& model);

}  // namespace rubato
