#include "sim/timeline/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// "rank 1 GPU 0"; without the rank where all GPUs of the graph are of one.
std::string name_of_gpu(const ExecutionGraph& graph, GpuId id) {
  const GraphGpu& gpu = graph.gpus()[index(id)];
  const bool one_rank = std::ranges::all_of(
      graph.gpus(), [&](const GraphGpu& other) { return other.rank == gpu.rank; });
  return one_rank ? fmt::format("GPU {}", gpu.device)
                  : fmt::format("rank {} GPU {}", gpu.rank, gpu.device);
}

// When activities ran, and their energies; without energies: a run as captured.
struct Times {
  std::span<const double> start_s, end_s, energy_j;  ///< shape [activities]
};

class RunWriter {
 public:
  RunWriter(ChromeProcess out, const ExecutionGraph& graph, const GraphTrack* track = nullptr)
      : out_(out),
        graph_(graph),
        track_(track),
        first_row_(track != nullptr && track->passes_and_changes ? 2 : 1),
        arrival_of_stream_(graph.streams().size(), 0) {
    for (std::size_t s = 0; s < graph.streams().size(); ++s) {
      const GraphStream& stream = graph.streams()[s];
      out_.row(row_of(s),
               stream.name.empty()
                   ? fmt::format("{} stream {}", name_of_gpu(graph, stream.gpu), stream.id)
                   : stream.name);
    }
    for (const Activity& activity : graph.activities()) {
      if (activity.kind == ActivityKind::host && !std::ranges::count(hosts_, activity.rank))
        hosts_.push_back(activity.rank);
    }
    for (const std::uint32_t rank : hosts_)
      out_.row(row_of_host(rank), fmt::format("rank {} host", rank));
  }

