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

/// One collective of several ranks. It transfers from the last start on; before that, ranks wait.
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

/// What one rank sends another one, where files have only two moments: launches without a duration,
/// one when it left and one when it was there. Unlike a collective it does not hold the sender.
struct JoinedMessage {
  std::string group;  ///< as JoinedCollective::group
  CollectiveMember from, to;
};

/// Ranks as one run.
struct JoinedRanks {
  std::vector<JoinedCollective> collectives;  ///< by time of their last start
  std::vector<JoinedMessage> messages;        ///< by time of their start
  std::vector<std::int64_t> offset_ns;        ///< shape [captures]: common clock less the rank's
  std::vector<std::string> notes;             ///< what was assumed or left out
};

/// Finds which launches of different ranks belong together, and aligns the clocks of the ranks.
/// Example: the third all-reduce of group 0 on rank 0 is the third one of group 0 on rank 1.
/// - Collectives of one group are joined in order, by sequence numbers where files have them.
///   Without groups, those of one stream of collectives are.
/// - The k-th send from one rank to another is joined with the k-th receive.
/// - Clocks are aligned on the ends of collectives, else between sends and receives.
/// The GPUs of one capture take part like ranks, under one clock. Ranks that groups name and nobody
/// gave are noted: the last of those given stands in for them.
/// @param captures  of different ranks of one run, or one of several GPUs
/// @throws DataError if ranks differ in the number of a group's collectives (without sequence
///         numbers), in their kind or bytes, or in the size of the run; if joined collectives do
///         not end together; if something arrives before it was sent however clocks are moved; or
///         if several captures share nothing
[[nodiscard]] JoinedRanks join_ranks(std::span<const Capture> captures);

}  // namespace rubato
