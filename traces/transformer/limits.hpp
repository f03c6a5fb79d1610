#pragma once
// What the options of generated steps may be, with one wording of each error.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// @throws UsageError unless value is 1 to most. @param whose  before the name, may be empty
inline void expect_range(std::string_view name, std::uint64_t value, std::string_view whose = {},
                         std::uint64_t most = 1'000'000'000) {
  if (value == 0 || value > most)
    throw UsageError(
        fmt::format("{}{} is {}; expected a whole number from 1 to {}", whose, name, value, most));
}

/// @throws UsageError if by does not divide of
inline void expect_divides(std::string_view small, std::uint64_t by, std::string_view large,
                           std::uint64_t of) {
  if (of % by != 0)
    throw UsageError(fmt::format("{} {} does not divide {} {}", small, by, large, of));
}

/// Number formats that steps are generated in. @throws UsageError
inline void expect_training_dtype(Dtype dtype) {
  constexpr std::array known{Dtype::bf16, Dtype::fp16, Dtype::fp32, Dtype::fp8, Dtype::nvfp4};
  if (std::ranges::find(known, dtype) == known.end())
    throw UsageError(fmt::format("dtype is {}; steps are made in fp32, fp16, bf16, fp8 or nvfp4",
                                 name_of(dtype)));
}

}  // namespace rubato
