#include "sim/graph/simulator.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// What a GPU runs, oldest first.
struct Running {
  std::uint32_t activity = 0;
  std::uint32_t kernel = 0;
  bool holds = false;  ///< a collective between arrival and departure: others decide its end
};

// One GPU while a graph is replayed. What has run is settled whenever the running set changes.
struct GpuState {
  std::vector<Running> running;
  std::vector<std::uint32_t> kernels;  // of `running`, sorted: the key of sharing
  const Sharing* sharing = nullptr;
  ClockId clock;
  double since_s = 0.0;
  std::uint32_t version = 0;  // of the running set; events of older ones are void
};

}  // namespace

// One replay under way.
class GraphReplay {
 public:
  GraphReplay(GraphSimulator& simulator, const GraphPlan& plan, const GraphRunOptions& options)
      : simulator_(simulator),
        graph_(simulator.model_->graph()),
        plan_(plan),
        options_(options),
        left_(simulator.model_->work()),
        waits_(simulator.waits_),
        ready_s_(graph_.size(), 0.0),
        gpus_(graph_.gpus().size()) {
    run_.start_s.resize(graph_.size());
    run_.end_s.resize(graph_.size());
    run_.energy_j.resize(graph_.size(), 0.0);
    run_.gpus.resize(gpus_.size());
  }

  GraphRun run() {
    hold_first_clocks();
    begin(0, 0.0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (!event.ends) {
        begin(event.what, event.at_s);
      } else if (event.version == no_version) {
        end(event.what, event.at_s);
      } else if (gpus_[event.what].version == event.version) {
        end_next_launch(event.what, event.at_s);
      }
    }
    for (std::uint32_t g = 0; g < gpus_.size(); ++g) settle(g, run_.span_s);
    for (const GpuTotals& gpu : run_.gpus) run_.total_energy_j += gpu.energy_j;
    return std::move(run_);
  }

 private:
  static constexpr std::uint32_t no_version = ~std::uint32_t{0};

  // An activity starts or a transfer ends (`what` is the activity), or the next launch of a GPU
  // ends.
  struct Event {
    double at_s;
    bool ends;
    std::uint32_t what;
    std::uint32_t version;

    // Ends come before starts of the same moment, so that launches in a row do not overlap.
    friend bool operator>(const Event& a, const Event& b) {
      return std::tuple(a.at_s, !a.ends, a.what) > std::tuple(b.at_s, !b.ends, b.what);
    }
  };

  // Until its first launch a GPU holds the clock that launch asks for.
  void hold_first_clocks() {
    std::vector<bool> known(gpus_.size(), false);
    for (std::uint32_t i = 0; i < graph_.size(); ++i) {
      const auto gpu = graph_.gpu_of(graph_.activities()[i]);
      if (!gpu || known[index(*gpu)] || left_[i] <= 0.0) continue;
      known[index(*gpu)] = true;
      gpus_[index(*gpu)].clock = plan_.clock_of_activity[i];
    }
    for (std::uint32_t g = 0; g < gpus_.size(); ++g) share(g, 0.0);
  }

  void begin(std::uint32_t i, double at_s) {
    const Activity& activity = graph_.activities()[i];
    run_.start_s[i] = at_s;
    switch (activity.kind) {
      case ActivityKind::launch:
        if (left_[i] > 0.0) {
          const std::uint32_t g = index32(*graph_.gpu_of(activity));
          settle(g, at_s);
          gpus_[g].running.push_back({i, activity.kernel.value, false});
          share(g, at_s);
          return;
        }
        break;
      case ActivityKind::arrival: {
        const std::uint32_t g = index32(*graph_.gpu_of(activity));
        settle(g, at_s);
        gpus_[g].running.push_back({i, activity.kernel.value, true});
        share(g, at_s);
        break;
      }
      case ActivityKind::departure: leave(activity, at_s); break;
      case ActivityKind::transfer:
        events_.push({at_s + activity.duration_s, true, i, no_version});
        return;
      case ActivityKind::origin:
      case ActivityKind::host: break;
    }
    end(i, at_s);
  }

  // The collective that a stream has run since its arrival.
  void leave(const Activity& departure, double at_s) {
    const std::uint32_t g = index32(*graph_.gpu_of(departure));
    settle(g, at_s);
    std::erase_if(gpus_[g].running, [&](const Running& one) {
      return one.holds && graph_.activities()[one.activity].stream == departure.stream;
    });
    share(g, at_s);
  }

  void end_next_launch(std::uint32_t g, double at_s) {
    settle(g, at_s);
    GpuState& gpu = gpus_[g];
    const auto done = std::ranges::min_element(gpu.running, {}, [&](const Running& one) {
      return one.holds ? infinity : left_[one.activity] / rate(g, one.kernel);
    });
    const std::uint32_t activity = done->activity;
    gpu.running.erase(done);
    share(g, at_s);
    end(activity, at_s);
  }

  void end(std::uint32_t i, double at_s) {
    run_.end_s[i] = at_s;
    run_.span_s = std::max(run_.span_s, at_s);
    for (std::uint32_t a = simulator_.first_out_[i]; a < simulator_.first_out_[i + 1]; ++a) {
      const std::uint32_t to = simulator_.out_[a];
      ready_s_[to] = std::max(ready_s_[to], at_s + simulator_.out_lag_s_[a]);
      if (--waits_[to] == 0) events_.push({ready_s_[to], false, to, no_version});
    }
  }

  // Launches of a kernel a second, as one of those that run on a GPU.
  [[nodiscard]] double rate(std::uint32_t g, std::uint32_t kernel) const {
    const GpuState& gpu = gpus_[g];
    const auto at = std::ranges::lower_bound(gpu.kernels, kernel) - gpu.kernels.begin();
    return gpu.sharing->launches_per_s[static_cast<std::size_t>(at)];
  }

