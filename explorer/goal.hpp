#pragma once
// What an exploration looks for.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rubato {

/// Least energy with time <= (1 + slack_frac + tolerance_frac) x the default clocks' time. A slack
/// of 0 is the "strict waste" of Spaan et al. (published.hpp), any other their "relaxed waste".
struct LeastWaste {
  double slack_frac = 0.0;      ///< > -1; 0.02 allows 2 % more time, -0.02 asks for 2 % less
  double tolerance_frac = 0.0;  ///< >= 0; what still counts as "no slower"
};
struct LeastEdp {};                           ///< energy-delay product: energy x time
struct LeastEd2p {};                          ///< energy x time^2
struct LeastEnergy {};                        ///< no bound on time
struct LeastTime {                            ///< within an energy and/or average power budget
  std::optional<double> max_energy_j;         ///< > 0
  std::optional<double> max_average_power_w;  ///< > 0
};

/// What energy and time cost, in any currency.
struct Prices {
  double per_kwh = 0.0;       ///< of energy that the building takes, > 0
  double per_gpu_hour = 0.0;  ///< of a GPU's time beside its energy, >= 0
  double pue = 1.0;           ///< energy of the building over that of its computers, >= 1

  /// What a step on so many GPUs costs. @param energy_j  of all of them together
  [[nodiscard]] double of(double time_s, double energy_j, double gpus = 1.0) const noexcept;
  /// Power that costs as much as a GPU's time, W. One more second pays off where it saves more than
  /// so many joules.
  [[nodiscard]] double time_worth_w() const noexcept;
};
/// Energy and time at their prices, no bound on time.
struct LeastCost {
  Prices prices;
};

using Goal = std::variant<LeastWaste, LeastEdp, LeastEd2p, LeastEnergy, LeastTime, LeastCost>;

/// What is given one clock, coarsest first: the whole run, each GPU, the GPUs of each stage, passes
/// of one kind on a GPU (of stages each pass of each microbatch), each kernel of such passes, each
/// launch, or segments: runs of launches, which the search finds, given what a change of clock
/// costs. Coarser plans are candidates of a finer one: of plans that keep what was asked for as
/// applied it takes no more. Which kind of run has plans of which: refusals.hpp.
enum class Granularity { run, gpu, stage, pass, kernel, launch, segment };
inline constexpr std::array granularities{
    Granularity::run,    Granularity::gpu,    Granularity::stage,  Granularity::pass,
    Granularity::kernel, Granularity::launch, Granularity::segment};

/// local: every unit meets the goal by itself; global: one budget for all units.
enum class Aggregation { local, global };

[[nodiscard]] std::string_view name_of(Granularity value) noexcept;
[[nodiscard]] std::string_view name_of(Aggregation value) noexcept;

/// The value with that name, or nothing.
[[nodiscard]] std::optional<Granularity> granularity_named(std::string_view name) noexcept;

/// The value with that name. @param of  what asks for it: "--per"
/// @throws UsageError for a name that is not known, with those that are
[[nodiscard]] Granularity granularity_of(std::string_view of, const std::string& name);
[[nodiscard]] Aggregation aggregation_of(std::string_view of, const std::string& name);

/// Names of all granularities, coarsest first.
[[nodiscard]] std::vector<std::string> granularity_names();

/// The names of LeastWaste: without slack and with it.
inline constexpr std::string_view strict_waste = "strict_waste", relaxed_waste = "relaxed_waste";
[[nodiscard]] constexpr bool names_waste(std::string_view goal) noexcept {
  return goal == strict_waste || goal == relaxed_waste;
}

/// Short name for tables and databases, e.g. "strict_waste", "relaxed_waste", "edp".
[[nodiscard]] std::string name_of(const Goal& goal);

/// One question: what to optimise, for which units, with which budget.
struct Question {
  Granularity granularity = Granularity::kernel;
  Aggregation aggregation = Aggregation::global;
  Goal goal = LeastWaste{};
  /// Matters where the request takes changes of clock to be free: this plan counts them as the spec
  /// knows them. If its granularity is `segment`, it is also chosen with them.
  bool counts_changes = false;
};

/// Time that a question allows beyond that of the default clocks; nothing: another goal than
/// LeastWaste.
[[nodiscard]] inline std::optional<double> allowed_frac(const Question& question) {
  const auto* waste = std::get_if<LeastWaste>(&question.goal);
  return waste == nullptr ? std::nullopt : std::optional(waste->slack_frac + waste->tolerance_frac);
}

}  // namespace rubato
