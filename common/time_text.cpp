#include "common/time_text.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

TimeUnit time_unit(double time_s) {
  constexpr double next_unit = 999.95;  // rounds to 1000
  const double size_s = std::abs(time_s);
  if (size_s > 0.0 && us_per_s * size_s < next_unit) return {"us", us_per_s};
  if (size_s > 0.0 && ms_per_s * size_s < next_unit) return {"ms", ms_per_s};
  return {"s", 1.0};
}

std::string time_text(double time_s) {
  constexpr double five_digits = 9999.5;  // which would be written with an exponent
  if (std::abs(time_s) >= five_digits) return fmt::format("{:.0f} s", time_s);
  const TimeUnit unit = time_unit(time_s);
  return fmt::format("{:.4g} {}", unit.per_s * time_s, unit.name);
}

}  // namespace rubato