  // Books what a GPU did since its running set last changed.
  void settle(std::uint32_t g, double to_s) {
    GpuState& gpu = gpus_[g];
    const double passed_s = to_s - gpu.since_s;
    if (passed_s <= 0.0) return;
    gpu.since_s = to_s;
    const Sharing& now = *gpu.sharing;
    const double idle_share_w = now.idle_w / std::max(1.0, static_cast<double>(gpu.running.size()));
    for (const Running& one : gpu.running) {
      const auto at = std::ranges::lower_bound(gpu.kernels, one.kernel) - gpu.kernels.begin();
      const auto k = static_cast<std::size_t>(at);
      if (!one.holds) {
        left_[one.activity] = std::max(left_[one.activity] - now.launches_per_s[k] * passed_s, 0.0);
      }
      run_.energy_j[one.activity] += passed_s * (now.active_w[k] + idle_share_w);
    }
    GpuTotals& totals = run_.gpus[g];
    totals.energy_j += now.power_w() * passed_s;
    if (!gpu.running.empty()) totals.busy_s += passed_s;
    if (now.power_limited) totals.power_limited_s += passed_s;
  }

  // Whose clock a GPU takes; nobody's if it runs nothing, or only holds collectives.
  [[nodiscard]] std::optional<std::uint32_t> leader(std::uint32_t g) const {
    std::optional<std::uint32_t> oldest;
    for (const Running& one : gpus_[g].running) {
      if (one.holds) continue;
      if (graph_.activities()[one.activity].stream == simulator_.main_stream_[g])
        return one.activity;
      if (!oldest) oldest = one.activity;
    }
    return oldest;
  }

  // Looks up rates and power of what runs now, and says when the next launch ends.
  void share(std::uint32_t g, double at_s) {
    GpuState& gpu = gpus_[g];
    if (const auto leading = leader(g)) {
      const ClockId asked = plan_.clock_of_activity[*leading];
      if (asked != gpu.clock) ++run_.gpus[g].clock_changes;
      gpu.clock = asked;
    }
    gpu.kernels.clear();
    for (const Running& one : gpu.running) gpu.kernels.push_back(one.kernel);
    std::ranges::sort(gpu.kernels);
    gpu.sharing = &simulator_.gpu_at(gpu.clock).at(gpu.kernels);
    ++gpu.version;
    double next_s = infinity;
    for (const Running& one : gpu.running) {
      if (!one.holds) next_s = std::min(next_s, at_s + left_[one.activity] / rate(g, one.kernel));
    }
    if (next_s < infinity) events_.push({next_s, true, g, gpu.version});
    if (!options_.phases) return;
    const Sharing& now = *gpu.sharing;
    run_.phases.push_back({at_s, GpuId{g}, static_cast<std::uint32_t>(gpu.running.size()),
                           now.power_w(), now.core_mhz, now.power_limited, gpu.clock});
  }

  [[nodiscard]] static std::uint32_t index32(GpuId gpu) { return gpu.value; }

  GraphSimulator& simulator_;
  const ExecutionGraph& graph_;
  const GraphPlan& plan_;
  GraphRunOptions options_;
  std::vector<double> left_;          // of each launch, in launches of the model
  std::vector<std::uint32_t> waits_;  // arcs each activity still waits for
  std::vector<double> ready_s_;
  std::vector<GpuState> gpus_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  GraphRun run_;
};

GraphPlan uniform_plan(const ExecutionGraph& graph, ClockId clock) {
  return {std::vector<ClockId>(graph.size(), clock)};
}

GraphSimulator::GraphSimulator(const GraphModel& model, const ClockGrid& grid)
    : model_(&model),
      grid_(grid),
      gpu_of_clock_(grid.size()),
      main_stream_(main_streams(model.graph())) {
  const ExecutionGraph& graph = model.graph();
  first_out_.assign(graph.size() + 1, 0);
  waits_.resize(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const auto arcs = graph.arcs_into(id_at<ActivityId>(i));
    waits_[i] = static_cast<std::uint32_t>(arcs.size());
    for (const GraphArc& arc : arcs) ++first_out_[index(arc.from) + 1];
  }
  for (std::size_t i = 0; i < graph.size(); ++i) first_out_[i + 1] += first_out_[i];
  out_.resize(graph.arcs());
  out_lag_s_.resize(graph.arcs());
  std::vector<std::uint32_t> next(first_out_.begin(), first_out_.end() - 1);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      const std::uint32_t at = next[index(arc.from)]++;
      out_[at] = static_cast<std::uint32_t>(i);
      out_lag_s_[at] = arc.lag_s;
    }
  }
}

SharedGpu& GraphSimulator::gpu_at(ClockId clock) {
  auto& gpu = gpu_of_clock_[index(clock)];
  if (!gpu) gpu = std::make_unique<SharedGpu>(model_->shared_gpu(grid_[clock]));
  return *gpu;
}

GraphRun GraphSimulator::run(const GraphPlan& plan, const GraphRunOptions& options) {
  if (plan.clock_of_activity.size() != model_->graph().size()) {
    throw DataError(fmt::format("the plan has {} clocks; expected {}, one per activity",
                                plan.clock_of_activity.size(), model_->graph().size()));
  }
  for (const ClockId clock : plan.clock_of_activity) {
    if (index(clock) >= grid_.size())
      throw DataError(
          fmt::format("the plan asks for clock {}; there are {}", index(clock), grid_.size()));
  }
  return GraphReplay(*this, plan, options).run();
}

}  // namespace rubato
