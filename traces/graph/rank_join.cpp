#include "traces/graph/rank_join.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "traces/graph/rank_clocks.hpp"
#include "traces/pipeline/captured_ranks.hpp"

namespace rubato {

namespace {

// What takes part in collectives: a GPU of a capture.
struct Participant {
  std::uint32_t capture = 0;
  std::uint32_t device = 0;
};

// Collectives of one participant in the order of one group or stream.
struct RankRow {
  Participant who;
  std::vector<std::uint32_t> launches = {};
  std::vector<std::optional<std::uint64_t>> sequence = {};
};

// Launches that belong together: of a group, of a pair of ranks or of a stream of collectives.
struct Circle {
  std::vector<RankRow> rows = {};                         // by participant
  std::optional<std::uint32_t> size = {};                 // participants, given or not
  std::optional<std::array<std::uint32_t, 2>> pair = {};  // ranks: from, to
  std::vector<std::uint32_t> ranks = {};                  // of the group; empty if not known
};
using Circles = std::map<std::string, Circle>;

const CapturedCollective* collective_of(const Capture& capture, const CapturedLaunch& launch) {
  return launch.collective ? &capture.collectives[*launch.collective] : nullptr;
}

constexpr std::size_t all_ranks = std::numeric_limits<std::size_t>::max();

// "rank 3", "ranks 0 to 7, 12", "ranks 0, 2 and 6 more". At most `most` ranks are named, but a row
// such as 0 to 7 is named whole.
std::string ranks_text(const std::vector<std::uint32_t>& ranks, std::size_t most) {
  constexpr std::size_t in_a_row = 3;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  std::size_t i = 0;
  while (i < ranks.size() && i < most) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{} {}", i == 0 ? "" : ",", ranks[i]);
    if (end - i < in_a_row) {
      ++i;
      continue;
    }
    text += fmt::format(" to {}", ranks[end - 1]);
    i = end;
  }
  return i < ranks.size() ? text + fmt::format(" and {} more", ranks.size() - i) : text;
}

std::string name_of(std::span<const Capture> captures, const Participant& who) {
  const Capture& capture = captures[who.capture];
  if (capture.devices.size() < 2) return rank_name(capture, who.capture);
  const std::string device = fmt::format("GPU {}", capture.devices[who.device].id);
  return captures.size() < 2 ? device
                             : fmt::format("{} {}", rank_name(capture, who.capture), device);
}

// Sender and receiver. Files name the other side only: the own one is the capture's rank.
std::optional<std::array<std::uint32_t, 2>> pair_of(const Capture& capture,
                                                    const CapturedCollective& collective) {
  if (collective.kind != CollectiveKind::send_recv) return std::nullopt;
  const auto from = collective.source_rank ? collective.source_rank : capture.rank;
  const auto to = collective.target_rank ? collective.target_rank : capture.rank;
  if (!from || !to || *from == *to) return std::nullopt;
  return std::array{*from, *to};
}

// Where the file names no group: the position of the stream among those that carry collectives.
Circle& circle_of(const Capture& capture, const CapturedLaunch& launch,
                  std::map<std::uint32_t, std::size_t>& streams, Circles& circles) {
  const CapturedCollective* collective = collective_of(capture, launch);
  if (collective == nullptr || !collective->group) {
    const auto place = streams.emplace(launch.stream, streams.size()).first->second;
    return circles[fmt::format("stream {}", place)];
  }
  const CaptureGroup& group = capture.groups[*collective->group];
  std::string key = "group " + group.name;
  if (!group.ranks.empty()) key += fmt::format(" ({})", ranks_text(group.ranks, all_ranks));
  const auto pair = pair_of(capture, *collective);
  if (pair) key += fmt::format(" from {} to {}", (*pair)[0], (*pair)[1]);
  Circle& circle = circles[key];
  circle.pair = pair;
  circle.ranks = pair ? std::vector(pair->begin(), pair->end()) : group.ranks;
  circle.size = pair ? 2U : group.size;
  return circle;
}

void add_rows(const Capture& capture, const Participant& who, Circles& circles) {
  std::map<std::uint32_t, std::size_t> streams;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < capture.launches.size(); ++i) {
    const CapturedLaunch& launch = capture.launches[i];
    if (capture.streams[launch.stream].device == who.device &&
        capture.kernels[index(launch.kernel)].kind == KernelClass::communication)
      order.push_back(i);
  }
  sort_by(order, [&](std::uint32_t i) { return capture.launches[i].start_ns; });
  for (const std::uint32_t i : order) {
    const CapturedLaunch& launch = capture.launches[i];
    auto& rows = circle_of(capture, launch, streams, circles).rows;
    if (rows.empty() || rows.back().who.capture != who.capture ||
        rows.back().who.device != who.device)
      rows.push_back({who});
    const CapturedCollective* collective = collective_of(capture, launch);
    rows.back().launches.push_back(i);
    rows.back().sequence.push_back(collective ? collective->sequence : std::nullopt);
  }
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

// Leaves the collectives that every row has, by sequence number.
// @return how many were left out
std::size_t keep_numbered(std::vector<RankRow>& rows) {
  std::vector<std::map<std::uint64_t, std::size_t>> times;
  for (const RankRow& row : rows) {
    times.emplace_back();
    for (const auto& number : row.sequence) ++times.back()[*number];
  }
  std::size_t dropped = 0;
  for (RankRow& row : rows) {
    RankRow kept{row.who};
    for (std::size_t i = 0; i < row.launches.size(); ++i) {
      if (!is_common(times, *row.sequence[i])) continue;
      kept.launches.push_back(row.launches[i]);
      kept.sequence.push_back(row.sequence[i]);
    }
    dropped += row.launches.size() - kept.launches.size();
    row = std::move(kept);
  }
  return dropped;
}

// Leaves what every row has; without sequence numbers counts must agree. Of sends and receives the
// numbers are not used where counts agree: a rank numbers all of its own in one sequence, so both
// sides of one have different numbers.
void keep_common(std::string_view key, std::span<const Capture> captures, Circle& circle,
                 std::vector<std::string>& notes) {
  const auto numbered = [](const RankRow& row) {
    return std::ranges::all_of(row.sequence, [](const auto& s) { return s.has_value(); });
  };
  const std::size_t count = circle.rows.front().launches.size();
  const bool equal = std::ranges::all_of(
      circle.rows, [&](const RankRow& row) { return row.launches.size() == count; });
  if (std::ranges::all_of(circle.rows, numbered) && !(equal && circle.pair)) {
    if (const std::size_t dropped = keep_numbered(circle.rows); dropped > 0)
      notes.push_back(fmt::format("{} collectives of {} are not in every file and stay as captured",
                                  dropped, key));
    return;
  }
  if (equal) return;
  std::string counts;
  for (const RankRow& row : circle.rows)
    counts += fmt::format("{}{} has {}", counts.empty() ? "" : ", ", name_of(captures, row.who),
                          row.launches.size());
  throw DataError(fmt::format("collectives of {} do not match: {}", key, counts),
                  {.in = {}, .hint = "give files of the same step of one run, or one --step"});
}

// What is joined as one collective must be of one kind, and an all-reduce of one size.
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
    const Capture& capture = captures[member.capture];
    const std::uint32_t device = capture.streams[capture.launches[member.launch].stream].device;
    return fmt::format("{}{} on {}", name_of(said.kind),
                       said.bytes ? fmt::format(" of {} bytes", *said.bytes) : "",
                       name_of(captures, Participant{member.capture, device}));
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

CollectiveMember member_of(std::span<const Capture> captures, const RankRow& row, std::size_t k) {
  const Capture& capture = captures[row.who.capture];
  const CapturedLaunch& launch = capture.launches[row.launches[k]];
  const std::int64_t epoch_ns = capture.epoch_ns.value_or(0);
  return {row.who.capture, row.launches[k], launch.start_ns + epoch_ns, launch.end_ns() + epoch_ns};
}

// The row of the rank that sends, if all sends and receives are moments, without durations.
const RankRow* sender_of_moments(std::span<const Capture> captures, const Circle& circle) {
  if (!circle.pair || circle.rows.size() != 2) return nullptr;
  for (const RankRow& row : circle.rows) {
    const Capture& capture = captures[row.who.capture];
    for (const std::uint32_t i : row.launches) {
      if (capture.launches[i].duration_ns > 0) return nullptr;
    }
  }
  const bool first = captures[circle.rows[0].who.capture].rank == (*circle.pair)[0];
  return &circle.rows[first ? 0 : 1];
}

void pair_up(const std::string& key, std::span<const Capture> captures, const Circle& circle,
             JoinedRanks& joined) {
  const RankRow* sender = sender_of_moments(captures, circle);
  for (std::size_t k = 0; k < circle.rows.front().launches.size(); ++k) {
    if (sender != nullptr) {
      const RankRow& receiver = circle.rows[sender == &circle.rows[0] ? 1 : 0];
      joined.messages.push_back(
          {key, member_of(captures, *sender, k), member_of(captures, receiver, k)});
      continue;
    }
    JoinedCollective one;
    one.group = key;
    for (const RankRow& row : circle.rows) one.members.push_back(member_of(captures, row, k));
    const auto& first = one.members.front();
    const Capture& capture = captures[first.capture];
    const CapturedLaunch& launch = capture.launches[first.launch];
    one.name = capture.kernels[index(launch.kernel)].name;
    if (const auto* collective = collective_of(capture, launch)) one.kind = collective->kind;
    expect_same_kind(captures, one, k);
    joined.collectives.push_back(std::move(one));
  }
}

void expect_one_run(std::span<const Capture> captures) {
  const Capture* first = nullptr;
  std::size_t first_at = 0;
  for (std::size_t c = 0; c < captures.size(); ++c) {
    if (!captures[c].world_size) continue;
    if (first == nullptr) {
      first = &captures[c];
      first_at = c;
    }
    if (captures[c].world_size == first->world_size) continue;
    refuse_interleaved_pass_times(captures);
    throw DataError(
        fmt::format("{} is of a run of {} ranks, {} of one of {}", rank_name(*first, first_at),
                    *first->world_size, rank_name(captures[c], c), *captures[c].world_size),
        {.in = {}, .hint = "give files of one run"});
  }
}

// Ranks of the run whose captures were not given, and the note about them.
class MissingRanks {
 public:
  explicit MissingRanks(std::span<const Capture> captures) : captures_(captures) {
    for (const Capture& capture : captures) {
      if (capture.rank) given_.insert(*capture.rank);
      // A file of several GPUs has one number, and the group one for each of them.
      if (capture.devices.size() > 1) numbers_known_ = false;
    }
    const bool numbered = numbers_known_ && given_.size() == captures.size();
    const auto world_size = captures.front().world_size;  // that of all, see expect_one_run
    if (numbered && world_size && given_.size() < *world_size) world_size_ = world_size;
  }