  void activities(const Times& times) {
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      const Activity& activity = graph_.activities()[i];
      switch (activity.kind) {
        case ActivityKind::launch: slice(times, i, i, Json::object()); break;
        case ActivityKind::arrival: arrival_of_stream_[*activity.stream] = i; break;
        case ActivityKind::departure: collective(times, i); break;
        case ActivityKind::host:
          out_.slice(row_of_host(activity.rank), "host", "call", times.start_s[i], times.start_s[i],
                     Json::object());
          break;
        case ActivityKind::origin:
        case ActivityKind::transfer: break;
      }
    }
    flows(times);
  }

  // Counters of all GPUs. Phases that last no time are left out.
  void counters(const GpuSpec& spec) {
    const GraphRun& run = *track_->run;
    const ClockGrid& grid = *track_->grid;
    if (run.phases.empty()) return;
    std::vector<const GpuPhase*> begun(graph_.gpus().size(), nullptr);
    const auto tell = [&](const GpuPhase& phase) {
      counters(phase.gpu, phase.start_s, phase.power_w, phase.core_mhz,
               spec.mem_states[index(grid[phase.clock].mem)].mem_mhz);
    };
    for (const GpuPhase& phase : run.phases) {
      const GpuPhase*& before = begun[index(phase.gpu)];
      if (before != nullptr && before->start_s < phase.start_s) tell(*before);
      before = &phase;
    }
    for (const GpuPhase* last : begun) {
      if (last != nullptr && last->start_s < run.span_s) tell(*last);
    }
    for (std::size_t g = 0; g < graph_.gpus().size(); ++g)
      counters(id_at<GpuId>(g), run.span_s, 0.0, 0.0, 0.0);
  }

  // The power of all GPUs together.
  void sum_of_power() {
    const GraphRun& run = *track_->run;
    std::vector<double> power_w(graph_.gpus().size(), 0.0);
    for (std::size_t i = 0; i < run.phases.size(); ++i) {
      const GpuPhase& phase = run.phases[i];
      power_w[index(phase.gpu)] = phase.power_w;
      if (phase.start_s >= run.span_s) break;
      if (i + 1 < run.phases.size() && run.phases[i + 1].start_s == phase.start_s) continue;
      out_.counter("power_w", "W", phase.start_s, sum(power_w));
    }
    out_.counter("power_w", "W", run.span_s, 0.0);
  }

  // A slice for each row of launches of one pass, and one for each change of clock from request to
  // effect, as far as it lies in this run.
  void passes_and_changes() {
    constexpr int passes = 1;
    const int changes = row_of(graph_.streams().size());
    const GraphRun& run = *track_->run;
    out_.row(passes, "passes");
    out_.row(changes, "clock switches");
    for (std::size_t i = 1, first = 1; i < graph_.size(); ++i) {
      const Pass pass = graph_.activities()[first].pass;
      if (i + 1 < graph_.size() && graph_.activities()[i + 1].pass == pass) continue;
      const double from_s = run.launches[first].begin_s;
      out_.slice(passes, "pass", name_of(pass), from_s, run.end_s[i], Json::object());
      first = i + 1;
    }
    for (const ClockChange& change : run.changes) {
      const double from_s = std::max(change.request_s, 0.0);
      if (change.effect_s <= from_s) continue;
      out_.slice(changes, "clock switch", track_->grid->label(change.to), from_s, change.effect_s,
                 {{"stall_us", 1e6 * (change.effect_s - change.stall_from_s)}});
    }
  }

  void power(const PowerTrack& power) {
    for (std::size_t i = 0; i < power.at_s.size(); ++i)
      out_.counter("power_w", "W", power.at_s[i], power.power_w[i]);
  }

 private:
  [[nodiscard]] int row_of(std::size_t stream) const {
    return static_cast<int>(stream) + first_row_;
  }
  [[nodiscard]] int row_of(const Activity& activity) const {
    return activity.stream ? row_of(*activity.stream) : row_of_host(activity.rank);
  }
  [[nodiscard]] int row_of_host(std::uint32_t rank) const {
    return row_of(graph_.streams().size()) +
           static_cast<int>(std::ranges::find(hosts_, rank) - hosts_.begin());
  }

  // Why slices of different rows wait for each other. Of a collective: from the rank that came last
  // to every other one.
  void flows(const Times& times) {
    std::vector<std::size_t> slice_of(graph_.size(), 0);  // its activity; of a transfer the last
    std::vector<std::size_t> arrival_of_stream(graph_.streams().size(), 0);
    for (std::size_t i = 0; i < graph_.size(); ++i) {
      const Activity& activity = graph_.activities()[i];
      slice_of[i] = i;
      if (activity.kind == ActivityKind::arrival) arrival_of_stream[*activity.stream] = i;
      if (activity.kind == ActivityKind::departure)
        slice_of[i] = arrival_of_stream[*activity.stream];
      for (const GraphArc& arc : graph_.arcs_into(id_at<ActivityId>(i))) {
        const std::size_t from = index(arc.from);
        if (activity.kind == ActivityKind::transfer) {
          if (slice_of[i] == i || times.start_s[from] > times.start_s[slice_of[i]])
            slice_of[i] = from;
          continue;
        }
        const bool joined = graph_[arc.from].kind == ActivityKind::transfer;
        flow(times, arc, slice_of[from], {slice_of[i], i}, joined ? from : slice_of[from]);
      }
    }
  }

  // @param to       first and last activity of the slice that waits
  // @param from_at  when `from` was reached: itself, or the transfer that it began
  void flow(const Times& times, const GraphArc& arc, std::size_t from,
            std::pair<std::size_t, std::size_t> to, std::size_t from_at) {
    if (arc.kind == ArcKind::release) return;
    const int from_row = row_of(graph_.activities()[from]),
              to_row = row_of(graph_.activities()[to.first]);
    const double from_s = begin_s(times, from_at);
    const double to_s = std::max(begin_s(times, to.first), from_s);
    // As captured, clocks of ranks may disagree: nothing waits for what begins after its end.
    if (from_row != to_row && to_s <= times.end_s[to.second])
      out_.flow(name_of(arc.kind), from_row, from_s, to_row, to_s);
  }

  // After a stall, where the run knows of one.
  [[nodiscard]] double begin_s(const Times& times, std::size_t activity) const {
    return track_ != nullptr && track_->text_of ? track_->run->launches[activity].begin_s
                                                : times.start_s[activity];
  }

  // A stream runs nothing else between the arrival and the departure of a collective.
  void collective(const Times& times, std::size_t departure) {
    const std::size_t arrival = arrival_of_stream_[*graph_.activities()[departure].stream];
    Json args = Json::object();
    for (const GraphArc& arc : graph_.arcs_into(id_at<ActivityId>(departure))) {
      if (graph_[arc.from].kind == ActivityKind::transfer)
        args["waited_us"] = 1e6 * (times.start_s[index(arc.from)] - times.start_s[arrival]);
    }
    slice(times, arrival, departure, std::move(args));
  }

  void slice(const Times& times, std::size_t first, std::size_t last, Json args) {
    const Activity& activity = graph_.activities()[first];
    if (track_ != nullptr && track_->text_of) {
      SliceText text = track_->text_of(first);
      out_.slice(row_of(activity), text.category, text.name, begin_s(times, first),
                 times.end_s[last], std::move(text.args));
      return;
    }
    const GraphStream& stream = graph_.streams()[*activity.stream];
    const Kernel& kernel = graph_.kernels()[index(activity.kernel)];
    args["device"] = graph_.gpus()[index(stream.gpu)].device;
    args["stream"] = stream.id;
    args["class"] = name_of(kernel.kind);
    args["pass"] = name_of(activity.pass);
    if (!times.energy_j.empty()) args["energy_j"] = times.energy_j[first];
    out_.slice(row_of(activity), "kernel", kernel.label.empty() ? kernel.name : kernel.label,
               times.start_s[first], times.end_s[last], std::move(args));
  }

  void counters(GpuId gpu, double at_s, double power_w, double core_mhz, double mem_mhz) {
    const auto of_gpu = [&](const char* name) {
      return graph_.gpus().size() == 1 ? std::string(name)
                                       : fmt::format("{} {}", name, name_of_gpu(graph_, gpu));
    };
    out_.counter(of_gpu("power_w"), "W", at_s, power_w);
    out_.counter(of_gpu("core_mhz"), "MHz", at_s, core_mhz);
    out_.counter(of_gpu("mem_mhz"), "MHz", at_s, mem_mhz);
  }

  ChromeProcess out_;
  const ExecutionGraph& graph_;
  const GraphTrack* track_;                     // nothing: as captured
  int first_row_;                               // of the streams
  std::vector<std::uint32_t> hosts_;            // ranks with calls
  std::vector<std::size_t> arrival_of_stream_;  // the latest
};

}  // namespace

