#include "models/table/profile_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <new>

#include <fmt/format.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "common/error.hpp"

namespace rubato {

namespace {

// A pointer into a vector that keeps it alive.
std::shared_ptr<const double> shared(std::vector<double> values) {
  const auto owner = std::make_shared<const std::vector<double>>(std::move(values));
  return {owner, owner->data()};
}

}  // namespace

ProfileTable::ProfileTable(std::size_t rows, std::size_t clocks, std::vector<double> time_s,
                           std::vector<double> energy_j)
    : rows_(rows), clocks_(clocks) {
  if (rows == 0 || clocks == 0)
    throw DataError("a profile table needs at least one row and one clock");
  if (time_s.size() != rows * clocks || energy_j.size() != rows * clocks) {
    throw DataError(fmt::format("profile table: found {} times and {} energies; expected {} x {}",
                                time_s.size(), energy_j.size(), rows, clocks));
  }
  expect_sound_costs(time_s, energy_j, clocks);
  time_s_ = shared(std::move(time_s));
  energy_j_ = shared(std::move(energy_j));
}

ProfileTable::ProfileTable(std::size_t rows, std::size_t clocks,
                           const std::shared_ptr<const double[]>& numbers)
    : rows_(rows),
      clocks_(clocks),
      time_s_(numbers, numbers.get()),
      energy_j_(numbers, numbers.get() + rows * clocks) {
  if (rows == 0 || clocks == 0)
    throw DataError("a profile table needs at least one row and one clock");
}

void expect_sound_costs(std::span<const double> time_s, std::span<const double> energy_j,
                        std::size_t clocks) {
  const auto bad = [](double x) { return !(std::isfinite(x) && x > 0.0); };
  for (std::size_t i = 0; i < time_s.size(); ++i) {
    if (!bad(time_s[i]) && !bad(energy_j[i])) continue;
    throw DataError(fmt::format(
        "profile table: row {}, clock {}: time_s is {} and energy_j is {}; expected numbers > 0",
        i / clocks, i % clocks, time_s[i], energy_j[i]));
  }
}

std::shared_ptr<double[]> unset_numbers(std::size_t count) {
  constexpr std::size_t large_page = std::size_t{1} << 21, cache_line = 64;
  // From here on the allocator asks the system anew each time.
  constexpr std::size_t many_pages = 16 * large_page;
  const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(double);
  const std::size_t unit = bytes < many_pages ? cache_line : large_page;
  void* const memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (unit == large_page) madvise(memory, bytes, MADV_HUGEPAGE);  // no more than advice
#endif
  return {static_cast<double*>(memory), [](double* p) { std::free(p); }};
}

}  // namespace rubato
