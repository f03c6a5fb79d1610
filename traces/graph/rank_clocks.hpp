#pragma once
// How far the clocks of ranks are apart, from what the ranks have in common.

#include <span>

#include "traces/graph/rank_join.hpp"

namespace rubato {

/// Fills JoinedRanks::offset_ns and moves what was joined to the common clock. First neighbours are
/// aligned, those that share most before others: this also serves ranks that only talk to their
/// neighbours. Then each rank is moved to the middle of all, by the ends of the collectives it took
/// part in.
/// Clocks that differ by more than 0.1 s are noted: files of other steps differ so, too.
/// @throws DataError if something arrives before it was sent however clocks are moved, or if clocks
///   differ by as much and the files have no step in common
void align_clocks(std::span<const Capture> captures, JoinedRanks& joined);

/// @throws DataError if more than a tenth of the joined collectives end over 0.2 ms apart: they are
///         not the same ones
void expect_common_ends(const JoinedRanks& joined);

/// "rank 3", or the file where that is not known, for messages.
[[nodiscard]] std::string rank_name(const Capture& capture, std::size_t position);

}  // namespace rubato