  void look_at(const Circle& circle) {
    const std::size_t there = circle.rows.size();
    // Older files do not say who is in a group. Of a run that is not all there, anybody may be.
    const bool assumed = !circle.size && !circle.pair && world_size_;
    const std::optional<std::uint32_t> size = assumed ? world_size_ : circle.size;
    if (!size || *size <= there) return;
    most_missing_ = std::max(most_missing_, *size - static_cast<std::uint32_t>(there));
    for (const std::uint32_t rank : circle.ranks) {
      if (numbers_known_ && !given_.contains(rank)) missing_.insert(rank);
    }
    for (std::uint32_t rank = 0; assumed && rank < *size; ++rank) {
      if (!given_.contains(rank)) missing_.insert(rank);
    }
    assumed_ = assumed_ || assumed;
    std::size_t& counted = there >= 2 ? stood_in_for_ : circle.pair ? lone_messages_ : alone_;
    for (const RankRow& row : circle.rows) counted += row.launches.size();
    if (there >= 2) stood_in_for_ -= circle.rows.front().launches.size() * (there - 1);
  }

  void note(std::vector<std::string>& notes) const {
    if (most_missing_ == 0) return;
    const std::vector<std::uint32_t> ranks(missing_.begin(), missing_.end());
    constexpr std::size_t most_named = 8;
    std::string text = ranks.empty() ? fmt::format("{} or more ranks were not given", most_missing_)
                                     : fmt::format("{} {} not given", ranks_text(ranks, most_named),
                                                   ranks.size() == 1 ? "was" : "were");
    const bool lone = captures_.size() == 1 && captures_.front().devices.size() == 1;
    text += fmt::format("; energies and plans are of {}",
                        lone ? rank_name(captures_.front(), 0) + " alone" : "the others");
    if (stood_in_for_ > 0)
      text += fmt::format(
          "; in {} collectives the last of those given stands in for them: waiting for others "
          "counts "
          "as transfer, which no clock changes",
          stood_in_for_);
    if (alone_ > 0)
      text += fmt::format("; {} collectives with {}them stay as captured, waiting included", alone_,
                          lone ? "" : "none but ");
    if (lone_messages_ > 0)
      text += fmt::format("; {} sends and receives with them stay as captured", lone_messages_);
    if (assumed_) text += "; groups are not in the files: all ranks are taken to be in them";
    notes.push_back(std::move(text));
  }

