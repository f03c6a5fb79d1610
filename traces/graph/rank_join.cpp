#include "traces/graph/rank_join.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/statistics.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// Ends of one collective on ranks whose clocks are aligned: 1 to 7 us apart on eight GPUs of a host
// (DLRM capture of facebookresearch/param); across hosts some tens. Pairs that do not belong
// together are milliseconds apart.
constexpr std::int64_t same_end_ns = 200'000;
// Share of collectives that may end apart, from profilers that lose an event's end now and then.
constexpr double most_apart = 0.1;

std::string rank_name(const Capture& capture, std::size_t position) {
  return capture.rank ? fmt::format("rank {}", *capture.rank)
                      : fmt::format("file {} ('{}')", position, printable(capture.name));
}

// Collectives of one rank in the order of one group or stream.
struct Row {
  std::vector<std::uint32_t> launches;
  std::vector<std::optional<std::uint64_t>> sequence;
};
using Rows = std::map<std::string, Row>;

const CapturedCollective* collective_of(const Capture& capture, const CapturedLaunch& launch) {
  return launch.collective ? &capture.collectives[*launch.collective] : nullptr;
}

// Where the file names no group: the position of the stream among those that carry collectives.
std::string key_of(const Capture& capture, const CapturedLaunch& launch,
                   std::map<std::uint32_t, std::size_t>& streams) {
  const CapturedCollective* collective = collective_of(capture, launch);
  if (collective == nullptr || !collective->group) {
    const auto place = streams.emplace(launch.stream, streams.size()).first->second;
    return fmt::format("stream {}", place);
  }
  const CaptureGroup& group = capture.groups[*collective->group];
  std::string key = "group " + group.name;
  for (const std::uint32_t rank : group.ranks) key += fmt::format(" {}", rank);
  if (collective->source_rank && collective->target_rank)  // point to point
    key += fmt::format(" from {} to {}", *collective->source_rank, *collective->target_rank);
  return key;
}

Rows rows_of(const Capture& capture) {
  Rows rows;
  std::map<std::uint32_t, std::size_t> streams;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < capture.launches.size(); ++i) {
    if (capture.kernels[index(capture.launches[i].kernel)].kind == KernelClass::communication)
      order.push_back(i);
  }
  std::ranges::stable_sort(order, {},
                           [&](std::uint32_t i) { return capture.launches[i].start_ns; });
  for (const std::uint32_t i : order) {
    const CapturedLaunch& launch = capture.launches[i];
    Row& row = rows[key_of(capture, launch, streams)];
    const CapturedCollective* collective = collective_of(capture, launch);
    row.launches.push_back(i);
    row.sequence.push_back(collective ? collective->sequence : std::nullopt);
  }
  return rows;
}

// Whether a number occurs equally often on every rank.
bool is_common(const std::vector<std::map<std::uint64_t, std::size_t>>& times,
               std::uint64_t number) {
  const auto first = times.front().find(number);
  if (first == times.front().end()) return false;
  return std::ranges::all_of(times, [&](const auto& of_rank) {
    const auto at = of_rank.find(number);
    return at != of_rank.end() && at->second == first->second;
  });
}

// Leaves the collectives that every rank has, by sequence number; without numbers counts must
// agree.
void keep_common(std::string_view key, std::span<const Capture> captures,
                 std::vector<std::pair<std::size_t, Row>>& of_ranks,
                 std::vector<std::string>& notes) {
  const auto numbered = [](const auto& one) {
    return std::ranges::all_of(one.second.sequence, [](const auto& s) { return s.has_value(); });
  };
  const std::size_t count = of_ranks.front().second.launches.size();
  const bool equal = std::ranges::all_of(
      of_ranks, [&](const auto& one) { return one.second.launches.size() == count; });
  if (std::ranges::all_of(of_ranks, numbered)) {
    std::vector<std::map<std::uint64_t, std::size_t>> times;
    for (const auto& [rank, row] : of_ranks) {
      times.emplace_back();
      for (const auto& number : row.sequence) ++times.back()[*number];
    }
    std::size_t dropped = 0;
    for (auto& [rank, row] : of_ranks) {
      Row kept;
      for (std::size_t i = 0; i < row.launches.size(); ++i) {
        if (!is_common(times, *row.sequence[i])) continue;
        kept.launches.push_back(row.launches[i]);
        kept.sequence.push_back(row.sequence[i]);
      }
      dropped += row.launches.size() - kept.launches.size();
      row = std::move(kept);
    }
    if (dropped > 0)
      notes.push_back(fmt::format("{} collectives of {} are not in every file and stay as captured",
                                  dropped, key));
    return;
  }
  if (equal) return;
  std::string counts;
  for (const auto& [rank, row] : of_ranks)
    counts += fmt::format("{}{} has {}", counts.empty() ? "" : ", ",
                          rank_name(captures[rank], rank), row.launches.size());
  throw DataError(fmt::format("collectives of {} do not match: {}", key, counts),
                  {.in = {}, .hint = "give files of the same step of one run, or one --step"});
}

