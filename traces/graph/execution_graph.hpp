#pragma once
// What waits for what in a run: a directed acyclic graph of activities on GPUs, hosts and links,
// and of arcs between them. Example: a launch waits for the one before it on its stream, and for
// the host call that launched it; so two arcs lead to it. This one structure is replayed and
// planned on. Start here. graph_builder.hpp makes graphs, capture_graph.hpp makes them from
// captured runs, ordered_graph.hpp from traces and schedules. docs/graphs.md.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "traces/trace.hpp"

namespace rubato {

using ActivityId = Id<struct ActivityTag>;  ///< into ExecutionGraph::activities()
using GpuId = Id<struct GraphGpuTag>;       ///< into ExecutionGraph::gpus()

/// One GPU: its streams share one core and one memory clock.
struct GraphGpu {
  std::uint32_t rank = 0;    ///< of the process it belongs to
  std::uint32_t device = 0;  ///< position in the capture of that rank
  std::string name;          ///< marketing name, empty if unknown

  friend bool operator==(const GraphGpu&, const GraphGpu&) = default;
};

/// A queue of a GPU: its launches run one after the other.
struct GraphStream {
  GpuId gpu;
  std::int64_t id = 0;    ///< as recorded
  std::string name = {};  ///< where it was not recorded: what it stands for

  friend bool operator==(const GraphStream&, const GraphStream&) = default;
};

/// What an activity is. A collective of several ranks is an arrival on each, one transfer that
/// begins when the last rank has arrived, and a departure on each. Between its arrival and its
/// departure a rank's collective kernel holds its SMs, waiting or copying.
enum class ActivityKind : std::uint8_t { origin, host, launch, arrival, transfer, departure };

/// One activity. `origin`, `host`, `arrival` and `departure` take no time of their own.
struct Activity {
  ActivityKind kind = ActivityKind::host;
  Pass pass = Pass::unknown;
  std::optional<std::uint32_t> stream = {};  ///< into streams(): launch, arrival, departure
  KernelId kernel = {};    ///< into kernels(): launch, arrival, transfer, departure
  std::uint32_t rank = 0;  ///< whose capture; of a transfer the rank that came last
  std::optional<std::uint32_t> launch = {};  ///< into the capture's launches: launch, arrival
  std::optional<std::uint32_t> step = {};    ///< into the capture's steps: of a launch, if known
  double start_s = 0.0;                      ///< as captured, since the origin, >= 0
  double duration_s = 0.0;                   ///< as captured, >= 0

  [[nodiscard]] double end_s() const noexcept { return start_s + duration_s; }
};

/// Why an activity waits for another one.
enum class ArcKind : std::uint8_t {
  release,       ///< the origin: the activity starts no earlier than a time
  stream_order,  ///< the launch before it on its stream
  launch_call,   ///< the host call that launched it
  host_order,    ///< the host call before it
  event,         ///< a launch on another stream, by an event
  sync,          ///< a launch that a host call waited for
  collective     ///< arrival to transfer, transfer to departure; a send to its receive
};
inline constexpr std::size_t arc_kinds = 7;
[[nodiscard]] std::string_view name_of(ArcKind value) noexcept;

/// An activity starts no earlier than `lag_s` after `from` has ended.
struct GraphArc {
  ActivityId from;
  double lag_s = 0.0;  ///< >= 0
  ArcKind kind = ArcKind::release;
  bool inferred = false;  ///< by a rule, not read from the file
};

/// Arcs of a graph by kind, read from files and inferred.
struct ArcCounts {
  std::array<std::uint64_t, arc_kinds> read{}, inferred{};
};

/// Immutable and acyclic: activities are in topological order, so that every arc points forward.
/// Activity 0 is the origin, from which every other one can be reached.
class ExecutionGraph {
 public:
  ExecutionGraph() = default;  ///< nothing in it

  [[nodiscard]] std::size_t size() const noexcept { return activities_.size(); }
  [[nodiscard]] const std::vector<Activity>& activities() const noexcept { return activities_; }
  [[nodiscard]] const Activity& operator[](ActivityId id) const { return activities_[index(id)]; }
  [[nodiscard]] const std::vector<GraphGpu>& gpus() const noexcept { return gpus_; }
  [[nodiscard]] const std::vector<GraphStream>& streams() const noexcept { return streams_; }
  [[nodiscard]] const std::vector<Kernel>& kernels() const noexcept { return kernels_; }

  /// The GPU of an activity that has a stream.
  [[nodiscard]] std::optional<GpuId> gpu_of(const Activity& activity) const {
    if (!activity.stream) return std::nullopt;
    return streams_[*activity.stream].gpu;
  }

  /// What an activity waits for.
  [[nodiscard]] std::span<const GraphArc> arcs_into(ActivityId to) const {
    return {arcs_.data() + first_in_[index(to)], arcs_.data() + first_in_[index(to) + 1]};
  }
  [[nodiscard]] std::size_t arcs() const noexcept { return arcs_.size(); }
  [[nodiscard]] ArcCounts count_arcs() const;

  /// The same graph where the host's own time between its calls is `factor` times as long.
  /// @param factor  >= 0
  [[nodiscard]] ExecutionGraph with_host_time(double factor) const;

  /// Last end as captured: the makespan, counted from the origin.
  [[nodiscard]] double captured_span_s() const noexcept { return captured_span_s_; }

 private:
  friend class GraphBuilder;
  friend class OrderedGraph;
  std::vector<Activity> activities_;
  std::vector<GraphGpu> gpus_;
  std::vector<GraphStream> streams_;
  std::vector<Kernel> kernels_;
  std::vector<std::uint32_t> first_in_;  // shape [activities + 1]
  std::vector<GraphArc> arcs_;           // by the activity that waits
  double captured_span_s_ = 0.0;
};

/// The stream of each GPU that computes longest as captured, shape [gpus].
[[nodiscard]] std::vector<std::uint32_t> main_streams(const ExecutionGraph& graph);

/// Start of every activity when each takes `duration_s` and nothing slows anything else down: the
/// length of the longest path from the origin.
/// @param duration_s  shape [activities], each >= 0
/// @param start_s     shape [activities], written
/// @return last end, s: the makespan
double earliest_starts(const ExecutionGraph& graph, std::span<const double> duration_s,
                       std::span<double> start_s);

/// The factor on the host's own time with which a run of captured durations takes `span_s`: what a
/// profiler slowed the host down by, undone.
/// @param span_s  > 0
/// @return 0 to 1; 1 where the run takes no longer as captured; nothing where it does without any
///         time of the host
[[nodiscard]] std::optional<double> host_time_factor(const ExecutionGraph& graph, double span_s);

}  // namespace rubato