 private:
  std::span<const Capture> captures_;
  std::set<std::uint32_t> given_, missing_;
  bool numbers_known_ = true, assumed_ = false;
  std::optional<std::uint32_t> world_size_;  // of a run that is not all there
  std::uint32_t most_missing_ = 0;
  std::size_t stood_in_for_ = 0, alone_ = 0, lone_messages_ = 0;
};

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
  expect_one_run(captures);
  JoinedRanks joined;
  joined.offset_ns.resize(captures.size(), 0);
  Circles circles;
  for (std::uint32_t c = 0; c < captures.size(); ++c) {
    for (std::uint32_t d = 0; d < captures[c].devices.size(); ++d)
      add_rows(captures[c], {c, d}, circles);
  }
  MissingRanks missing(captures);
  for (auto& [key, circle] : circles) {
    missing.look_at(circle);
    if (circle.rows.size() < 2) continue;
    keep_common(key, captures, circle, joined.notes);
    pair_up(key, captures, circle, joined);
  }
  missing.note(joined.notes);
  if (joined.collectives.empty() && joined.messages.empty()) {
    if (captures.size() == 1) return joined;
    throw DataError("the captures share no collective",
                    {.in = {}, .hint = "ranks are joined by their collectives"});
  }
  align_clocks(captures, joined);
  expect_common_ends(joined);
  sort_by(joined.collectives, &JoinedCollective::last_start_ns);
  std::ranges::stable_sort(joined.messages, {},
                           [](const JoinedMessage& one) { return one.from.start_ns; });
  return joined;
}

}  // namespace rubato
