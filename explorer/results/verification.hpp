#pragma once
// Did a promised saving come? A plan file beside windows measured by the Python package.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace rubato {

/// A change against the default clocks as a fraction, -0.05 saves 5 %, with an interval around it.
struct ChangeRange {
  double value = 0.0, low = 0.0, high = 0.0;
};

/// How a measured interval lies to the promised one. kept: they overlap. better, missed: the
/// measured one lies wholly below, above. undecided: they overlap, but the measured one also holds
/// 0, no saving at all.
enum class PromiseVerdict { kept, better, missed, undecided };
[[nodiscard]] std::string_view name_of(PromiseVerdict value) noexcept;

/// @param promised, measured  low <= high
/// @return never undecided
[[nodiscard]] PromiseVerdict verdict_of(const ChangeRange& promised, const ChangeRange& measured);

/// The verdict on energy. A promised saving that would be kept is undecided as long as the measured
/// interval reaches to no change at all.
[[nodiscard]] PromiseVerdict saving_verdict(const ChangeRange& promised,
                                            const ChangeRange& measured);

/// What a plan promised and what was measured.
struct Verification {
  std::string plan_path, measured_path;
  std::string granularity, gpu, source;              ///< of the plan; source: what was planned
  double plan_time_s = 0.0, plan_energy_j = 0.0;     ///< as the simulator expects them
  std::size_t pairs = 0;                             ///< of windows
  ChangeRange promised_energy, promised_time;        ///< without interval: a point
  ChangeRange measured_energy, measured_time;        ///< 90 %: Student's t over log ratios of pairs
  double default_power_w = 0.0, plan_power_w = 0.0;  ///< mean over the windows
  PromiseVerdict energy = PromiseVerdict::kept, time = PromiseVerdict::kept;

  /// Whether the measured interval of energy lies below no change at all.
  [[nodiscard]] bool saves() const noexcept { return measured_energy.high < 0.0; }

  /// Whether what was promised came for sure: neither energy nor time missed, nor undecided.
  [[nodiscard]] bool came() const noexcept;
};

/// Reads a plan file (rubato export --plan) and the windows of rubato.measure: columns pair, arm
/// ('default' or 'plan'), steps, time_s, energy_j, and plan_id of the plan that was played (without
/// this column: the first plan). Pairs that lack an arm are left out.
/// @throws IoError, DataError (missing column, fewer than two pairs with both arms, windows of
///         several plans, or of a plan that the plan file does not hold)
[[nodiscard]] Verification verify(const std::filesystem::path& plan,
                                  const std::filesystem::path& measured);

}  // namespace rubato
