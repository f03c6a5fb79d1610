#include "traces/graph/capture_graph.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "traces/capture.hpp"
#include "traces/graph/rank_clocks.hpp"
#include "traces/graph/step_clocks.hpp"
#include "traces/pipeline/captured_ranks.hpp"

namespace rubato {

namespace {

// What to add to a time of a capture for the common clock.
std::int64_t shift_ns(const Capture& capture, std::int64_t offset_ns) {
  return capture.epoch_ns.value_or(0) + offset_ns;
}

// One transfer for all ranks: it begins when the last has arrived, and each departs after it.
void add_transfer(const JoinedCollective& joined, std::int64_t origin_ns,
                  const std::vector<CaptureDraft>& drafts, GraphBuilder& builder) {
  const auto seconds = [&](std::int64_t at_ns) {
    return std::max(static_cast<double>(at_ns - origin_ns) * s_per_ns, 0.0);
  };
  const auto launch_of = [&](const CollectiveMember& member) {
    return drafts[member.capture].launches()[member.launch];
  };
  const CollectiveMember& last = joined.members[joined.last];
  const DraftId transfer =
      builder.add({.kind = ActivityKind::transfer,
                   .kernel = builder[launch_of(last).begin].kernel,
                   .rank = builder[launch_of(last).begin].rank,
                   .start_s = seconds(last.start_ns),
                   .duration_s = static_cast<double>(joined.transfer_ns()) * s_per_ns});
  const double end_s = builder[transfer].end_s();
  for (const CollectiveMember& member : joined.members) {
    builder.add_arc(launch_of(member).begin, transfer, 0.0, ArcKind::collective);
    builder.add_arc(transfer, launch_of(member).end, std::max(seconds(member.end_ns) - end_s, 0.0),
                    ArcKind::collective);
  }
}

// What the file says and the graph does not know.
void note_what_is_left_out(const CaptureDraft& draft, const std::string& rank,
                           std::vector<std::string>& notes) {
  const LostCalls& lost = draft.lost_calls();
  if (lost.late > 0)
    notes.push_back(fmt::format(
        "{}{} launches begin before their host call, an error of the recorded times: these calls "
        "are ignored",
        rank, lost.late));
  if (lost.unfinished > 0)
    notes.push_back(fmt::format(
        "{}{} waits of the host end before the work that they wait for: these waits are ignored",
        rank, lost.unfinished));
  if (lost.unexplained_s > least_wait_s)
    notes.push_back(
        fmt::format("{}{} waits of the host ({:.1f} ms in all) have no recorded cause: they are "
                    "assumed to take "
                    "as long at any clock",
                    rank, lost.unexplained, ms_per_s * lost.unexplained_s));
  if (lost.ambiguous_s > least_wait_s)
    notes.push_back(fmt::format(
        "{}the file records no waits of the host: {} pauses ({:.1f} ms in all) may be waits for "
        "the "
        "GPU or the host's own work; they are taken as waits, which slower clocks make longer",
        rank, lost.ambiguous, ms_per_s * lost.ambiguous_s));
  const NamedWaits& waits = draft.named_waits();
  // Some at the beginning and the end of a capture hold nothing back: up to a tenth is usual.
  constexpr std::uint32_t usual_share = 10;
  if (waits.broken == 0 && usual_share * waits.idle <= waits.named) return;
  notes.push_back(fmt::format(
      "{}{} of {} waits of a stream for another are left out: {} where one of the two has no "
      "work, {} that the captured times do not keep",
      rank, waits.idle + waits.broken, waits.named, waits.idle, waits.broken));
}

// Where clocks cannot be aligned for the whole run: in each step, if that can be done.
std::optional<std::vector<Capture>> aligned_in_steps(std::span<const Capture> captures) {
  try {
    return aligned_by_step(captures);
  } catch (const DataError&) {
    return std::nullopt;  // the error of the whole run says more
  }
}

CaptureGraph graph_of(std::span<const Capture> captures, JoinedRanks ranks,
                      const CaptureGraphOptions& options) {
  std::int64_t origin_ns = std::numeric_limits<std::int64_t>::max();
  for (std::size_t c = 0; c < captures.size(); ++c) {
    if (captures[c].launches.empty())
      throw DataError(fmt::format("{}: no launches", printable(captures[c].name)));
    const bool timed = std::ranges::any_of(
        captures[c].launches, [](std::int64_t ns) { return ns > 0; }, &CapturedLaunch::duration_ns);
    if (!timed)
      throw DataError(fmt::format("{}: no launch has a time", printable(captures[c].name)),
                      {.in = {},
                       .hint = "what was not timed cannot be replayed; where shapes are known, "
                               "'rubato trace import FILE -o step.json' makes a trace of them"});
    const auto first =
        std::ranges::min_element(captures[c].launches, {}, &CapturedLaunch::start_ns);
    origin_ns = std::min(origin_ns, first->start_ns + shift_ns(captures[c], ranks.offset_ns[c]));
  }
  std::vector<std::vector<std::uint32_t>> splits(captures.size());
  for (const JoinedCollective& joined : ranks.collectives) {
    for (const CollectiveMember& member : joined.members)
      splits[member.capture].push_back(member.launch);
  }
  GraphBuilder builder;
  std::vector<CaptureDraft> drafts;
  std::vector<OpenArc> arcs;
  CaptureGraph result;
  for (std::size_t c = 0; c < captures.size(); ++c) {
    std::ranges::sort(splits[c]);
    result.rank_of_capture.push_back(captures[c].rank.value_or(static_cast<std::uint32_t>(c)));
    const CapturePlace place{result.rank_of_capture.back(),
                             origin_ns - shift_ns(captures[c], ranks.offset_ns[c])};
    drafts.emplace_back(captures[c], place, builder, splits[c], options);
    arcs.insert(arcs.end(), drafts.back().arcs().begin(), drafts.back().arcs().end());
    result.overlap_s += drafts.back().overlap_s();
    result.ambiguous_s += drafts.back().lost_calls().ambiguous_s;
    note_what_is_left_out(
        drafts.back(), captures.size() == 1 ? "" : rank_name(captures[c], c) + ": ", ranks.notes);
  }
  for (const JoinedMessage& one : ranks.messages) {
    arcs.push_back({drafts[one.from.capture].launches()[one.from.launch].end,
                    drafts[one.to.capture].launches()[one.to.launch].begin, ArcKind::collective,
                    false});
  }
  close_arcs(builder, arcs);
  for (const JoinedCollective& joined : ranks.collectives)
    add_transfer(joined, origin_ns, drafts, builder);

  auto built = std::move(builder).build(captures.size() == 1 ? captures.front().name : "ranks");
  for (const CaptureDraft& draft : drafts) {
    auto& ids = result.activity_of_launch.emplace_back();
    for (const DraftedLaunch& launch : draft.launches())
      ids.push_back(*built.id_of_draft[index(launch.begin)]);
  }
  result.graph = std::move(built.graph);
  result.ranks = std::move(ranks);
  return result;
}

}  // namespace

CaptureGraph capture_graph(const Capture& capture, const CaptureGraphOptions& options) {
  JoinedRanks alone{.collectives = {}, .messages = {}, .offset_ns = {0}, .notes = {}};
  try {
    alone = join_ranks({&capture, 1});
  } catch (const DataError& error) {
    alone.notes.push_back(fmt::format(
        "collectives between the GPUs of this file stay as captured, waiting included: {}",
        error.what()));
  }
  return graph_of({&capture, 1}, std::move(alone), options);
}

CaptureGraph capture_graph(std::span<const Capture> captures, const CaptureGraphOptions& options) {
  if (captures.size() == 1) return capture_graph(captures.front(), options);
  check_ranks_differ(captures);
  JoinedRanks joined;
  try {
    joined = join_ranks(captures);
  } catch (const DataError&) {
    const std::optional<std::vector<Capture>> aligned = aligned_in_steps(captures);
    if (!aligned) throw;
    joined = join_ranks(*aligned);
    joined.notes.push_back(
        fmt::format("clocks are aligned in each of {} steps apart, which then follow one another "
                    "without a pause",
                    captures.front().steps.size()));
    return graph_of(*aligned, std::move(joined), options);
  }
  return graph_of(captures, std::move(joined), options);
}

std::uint32_t last_rank(const CaptureGraph& run, const JoinedCollective& collective) {
  const CollectiveMember& last = collective.members[collective.last];
  if (run.rank_of_capture.size() > 1) return run.rank_of_capture[last.capture];
  const Activity& activity = run.graph[run.activity_of_launch[last.capture][last.launch]];
  return run.graph.gpus()[index(*run.graph.gpu_of(activity))].device;
}

}  // namespace rubato
