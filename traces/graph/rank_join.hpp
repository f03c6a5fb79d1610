#pragma once
// Which launches on different ranks are one collective, and how far the ranks' clocks are apart.
// docs/graphs.md, section 2.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/capture.hpp"

namespace rubato {

/// A rank's part in a collective.
struct CollectiveMember {
  std::uint32_t capture = 0;  ///< position in the captures that were joined
  std::uint32_t launch = 0;   ///< into Capture::launches
  std::int64_t start_ns = 0;  ///< on the common clock
  std::int64_t end_ns = 0;
};

/// One collective of several ranks. It transfers from the last start on; before, ranks wait.
struct JoinedCollective {
  std::string name;  ///< of the kernel on the first rank
  CollectiveKind kind = CollectiveKind::other;
  std::string group;                      ///< as recorded; empty if the files do not say
  std::vector<CollectiveMember> members;  ///< at least two, by position of their capture
  std::uint32_t last = 0;                 ///< into members: who came last

  [[nodiscard]] std::int64_t last_start_ns() const { return members[last].start_ns; }
  [[nodiscard]] std::int64_t start_skew_ns() const;  ///< last less first start
  [[nodiscard]] std::int64_t end_spread_ns() const;  ///< last less first end
  [[nodiscard]] std::int64_t transfer_ns() const;    ///< last start to first end, >= 0
};

/// Ranks as one run.
struct JoinedRanks {
  std::vector<JoinedCollective> collectives;  ///< by time of their last start
  std::vector<std::int64_t> offset_ns;        ///< shape [captures]: common clock less the rank's
  std::vector<std::string> notes;             ///< what was assumed or left out
};

/// Joins the k-th collective of each group of ranks (with sequence numbers where files have them;
/// without groups, of each stream of collectives), and aligns clocks on their ends.
/// @param captures  two or more, of different ranks of one run
/// @throws DataError if ranks differ in the number, kind or bytes of a group's collectives, if
///         joined collectives do not end together, or if no collective is shared
[[nodiscard]] JoinedRanks join_ranks(std::span<const Capture> captures);

}  // namespace rubato
