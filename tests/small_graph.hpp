#pragma once
// Execution graphs small enough to try every plan, and the GPUs they run on.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rapidcheck.h>

#include "models/gpu/clock_grid.hpp"
#include "models/gpu/spec.hpp"
#include "sim/graph/graph_model.hpp"
#include "sim/graph/simulator.hpp"
#include "tests/uniform.hpp"
#include "traces/graph/graph_builder.hpp"

namespace rubato {

/// Relative, of sums of some dozen numbers.
inline constexpr double rounding = 1e-9;

inline const GpuSpec& small_graph_spec() {
  // A limit that two made launches at once do not reach. Waiting takes other power than the idle
  // part of what runs, less at low clocks and more at high ones.
  static const GpuSpec spec = [] {
    GpuSpec roomy = load_gpu_spec("a100-sxm4-80gb");
    roomy.power_limit.limit_w = 500.0;
    roomy.waiting = WaitingPower{{510.0, 1410.0}, {60.0, 120.0}};
    roomy.sources["waiting_power"] = "made up";
    return roomy;
  }();
  return spec;
}

/// Some clocks of the A100, the default one among them, which is the one of the captures.
inline ClockGrid arbitrary_clocks(std::size_t count) {
  static const ClockGrid full = make_clock_grid(small_graph_spec(), "full");
  // Steps over the grid instead of draws that may repeat: rapidcheck shrinks draws to one value.
  std::vector<ClockPair> pairs{small_graph_spec().default_clock};
  if (count == 1) return {small_graph_spec(), std::move(pairs)};
  auto at = *rc::gen::inRange<std::size_t>(0, full.size());
  const auto step = *rc::gen::inRange<std::size_t>(1, full.size() / count);
  for (; pairs.size() < count; at = (at + step) % full.size()) {
    const ClockPair& pair = full[id_at<ClockId>(at)];
    if (pair != pairs.front()) pairs.push_back(pair);
  }
  return {small_graph_spec(), std::move(pairs)};
}

/// The default clock, then half of it.
inline ClockGrid two_clocks() {
  const GpuSpec& spec = small_graph_spec();
  return {spec, {spec.default_clock, parse_clock_pair(spec, "1593/705")}};
}

/// What graphs are drawn from.
struct SmallGraphShape {
  std::uint32_t most_gpus = 3;
  std::size_t most_launches = 10;  ///< at least 2
  bool one_at_a_time = false;      ///< nothing overlaps on one GPU
  bool gaps = true;                ///< hosts and lags
  bool collectives = true;
  std::uint32_t streams = 2;  ///< of each GPU
};

/// Adds activities in an order in which arcs point forward; captured starts are the earliest ones.
class SmallGraph {
 public:
  explicit SmallGraph(std::uint32_t gpus, std::uint32_t streams_per_gpu = 2) : last_of_gpu_(gpus) {
    for (std::uint32_t g = 0; g < gpus; ++g) {
      const GpuId gpu = builder_.add_gpu({g, 0, "A100"});
      for (std::uint32_t s = 0; s < streams_per_gpu; ++s) {
        builder_.add_stream({gpu, s});
        last_of_stream_.emplace_back();
      }
    }
    streams_per_gpu_ = streams_per_gpu;
  }

  struct After {
    DraftId from;
    double lag_s = 0.0;
    ArcKind kind = ArcKind::event;
  };

  DraftId add(Activity activity, std::vector<After> after) {
    for (const After& one : after)
      activity.start_s = std::max(activity.start_s, builder_[one.from].end_s() + one.lag_s);
    const DraftId id = builder_.add(activity);
    for (const After& one : after) builder_.add_arc(one.from, id, one.lag_s, one.kind);
    return id;
  }

  DraftId host(std::vector<After> after) { return add({.kind = ActivityKind::host}, after); }

  DraftId launch(std::uint32_t stream, const std::string& kernel, KernelClass kind,
                 double duration_s, std::vector<After> after = {}, Pass pass = Pass::unknown) {
    return on_stream({.kind = ActivityKind::launch,
                      .pass = pass,
                      .stream = stream,
                      .kernel = kernel_of(kernel, kind),
                      .step = step_,
                      .duration_s = duration_s},
                     after);
  }

  /// One collective of all GPUs, on one stream of each, after something. @return departures
  std::vector<DraftId> collective(const std::vector<std::uint32_t>& streams, double transfer_s,
                                  const std::vector<After>& after = {}) {
    return collective(streams, std::vector(streams.size(), after), transfer_s);
  }

