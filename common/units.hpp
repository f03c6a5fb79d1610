#pragma once
// Factors between our units and those that people read and write.

namespace rubato {

inline constexpr double percent = 100.0;  ///< of a fraction
inline constexpr double ms_per_s = 1e3;
inline constexpr double us_per_s = 1e6;

}  // namespace rubato
