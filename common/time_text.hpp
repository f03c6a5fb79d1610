#pragma once
// Times for people, in the unit that suits them. Programs get seconds, or a column whose name says
// its unit.

#include <string>
#include <string_view>

namespace rubato {

struct TimeUnit {
  std::string_view name;  ///< "ms"
  double per_s;
};

/// Of us, ms and s the largest in which a time of four digits is at least 1; of 0 it is s.
[[nodiscard]] TimeUnit time_unit(double time_s);

/// Four digits in that unit: "22 ms", "5.096 s"; of 10000 s and more whole seconds.
[[nodiscard]] std::string time_text(double time_s);

}  // namespace rubato