  /// @param after  of each stream
  std::vector<DraftId> collective(const std::vector<std::uint32_t>& streams,
                                  const std::vector<std::vector<After>>& after, double transfer_s) {
    const KernelId kernel = kernel_of("all-reduce", KernelClass::communication);
    std::vector<After> arrivals;
    for (std::size_t k = 0; k < streams.size(); ++k)
      arrivals.push_back(
          {on_stream({.kind = ActivityKind::arrival, .stream = streams[k], .kernel = kernel},
                     after[k]),
           0.0, ArcKind::collective});
    const DraftId transfer =
        add({.kind = ActivityKind::transfer, .kernel = kernel, .duration_s = transfer_s}, arrivals);
    std::vector<DraftId> departures;
    for (const std::uint32_t stream : streams)
      departures.push_back(
          on_stream({.kind = ActivityKind::departure, .stream = stream, .kernel = kernel},
                    {{transfer, 0.0, ArcKind::collective}}));
    return departures;
  }

  /// Of launches from now on.
  void set_step(std::optional<std::uint32_t> step) { step_ = step; }

  /// From now on what runs on one GPU runs one after the other.
  void one_at_a_time() { one_at_a_time_ = true; }

  [[nodiscard]] ExecutionGraph build() && { return std::move(builder_).build("small").graph; }

 private:
  KernelId kernel_of(const std::string& name, KernelClass kind) {
    Kernel kernel;
    kernel.name = kernel.label = name;
    kernel.kind = kind;
    return builder_.add_kernel(kernel);
  }

  DraftId on_stream(const Activity& activity, std::vector<After> after) {
    auto& last = last_of_stream_[*activity.stream];
    auto& last_here = last_of_gpu_[*activity.stream / streams_per_gpu_];
    if (last) after.push_back({*last, 0.0, ArcKind::stream_order});
    if (one_at_a_time_ && last_here && last_here != last) after.push_back({*last_here});
    const DraftId id = add(activity, after);
    last = last_here = id;
    return id;
  }

  GraphBuilder builder_;
  std::vector<std::optional<DraftId>> last_of_stream_, last_of_gpu_;
  std::uint32_t streams_per_gpu_ = 1;
  std::optional<std::uint32_t> step_;
  bool one_at_a_time_ = false;
};

inline ExecutionGraph one_launch(double duration_s) {
  SmallGraph made(1);
  made.launch(0, "gemm", KernelClass::gemm, duration_s);
  return std::move(made).build();
}

/// Launches of four kernels on some streams of each GPU; events, host calls, collectives and lags.
inline ExecutionGraph arbitrary_graph(const SmallGraphShape& shape) {
  const auto gpus = *rc::gen::inRange<std::uint32_t>(1, shape.most_gpus + 1);
  SmallGraph made(gpus, shape.streams);
  if (shape.one_at_a_time) made.one_at_a_time();
  constexpr std::array kinds{KernelClass::gemm, KernelClass::memset, KernelClass::elementwise,
                             KernelClass::communication};
  const auto launches = *rc::gen::inRange<std::size_t>(2, shape.most_launches + 1);
  std::vector<DraftId> all;
  std::optional<DraftId> host;
  for (std::size_t i = 0; i < launches; ++i) {
    if (shape.collectives && gpus > 1 && *rc::gen::inRange(0, 4) == 0) {
      std::vector<std::uint32_t> streams;
      for (std::uint32_t g = 0; g < gpus; ++g)
        streams.push_back(shape.streams * g + *rc::gen::inRange<std::uint32_t>(0, shape.streams));
      for (const DraftId one : made.collective(streams, uniform(0.0, 2e-4))) all.push_back(one);
    }
    std::vector<SmallGraph::After> after;
    if (!all.empty() && *rc::gen::inRange(0, 3) == 0)
      after.push_back({*rc::gen::elementOf(all), shape.gaps ? uniform(0.0, 2e-5) : 0.0});
    if (shape.gaps && *rc::gen::inRange(0, 3) == 0) {
      std::vector<SmallGraph::After> before;
      if (host) before.push_back({*host, uniform(0.0, 1e-4), ArcKind::host_order});
      if (!all.empty() && *rc::gen::arbitrary<bool>())
        before.push_back({*rc::gen::elementOf(all), uniform(0.0, 1e-5), ArcKind::sync});
      host = made.host(before);
      after.push_back({*host, uniform(0.0, 1e-5), ArcKind::launch_call});
    }
    const auto k = *rc::gen::inRange<std::size_t>(0, kinds.size());
    const auto pass = *rc::gen::element(Pass::forward, Pass::backward);
    all.push_back(made.launch(*rc::gen::inRange<std::uint32_t>(0, shape.streams * gpus),
                              "kernel " + std::to_string(k), kinds[k], uniform(1e-5, 5e-4), after,
                              pass));
  }
  return std::move(made).build();
}

inline GraphPlan arbitrary_plan(const ExecutionGraph& graph, const ClockGrid& grid) {
  GraphPlan plan = uniform_plan(graph, ClockId{0});
  for (ClockId& clock : plan.clock_of_activity)
    clock = id_at<ClockId>(*rc::gen::inRange<std::size_t>(0, grid.size()));
  return plan;
}

}  // namespace rubato
