#include "explorer/goal.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

constexpr double j_in_kwh = 3.6e6, s_in_h = 3600.0;

// Shape [granularities].
constexpr std::array<std::string_view, granularities.size()> names{
    "run", "gpu", "stage", "pass", "kernel", "launch", "segment"};

[[noreturn]] void unknown(std::string_view of, const std::string& name,
                          const std::vector<std::string>& known) {
  throw UsageError(
      fmt::format("{} '{}' is not known{}", of, printable(name), did_you_mean(name, known)));
}

}  // namespace

double Prices::of(double time_s, double energy_j, double gpus) const noexcept {
  return pue * energy_j * per_kwh / j_in_kwh + gpus * time_s * per_gpu_hour / s_in_h;
}

double Prices::time_worth_w() const noexcept {
  return (per_gpu_hour / s_in_h) / (pue * per_kwh / j_in_kwh);
}

std::string_view name_of(Granularity value) noexcept {
  return names[static_cast<std::size_t>(value)];
}

std::string_view name_of(Aggregation value) noexcept {
  return value == Aggregation::local ? "local" : "global";
}

std::optional<Granularity> granularity_named(std::string_view name) noexcept {
  const auto* found =
      std::ranges::find(granularities, name, [](Granularity value) { return name_of(value); });
  if (found == granularities.end()) return std::nullopt;
  return *found;
}

std::vector<std::string> granularity_names() { return {names.begin(), names.end()}; }

Granularity granularity_of(std::string_view of, const std::string& name) {
  if (const auto value = granularity_named(name)) return *value;
  unknown(of, name, granularity_names());
}

Aggregation aggregation_of(std::string_view of, const std::string& name) {
  for (const auto value : {Aggregation::local, Aggregation::global}) {
    if (name_of(value) == name) return value;
  }
  unknown(of, name, {"local", "global"});
}

std::string name_of(const Goal& goal) {
  struct Name {
    std::string operator()(const LeastWaste& waste) const {
      return std::string(waste.slack_frac != 0.0 ? relaxed_waste : strict_waste);
    }
    std::string operator()(const LeastEdp&) const { return "edp"; }
    std::string operator()(const LeastEd2p&) const { return "ed2p"; }
    std::string operator()(const LeastEnergy&) const { return "least_energy"; }
    std::string operator()(const LeastTime&) const { return "least_time"; }
    std::string operator()(const LeastCost&) const { return "least_cost"; }
  };
  return std::visit(Name{}, goal);
}

}  // namespace rubato
