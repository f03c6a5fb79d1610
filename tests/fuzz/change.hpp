#pragma once
// Small damages, the same in every run and on every machine.

#include <cstddef>
#include <string>
#include <vector>

#include "tests/fuzz/seed.hpp"

namespace rubato::fuzz {

/// The seed after change number `change` (0: none): a few of a bit turned, bytes lost, doubled,
/// cut off or moved, a number made absurd, a word or a piece of another seed put in.
[[nodiscard]] std::string changed(const std::vector<Seed>& seeds, const Seed& seed,
                                  std::size_t change);

}  // namespace rubato::fuzz
