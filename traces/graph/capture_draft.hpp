#pragma once
// One captured run as part of an execution graph under construction: its launches, its host calls
// and what they waited for. Rules and their limits: docs/graphs.md, section 2.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/capture.hpp"
#include "traces/graph/graph_builder.hpp"

namespace rubato {

/// Whether the call of a launch is known. One that begins after its own launch, where the clocks
/// were aligned (import/device_clock.hpp), is not believed.
[[nodiscard]] inline bool call_known(const CapturedLaunch& launch) {
  return launch.launch_ns && *launch.launch_ns <= launch.start_ns;
}

/// Which arcs to believe.
struct CaptureGraphOptions {
  /// False: what the file says of events and waits is not looked at. They are inferred, as for
  /// files that say nothing. For tests of the inference.
  bool read_waits = true;
  /// False: in files without waits a pause that may be either is the host's own work, not a wait.
  bool pauses_wait = true;
};

/// A launch as one or two activities: a collective of several ranks arrives and departs.
struct DraftedLaunch {
  DraftId begin, end;
};

/// An arc whose lag is still open.
struct OpenArc {
  DraftId from, to;
  ArcKind kind = ArcKind::stream_order;
  bool inferred = false;
};

/// Waits of a stream for another that the file names, and those of them that became no arc.
struct NamedWaits {
  std::uint32_t named = 0;   ///< all of them
  std::uint32_t idle = 0;    ///< nothing was launched before the event, or after the wait
  std::uint32_t broken = 0;  ///< what should have waited began before
};

/// Waits of the host, and calls of launches, that became no arc.
struct LostCalls {
  std::uint32_t late = 0;         ///< calls that begin after what they launched
  std::uint32_t unfinished = 0;   ///< waits that ended before what they should have waited for
  std::uint32_t unexplained = 0;  ///< long waits for nothing that is known
  double unexplained_s = 0.0;     ///< time in them, which the host is taken to have needed itself
  /// Of files without waits: pauses that are taken as waits and may be the host's own time. Those
  /// that end right after the GPU's work are no question.
  std::uint32_t ambiguous = 0;
  double ambiguous_s = 0.0;  ///< from their begin to the end of the GPU's work
};

/// Where a capture lies in a graph.
struct CapturePlace {
  std::uint32_t rank = 0;
  std::int64_t origin_ns = 0;  ///< time 0 of the graph, on the capture's own clock
};

/// A wait that is over returns within this of the end of what it was for.
inline constexpr std::int64_t unseen_sync_window_ns = 50'000;

/// Adds the launches and host calls of one capture.
class CaptureDraft {
 public:
  /// @param splits  launches that become arrival and departure, ascending
  CaptureDraft(const Capture& capture, const CapturePlace& place, GraphBuilder& builder,
               const std::vector<std::uint32_t>& splits, const CaptureGraphOptions& options);

  [[nodiscard]] const std::vector<DraftedLaunch>& launches() const noexcept { return launches_; }
  [[nodiscard]] const std::vector<OpenArc>& arcs() const noexcept { return arcs_; }

  [[nodiscard]] const NamedWaits& named_waits() const noexcept { return named_waits_; }
  [[nodiscard]] const LostCalls& lost_calls() const noexcept { return lost_; }

  /// How long launches of one stream overlapped in the capture, s, summed.
  [[nodiscard]] double overlap_s() const noexcept { return overlap_s_; }

 private:
  void add_launches(const std::vector<std::uint32_t>& splits);
  void add_stream_order();
  void add_host_calls();
  void add_calls_of_launches_alone();
  bool add_unseen_wait(DraftId moment, std::int64_t call_ns, std::int64_t before_ns,
                       std::optional<std::uint32_t> last);
  void keep_later(std::optional<std::uint32_t>& last, std::uint32_t launch) const;
  // Launches, each with whether it was inferred.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, bool>> awaited_of_device(
      std::uint32_t call) const;
  void add_sync(std::uint32_t call, DraftId begin, DraftId end);
  void add_waits();
  bool add_wait(std::uint32_t call);
  void add_waits_by_time();

  [[nodiscard]] double seconds(std::int64_t at_ns) const;
  [[nodiscard]] DraftId add_host_moment(std::int64_t at_ns);
  void connect(DraftId from, DraftId to, ArcKind kind, bool inferred);
  // The last launch that a stream was given before a moment. One whose call the file does not have
  // was called no later than the next of its stream and no earlier than the one before, perhaps
  // before the recording: it counts if it was over by `over_by_ns`. So do the others where `over`.
  [[nodiscard]] std::optional<std::uint32_t> last_launch_called(std::uint32_t stream,
                                                                std::int64_t before_ns,
                                                                std::int64_t over_by_ns,
                                                                bool over = false) const;
  [[nodiscard]] std::optional<std::uint32_t> first_launch_called(std::uint32_t stream,
                                                                 std::int64_t from_ns) const;
  [[nodiscard]] std::optional<std::uint32_t> neighbour_in_thread(std::uint32_t call,
                                                                 bool before) const;
  [[nodiscard]] bool is_of_process(std::uint32_t launch, std::int64_t process) const;
  [[nodiscard]] bool may_wait(std::uint32_t launch, std::optional<std::uint32_t> before) const;
  [[nodiscard]] bool is_collective(std::uint32_t launch) const;

  const Capture& capture_;
  CapturePlace place_;
  GraphBuilder& builder_;
  CaptureGraphOptions options_;
  std::vector<DraftedLaunch> launches_;  // shape [launches]
  std::vector<OpenArc> arcs_;
  std::vector<std::vector<std::uint32_t>> by_stream_;  // launches in order of start
  std::vector<std::vector<std::uint32_t>> called_on_;  // per stream, in order of their call
  std::vector<std::int64_t> called_ns_;  // of launches: no call earlier than this; as known
  std::vector<std::optional<std::int64_t>> process_of_stream_;
  std::vector<std::vector<std::uint32_t>> launches_of_call_;
  std::vector<bool> has_event_;            // of launches: an event was found for it
  bool host_waits_ = false;                // the file holds calls in which the host waits
  bool names_waits_ = false;               // the file holds calls that make streams wait
  std::vector<std::uint32_t> open_waits_;  // such calls whose launches were not found, ascending
  NamedWaits named_waits_;
  LostCalls lost_;
  double overlap_s_ = 0.0;
};

/// Gives every arc its lag. The slack of an arc is the captured time from the end of `from` to the
/// start of `to`. The arc with the least slack into an activity decided its start. It gets its
/// whole slack, so that the captured durations give the captured starts. Arcs of host order do so
/// too: calls of a thread keep their distances. Every other arc gets what is usual for its kind,
/// the median over the deciding arcs (100 us at most), or its slack where that is less.
void close_arcs(GraphBuilder& builder, const std::vector<OpenArc>& arcs);

}  // namespace rubato