void draw_graph_run(ChromeTrace& trace, int pid, const ExecutionGraph& graph, const GpuSpec* spec,
                    const GraphTrack& track) {
  const GraphRun& run = *track.run;
  RunWriter writer({trace, pid, track.title}, graph, &track);
  if (track.passes_and_changes) writer.passes_and_changes();
  writer.activities({run.start_s, run.end_s, run.energy_j});
  if (track.grid != nullptr) {
    writer.counters(*spec);
  } else {
    writer.sum_of_power();
  }
}

void write_graph_timeline(const TextSink& sink, const ExecutionGraph& graph, const GpuSpec& spec,
                          const std::vector<GraphTrack>& tracks, const PowerTrack& power) {
  ChromeTrace trace(
      sink, {{"gpu", spec.name}, {"energy unit", "J per launch, with its share of idle power"}});
  int pid = 1;
  {
    std::vector<double> start_s, end_s;
    for (const Activity& activity : graph.activities()) {
      start_s.push_back(activity.start_s);
      end_s.push_back(activity.end_s());
    }
    RunWriter captured({trace, pid++, "captured"}, graph);
    captured.activities({start_s, end_s, {}});
    captured.power(power);
  }
  for (const GraphTrack& track : tracks) draw_graph_run(trace, pid++, graph, &spec, track);
  trace.finish();
}

}  // namespace rubato
