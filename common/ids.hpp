#pragma once
// Index types. Each is a plain number that does not convert to another one, so
// swapping a kernel for a clock is a compile error.

#include <compare>
#include <cstddef>
#include <cstdint>

namespace rubato {

/// An index into one array, tagged by what the array holds.
template <class Tag>
struct Id {
  std::uint32_t value = 0;

  // clang-tidy 14 takes the 0 that comparisons of ids are made of for a pointer.
  friend constexpr auto operator<=>(Id, Id) = default;  // NOLINT(modernize-use-nullptr)
};

/// Position as an array index.
template <class Tag>
[[nodiscard]] constexpr std::size_t index(Id<Tag> id) noexcept {
  return id.value;
}

/// Id of position `i`; positions beyond 2^32 - 1 do not occur in this program.
template <class IdType>
[[nodiscard]] constexpr IdType id_at(std::size_t i) noexcept {
  return IdType{static_cast<std::uint32_t>(i)};
}

using KernelId = Id<struct KernelTag>;      ///< into Trace::kernels
using SiteId = Id<struct SiteTag>;          ///< into the launches of a compact trace
using MemStateId = Id<struct MemStateTag>;  ///< into GpuSpec::mem_states
using ClockId = Id<struct ClockTag>;        ///< into a ClockGrid
using UnitId = Id<struct UnitTag>;          ///< into the choice units of an exploration

}  // namespace rubato
