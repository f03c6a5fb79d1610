#pragma once
// Loops on SIMD vectors of doubles (lanes.hpp). A loop is written once, compiled for each
// instruction set that pays, and chosen when the program runs. A family of loops is a struct of
// function pointers:
//
//   template <class V>
//   RUBATO_LANES double sum(const Row& row);
//
//   std::span<const RowLoops> row_loops() {
//     return lanes::runnable([]<class Set>(Set) {
//       using V = typename Set::Vector;
//       return RowLoops{.name = Set::name, .sum = Set::template compiled<sum<V>>};
//     });
//   }
//
// Such a file is compiled with -Wno-psabi: no vector crosses a call. docs/decisions/0012-simd.md.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "common/vectors/lanes.hpp"

namespace rubato::lanes {

/// What every machine can run. Each set has a name, a vector type and `compiled`. That is a
/// function compiled for the set, with the loop inlined into it; its signature is that of the
/// pointer it is assigned to.
struct Baseline {
  static constexpr std::string_view name = "baseline";
  using Vector = Two;
  template <auto loop, class Result, class... Arguments>
  static Result compiled(Arguments... arguments) {
    return loop(arguments...);
  }
};

#ifdef __x86_64__
struct Avx2 {
  static constexpr std::string_view name = "avx2";
  using Vector = Four;
  template <auto loop, class Result, class... Arguments>
  [[gnu::target("avx2")]] static Result compiled(Arguments... arguments) {
    return loop(arguments...);
  }
};

struct Avx512 {
  static constexpr std::string_view name = "avx512";
  using Vector = Eight;
  template <auto loop, class Result, class... Arguments>
  [[gnu::target("avx512f")]] static Result compiled(Arguments... arguments) {
    return loop(arguments...);
  }
};
#endif

/// What `make`, a lambda without captures, makes of each instruction set that this machine can
/// run, the slowest first.
template <class Make>
[[nodiscard]] auto runnable(Make) -> std::span<const decltype(Make{}(Baseline{}))> {
#ifdef __x86_64__
  static constexpr std::array all{Make{}(Baseline{}), Make{}(Avx2{}), Make{}(Avx512{})};
  const std::size_t count = __builtin_cpu_supports("avx512f") ? 3
                            : __builtin_cpu_supports("avx2")  ? 2
                                                              : 1;
  return std::span(all).first(count);
#else
  static constexpr std::array all{Make{}(Baseline{})};
  return all;
#endif
}

}  // namespace rubato::lanes