// The k-th collectives of a group, if they are joined, do the same.
void expect_same_kind(std::span<const Capture> captures, const JoinedCollective& joined,
                      std::size_t position) {
  struct Said {
    CollectiveKind kind = CollectiveKind::other;
    std::optional<std::uint64_t> bytes;  // of an all-reduce, whose ranks all send the same
  };
  const auto said_by = [&](const CollectiveMember& member) {
    const Capture& capture = captures[member.capture];
    const auto* collective = collective_of(capture, capture.launches[member.launch]);
    if (collective == nullptr) return Said{};
    const bool all_reduce = collective->kind == CollectiveKind::all_reduce;
    return Said{collective->kind, all_reduce ? collective->in_bytes : std::nullopt};
  };
  const auto describe = [&](const CollectiveMember& member) {
    const Said said = said_by(member);
    return fmt::format("{}{} on {}", name_of(said.kind),
                       said.bytes ? fmt::format(" of {} bytes", *said.bytes) : "",
                       rank_name(captures[member.capture], member.capture));
  };
  const Said first = said_by(joined.members.front());
  for (const CollectiveMember& member : joined.members) {
    const Said other = said_by(member);
    if (first.kind == other.kind && first.bytes == other.bytes) continue;
    throw DataError(fmt::format("collective {} of {} does not match: {}, {}", position,
                                joined.group, describe(joined.members.front()), describe(member)),
                    {.in = {}, .hint = "files of different runs, or events are missing"});
  }
}

// The k-th of every row, at each rank's own time.
std::vector<JoinedCollective> pair_up(std::span<const Capture> captures, JoinedRanks& joined) {
  std::map<std::string, std::vector<std::pair<std::size_t, Row>>> by_key;
  for (std::size_t c = 0; c < captures.size(); ++c) {
    for (auto& [key, row] : rows_of(captures[c])) by_key[key].emplace_back(c, std::move(row));
  }
  std::vector<JoinedCollective> all;
  for (auto& [key, of_ranks] : by_key) {
    if (of_ranks.size() < 2) continue;
    keep_common(key, captures, of_ranks, joined.notes);
    const std::size_t count = of_ranks.front().second.launches.size();
    for (std::size_t k = 0; k < count; ++k) {
      JoinedCollective one;
      one.group = key;
      for (const auto& [rank, row] : of_ranks) {
        const CapturedLaunch& launch = captures[rank].launches[row.launches[k]];
        const std::int64_t epoch_ns = captures[rank].epoch_ns.value_or(0);
        one.members.push_back({static_cast<std::uint32_t>(rank), row.launches[k],
                               launch.start_ns + epoch_ns, launch.end_ns() + epoch_ns});
      }
      const auto& first = one.members.front();
      const Capture& capture = captures[first.capture];
      const CapturedLaunch& launch = capture.launches[first.launch];
      one.name = capture.kernels[index(launch.kernel)].name;
      if (const auto* collective = collective_of(capture, launch)) one.kind = collective->kind;
      expect_same_kind(captures, one, k);
      all.push_back(std::move(one));
    }
  }
  return all;
}

// What two ranks that took part in the same collectives say of their clocks.
struct ClockLink {
  std::size_t from, to;
  std::vector<std::int64_t> apart_ns;  // end of `to` less end of `from`, of each collective
};

std::vector<ClockLink> clock_links(const std::vector<JoinedCollective>& collectives) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::int64_t>> apart_ns;
  for (const JoinedCollective& one : collectives) {
    for (std::size_t m = 1; m < one.members.size(); ++m) {
      const CollectiveMember &a = one.members[m - 1], &b = one.members[m];
      apart_ns[{a.capture, b.capture}].push_back(b.end_ns - a.end_ns);
    }
  }
  std::vector<ClockLink> links;
  for (auto& [ranks, apart] : apart_ns) links.push_back({ranks.first, ranks.second, apart});
  std::ranges::stable_sort(links, std::greater{},
                           [](const ClockLink& link) { return link.apart_ns.size(); });
  return links;
}

