#include "models/profile_table.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

ProfileTable::ProfileTable(std::size_t rows, std::size_t clocks, std::vector<double> time_s,
                           std::vector<double> energy_j)
    : rows_(rows), clocks_(clocks), time_s_(std::move(time_s)), energy_j_(std::move(energy_j)) {
  if (rows == 0 || clocks == 0)
    throw DataError("a profile table needs at least one row and one clock");
  if (time_s_.size() != rows * clocks || energy_j_.size() != rows * clocks) {
    throw DataError(fmt::format("profile table: found {} times and {} energies; expected {} x {}",
                                time_s_.size(), energy_j_.size(), rows, clocks));
  }
  const auto bad = [](double x) { return !(std::isfinite(x) && x > 0.0); };
  for (std::size_t i = 0; i < time_s_.size(); ++i) {
    if (!bad(time_s_[i]) && !bad(energy_j_[i])) continue;
    throw DataError(fmt::format(
        "profile table: row {}, clock {}: time_s is {} and energy_j is {}; expected numbers > 0",
        i / clocks, i % clocks, time_s_[i], energy_j_[i]));
  }
}

}  // namespace rubato
