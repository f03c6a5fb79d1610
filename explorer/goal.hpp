#pragma once
// What an exploration looks for.

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace rubato {

/// Least energy with time <= (1 + slack_frac + tolerance_frac) x the default clocks' time.
/// slack_frac = 0 is the paper's "strict waste", others its "relaxed waste".
struct LeastWaste {
  double slack_frac = 0.0;      ///< > -1; 0.02 allows 2 % more time, -0.02 asks for 2 % less
  double tolerance_frac = 0.0;  ///< >= 0; what still counts as "no slower"
};
struct LeastEdp {};                           ///< energy x time
struct LeastEd2p {};                          ///< energy x time^2
struct LeastEnergy {};                        ///< no bound on time
struct LeastTime {                            ///< within an energy and/or average power budget
  std::optional<double> max_energy_j;         ///< > 0
  std::optional<double> max_average_power_w;  ///< > 0
};

using Goal = std::variant<LeastWaste, LeastEdp, LeastEd2p, LeastEnergy, LeastTime>;

/// What is given one clock: the whole iteration, a pass, a kernel, or runs of
/// launches that the search finds itself, given what a change of clock costs.
enum class Granularity { iteration, pass, kernel, automatic };

/// local: every unit meets the goal on its own; global: one budget for all units.
enum class Aggregation { local, global };

[[nodiscard]] std::string_view name_of(Granularity value) noexcept;
[[nodiscard]] std::string_view name_of(Aggregation value) noexcept;

/// The value with that name, or nothing.
[[nodiscard]] std::optional<Granularity> granularity_named(std::string_view name) noexcept;
[[nodiscard]] std::optional<Aggregation> aggregation_named(std::string_view name) noexcept;

/// Short name for tables and databases, e.g. "strict_waste", "relaxed_waste", "edp".
[[nodiscard]] std::string name_of(const Goal& goal);

}  // namespace rubato
