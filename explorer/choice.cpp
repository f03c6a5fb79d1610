#include "explorer/choice.hpp"

#include <algorithm>

#include "common/numbers.hpp"

namespace rubato {

namespace {

std::string pass_unit(Pass pass) {
  switch (pass) {
    case Pass::embedding:
    case Pass::forward:
    case Pass::loss: return "forward";
    case Pass::backward:
    case Pass::embedding_backward: return "backward";
    case Pass::optimizer: return "optimizer";
    case Pass::unknown: break;
  }
  return "unknown";
}

std::string unit_name(const Kernel& kernel, Granularity granularity) {
  switch (granularity) {
    case Granularity::run:
    case Granularity::gpu:
    case Granularity::stage: return "run";
    case Granularity::pass: return pass_unit(kernel.pass);
    case Granularity::kernel:
    case Granularity::launch:
    case Granularity::segment: break;
  }
  return kernel.name;
}

}  // namespace

ChoiceUnits choice_units(const Trace& trace, Granularity granularity) {
  ChoiceUnits units;
  for (const Kernel& kernel : trace.kernels) {
    const std::string name = unit_name(kernel, granularity);
    const auto found = std::ranges::find(units.names, name);
    units.unit_of_kernel.push_back(
        id_at<UnitId>(static_cast<std::size_t>(found - units.names.begin())));
    if (found == units.names.end()) units.names.push_back(name);
  }
  return units;
}

ProfileTable with_host_power(const ProfileTable& table, double host_power_w) {
  if (host_power_w == 0.0) return table;
  std::vector<double> time_s, energy_j;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < table.clocks(); ++c) {
      const Cost cost = table.cost(row, id_at<ClockId>(c));
      time_s.push_back(cost.time_s);
      energy_j.push_back(cost.energy_j + host_power_w * cost.time_s);
    }
  }
  return {table.rows(), table.clocks(), std::move(time_s), std::move(energy_j)};
}

ProfileTable unit_table(const ProfileTable& per_launch, const Trace& trace,
                        const ChoiceUnits& units) {
  const std::size_t clocks = per_launch.clocks();
  std::vector<CompensatedSum> time_s(units.names.size() * clocks), energy_j(time_s.size());
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  for (std::size_t k = 0; k < per_launch.rows(); ++k) {
    const double count = static_cast<double>(counts[k]);
    const std::size_t first = index(units.unit_of_kernel[k]) * clocks;
    for (std::size_t c = 0; c < clocks; ++c) {
      time_s[first + c].add(count * per_launch.times_s(k)[c]);
      energy_j[first + c].add(count * per_launch.energies_j(k)[c]);
    }
  }
  std::vector<double> times(time_s.size()), energies(time_s.size());
  std::ranges::transform(time_s, times.begin(), &CompensatedSum::value);
  std::ranges::transform(energy_j, energies.begin(), &CompensatedSum::value);
  return {units.names.size(), clocks, std::move(times), std::move(energies)};
}

const ChoiceUnits& UnitTables::units(Granularity granularity) {
  const auto known = units_.find(granularity);
  if (known != units_.end()) return known->second;
  return units_.emplace(granularity, choice_units(trace_, granularity)).first->second;
}

const ProfileTable& UnitTables::table(Granularity granularity) {
  const auto known = tables_.find(granularity);
  if (known != tables_.end()) return known->second;
  return tables_.emplace(granularity, unit_table(per_launch_, trace_, units(granularity)))
      .first->second;
}

Plan plan_by_unit(const Trace& trace, const ChoiceUnits& units,
                  const std::vector<ClockId>& clock_of_unit) {
  std::vector<ClockId> clock_of_kernel;
  for (const UnitId unit : units.unit_of_kernel)
    clock_of_kernel.push_back(clock_of_unit[index(unit)]);
  return plan_by_kernel(trace, clock_of_kernel);
}

}  // namespace rubato
