#include "traces/graph/rank_clocks.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
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

// What two ranks say of their clocks: how much more `to` has to be moved than `from`.
struct ClockLink {
  std::size_t from = 0, to = 0;
  std::vector<std::int64_t> move_ns = {};  // for each collective: so that it ends together
  // The range in which nothing arrives before it was sent.
  std::int64_t least_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t most_ns = std::numeric_limits<std::int64_t>::max();
  std::size_t messages = 0;

  [[nodiscard]] std::size_t shared() const { return move_ns.size() + messages; }
  [[nodiscard]] bool bounded() const {
    return least_ns > std::numeric_limits<std::int64_t>::min() &&
           most_ns < std::numeric_limits<std::int64_t>::max();
  }
};

std::vector<ClockLink> clock_links(const JoinedRanks& joined) {
  std::map<std::pair<std::size_t, std::size_t>, ClockLink> of_ranks;
  const auto link = [&](std::size_t from, std::size_t to) -> ClockLink& {
    ClockLink& one = of_ranks[{from, to}];
    one.from = from;
    one.to = to;
    return one;
  };
  for (const JoinedCollective& one : joined.collectives) {
    for (std::size_t m = 1; m < one.members.size(); ++m) {
      const CollectiveMember &a = one.members[m - 1], &b = one.members[m];
      if (a.capture != b.capture) link(a.capture, b.capture).move_ns.push_back(a.end_ns - b.end_ns);
    }
  }
  for (const JoinedMessage& one : joined.messages) {
    const std::int64_t needed_ns = one.from.end_ns - one.to.start_ns;
    ClockLink& of_pair = link(std::min(one.from.capture, one.to.capture),
                              std::max(one.from.capture, one.to.capture));
    ++of_pair.messages;
    if (one.from.capture < one.to.capture) {
      of_pair.least_ns = std::max(of_pair.least_ns, needed_ns);
    } else {
      of_pair.most_ns = std::min(of_pair.most_ns, -needed_ns);
    }
  }
  std::vector<ClockLink> links;
  for (auto& [ranks, one] : of_ranks) links.push_back(std::move(one));
  sort_down_by(links, &ClockLink::shared);
  return links;
}

// Collectives say the move: their median. Of sends and receives any move is possible that keeps
// their order: the middle one is taken.
std::int64_t move_of(std::span<const Capture> captures, const ClockLink& link) {
  if (!link.move_ns.empty()) return median(link.move_ns);
  if (!link.bounded())
    return link.most_ns < std::numeric_limits<std::int64_t>::max() ? link.most_ns : link.least_ns;
  if (link.least_ns > link.most_ns) {
    throw DataError(
        fmt::format("the clocks of {} and {} cannot be aligned: however they are moved, something "
                    "arrives {:.3f} ms before it was sent",
                    rank_name(captures[link.from], link.from),
                    rank_name(captures[link.to], link.to),
                    0.5e-6 * static_cast<double>(link.least_ns - link.most_ns)),
        {.in = {},
         .hint = "files of different runs, or time begins anew in each step: give one --step"});
  }
  return std::midpoint(link.least_ns, link.most_ns);
}

// How far clocks that were aligned between sends and receives may be off.
void note_open_clocks(const std::vector<ClockLink>& links, std::vector<std::string>& notes) {
  double most_ms = 0.0;
  std::size_t open = 0, one_sided = 0;
  for (const ClockLink& link : links) {
    if (!link.move_ns.empty()) continue;
    if (!link.bounded()) {
      ++one_sided;
      continue;
    }
    ++open;
    most_ms = std::max(most_ms, 0.5e-6 * static_cast<double>(link.most_ns - link.least_ns));
  }
  if (open > 0)
    notes.push_back(
        fmt::format("clocks of {} pairs of ranks are aligned between their sends and "
                    "receives, to +-{:.3f} ms",
                    open, most_ms));
  if (one_sided > 0)
    notes.push_back(fmt::format(
        "between {} pairs of ranks everything goes one way: their clocks are aligned as if the "
        "fastest transfer took no time",
        one_sided));
}

// From rank to rank along the link that shares most, as Prim's algorithm finds a maximum spanning
// tree. Of ranks that nothing joins with the others, the first one keeps its clock.
void align_neighbours(std::span<const Capture> captures, JoinedRanks& joined) {
  const std::vector<ClockLink> links = clock_links(joined);
  std::vector<bool> known(joined.offset_ns.size(), false);
  for (std::size_t first = 0; first < known.size(); ++first) {
    if (known[first]) continue;
    known[first] = true;
    while (true) {
      const auto link = std::ranges::find_if(
          links, [&](const ClockLink& one) { return known[one.from] != known[one.to]; });
      if (link == links.end()) break;
      const std::int64_t move_ns = move_of(captures, *link);
      if (known[link->from]) {
        joined.offset_ns[link->to] = joined.offset_ns[link->from] + move_ns;
      } else {
        joined.offset_ns[link->from] = joined.offset_ns[link->to] - move_ns;
      }
      known[link->from] = known[link->to] = true;
    }
  }
  note_open_clocks(links, joined.notes);
}