// From rank to rank, what they share most first. Ranks that no chain of collectives joins with the
// first one keep their clocks.
void align_neighbours(JoinedRanks& joined) {
  const std::vector<ClockLink> links = clock_links(joined.collectives);
  std::vector<bool> known(joined.offset_ns.size(), false);
  for (std::size_t first = 0; first < known.size(); ++first) {
    if (known[first]) continue;
    known[first] = true;
    while (true) {
      const auto link = std::ranges::find_if(
          links, [&](const ClockLink& one) { return known[one.from] != known[one.to]; });
      if (link == links.end()) break;
      const std::int64_t apart_ns = median(link->apart_ns);
      if (known[link->from]) {
        joined.offset_ns[link->to] = joined.offset_ns[link->from] - apart_ns;
      } else {
        joined.offset_ns[link->from] = joined.offset_ns[link->to] + apart_ns;
      }
      known[link->from] = known[link->to] = true;
    }
  }
}

void shift(JoinedRanks& joined, const std::vector<std::int64_t>& by_ns) {
  for (JoinedCollective& one : joined.collectives) {
    for (CollectiveMember& member : one.members) {
      member.start_ns += by_ns[member.capture];
      member.end_ns += by_ns[member.capture];
    }
  }
}

// Neighbours first, which also serves ranks that only talk to their neighbours; then each rank
// against the middle of all, from the ends of what it took part in.
void align_clocks(std::span<const Capture> captures, JoinedRanks& joined) {
  align_neighbours(joined);
  shift(joined, joined.offset_ns);
  std::vector<std::vector<std::int64_t>> late(captures.size());
  for (const JoinedCollective& one : joined.collectives) {
    std::vector<std::int64_t> ends;
    for (const CollectiveMember& member : one.members) ends.push_back(member.end_ns);
    const std::int64_t middle = median(ends);
    for (const CollectiveMember& member : one.members)
      late[member.capture].push_back(member.end_ns - middle);
  }
  std::vector<std::int64_t> correction_ns(captures.size(), 0);
  for (std::size_t c = 0; c < captures.size(); ++c) {
    if (late[c].empty()) {
      joined.notes.push_back(fmt::format("{} shares no collective; its clock is taken as it is",
                                         rank_name(captures[c], c)));
      continue;
    }
    correction_ns[c] = -median(late[c]);
    joined.offset_ns[c] += correction_ns[c];
  }
  shift(joined, correction_ns);
  for (JoinedCollective& one : joined.collectives) {
    one.last = static_cast<std::uint32_t>(
        std::ranges::max_element(one.members, {}, &CollectiveMember::start_ns) -
        one.members.begin());
  }
}

void expect_common_ends(const JoinedRanks& joined) {
  std::size_t apart = 0;
  const JoinedCollective* worst = nullptr;
  for (const JoinedCollective& one : joined.collectives) {
    if (one.end_spread_ns() <= same_end_ns) continue;
    ++apart;
    if (worst == nullptr || one.end_spread_ns() > worst->end_spread_ns()) worst = &one;
  }
  if (static_cast<double>(apart) <= most_apart * static_cast<double>(joined.collectives.size()))
    return;
  throw DataError(
      fmt::format("joined by order, {} of {} collectives do not end together on all ranks; '{}' of "
                  "{} ends {:.3f} ms apart",
                  apart, joined.collectives.size(), printable(worst->name), worst->group,
                  1e-6 * static_cast<double>(worst->end_spread_ns())),
      {.in = {},
       .hint = "events were left out of these files, or they are of different runs; give complete "
               "captures of one step"});
}

}  // namespace

std::int64_t JoinedCollective::start_skew_ns() const {
  const auto [first, last_one] = std::ranges::minmax(members, {}, &CollectiveMember::start_ns);
  return last_one.start_ns - first.start_ns;
}

std::int64_t JoinedCollective::end_spread_ns() const {
  const auto [first, last_one] = std::ranges::minmax(members, {}, &CollectiveMember::end_ns);
  return last_one.end_ns - first.end_ns;
}

std::int64_t JoinedCollective::transfer_ns() const {
  const auto first = std::ranges::min_element(members, {}, &CollectiveMember::end_ns);
  return std::max<std::int64_t>(first->end_ns - last_start_ns(), 0);
}

JoinedRanks join_ranks(std::span<const Capture> captures) {
  JoinedRanks joined;
  joined.offset_ns.resize(captures.size(), 0);
  joined.collectives = pair_up(captures, joined);
  if (joined.collectives.empty()) {
    throw DataError("the captures share no collective",
                    {.in = {}, .hint = "ranks are joined by their collectives"});
  }
  align_clocks(captures, joined);
  expect_common_ends(joined);
  std::ranges::stable_sort(joined.collectives, {}, &JoinedCollective::last_start_ns);
  return joined;
}

}  // namespace rubato