// Clocks of hosts that keep the time together differ by milliseconds. Those that differ by more are
// moved all the same, but the files may be of different times of the run: of such that name their
// steps differently that is certain.
void expect_one_time(std::span<const Capture> captures, JoinedRanks& joined) {
  constexpr std::int64_t usual_ns = 100'000'000;
  const auto names_of = [](const Capture& capture) {
    std::set<std::string> names;
    if (capture.step_source == StepSource::annotation) {
      for (const CapturedStep& step : capture.steps) names.insert(step.name);
    }
    return names;
  };
  const std::set<std::string> first = names_of(captures.front());
  for (std::size_t c = 1; c < captures.size(); ++c) {
    // One with a date and one without have nothing in common from which they could differ; nor have
    // files of sends and receives alone, whose times begin where each rank did.
    const bool dated = captures[c].epoch_ns.has_value();
    if (dated != captures.front().epoch_ns.has_value()) continue;
    if (!dated && joined.collectives.empty()) continue;
    const std::int64_t ahead_ns = joined.offset_ns[0] - joined.offset_ns[c];
    if (std::abs(ahead_ns) < usual_ns) continue;
    const std::string who =
        fmt::format("the clock of {} is {:.3f} s {} that of {}", rank_name(captures[c], c),
                    s_per_ns * static_cast<double>(std::abs(ahead_ns)),
                    ahead_ns > 0 ? "ahead of" : "behind", rank_name(captures.front(), 0));
    const std::set<std::string> own = names_of(captures[c]);
    const bool share =
        std::ranges::any_of(own, [&](const std::string& name) { return first.contains(name); });
    if (!own.empty() && !first.empty() && !share)
      throw DataError(fmt::format("{}, and they have no step in common: {} has '{}', {} has '{}'",
                                  who, rank_name(captures.front(), 0), printable(*first.begin()),
                                  rank_name(captures[c], c), printable(*own.begin())),
                      {.in = {}, .hint = "give files of the same steps of one run"});
    joined.notes.push_back(fmt::format(
        "{}: they are aligned by what they share, as if these were files of the same steps", who));
  }
}

void shift(JoinedRanks& joined, const std::vector<std::int64_t>& by_ns) {
  for (JoinedCollective& one : joined.collectives) {
    for (CollectiveMember& member : one.members) {
      member.start_ns += by_ns[member.capture];
      member.end_ns += by_ns[member.capture];
    }
  }
  for (JoinedMessage& one : joined.messages) {
    for (CollectiveMember* member : {&one.from, &one.to}) {
      member->start_ns += by_ns[member->capture];
      member->end_ns += by_ns[member->capture];
    }
  }
}

}  // namespace

void align_clocks(std::span<const Capture> captures, JoinedRanks& joined) {
  align_neighbours(captures, joined);
  shift(joined, joined.offset_ns);
  std::vector<std::vector<std::int64_t>> late(captures.size());
  for (const JoinedCollective& one : joined.collectives) {
    std::vector<std::int64_t> ends;
    for (const CollectiveMember& member : one.members) ends.push_back(member.end_ns);
    const std::int64_t middle = median(ends);
    for (const CollectiveMember& member : one.members)
      late[member.capture].push_back(member.end_ns - middle);
  }
  std::set<std::size_t> sends;
  for (const JoinedMessage& one : joined.messages) {
    sends.insert(one.from.capture);
    sends.insert(one.to.capture);
  }
  std::vector<std::int64_t> correction_ns(captures.size(), 0);
  for (std::size_t c = 0; c < captures.size(); ++c) {
    if (late[c].empty()) {
      if (sends.contains(c)) continue;
      joined.notes.push_back(fmt::format("{} shares no collective; its clock is taken as it is",
                                         rank_name(captures[c], c)));
      continue;
    }
    correction_ns[c] = -median(late[c]);
    joined.offset_ns[c] += correction_ns[c];
  }
  shift(joined, correction_ns);
  expect_one_time(captures, joined);
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
  if (worst == nullptr ||
      static_cast<double>(apart) <= most_apart * static_cast<double>(joined.collectives.size()))
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

std::string rank_name(const Capture& capture, std::size_t position) {
  return capture.rank ? fmt::format("rank {}", *capture.rank)
                      : fmt::format("file {} ('{}')", position, printable(capture.name));
}

}  // namespace rubato
