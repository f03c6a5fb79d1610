#include "explorer/graph/contention/gpu_lanes.hpp"

#include <algorithm>
#include <map>

#include "explorer/graph/contention/arc_flow.hpp"

namespace rubato {

namespace {

constexpr double unknown_s = std::numeric_limits<double>::infinity();

bool on_gpu(const ExecutionGraph& graph, const Activity& activity, std::uint32_t gpu) {
  const auto of = graph.gpu_of(activity);
  return of && of->value == gpu;
}

// Position of each launch of the main row plus one, 0 for others.
std::vector<std::uint32_t> positions_of(const ExecutionGraph& graph, const GpuLanes& lanes) {
  std::vector<std::uint32_t> position(graph.size(), 0);
  for (std::uint32_t p = 0; p < lanes.main.size(); ++p) position[lanes.main[p]] = p + 1;
  return position;
}

// A stream beside the main one: its activities that take time.
struct SideStream {
  double held = 0.0;  // SMs x seconds as captured
  std::vector<SideActivity> all;
  std::set<std::uint32_t> kernels;  // of LaunchCosts
  bool launches = false;
};

void find_gaps(const ExecutionGraph& graph, GpuLanes& lanes) {
  lanes.arc_before.resize(lanes.main.size());
  lanes.lag_before_s.assign(lanes.main.size() + 1, 0.0);
  for (std::uint32_t p = 1; p < lanes.main.size(); ++p) {
    for (const GraphArc& arc : graph.arcs_into(ActivityId{lanes.main[p]})) {
      if (arc.from.value != lanes.main[p - 1] || arc.lag_s < lanes.lag_before_s[p]) continue;
      lanes.arc_before[p] = static_cast<std::uint32_t>(arc_index(graph, arc));
      lanes.lag_before_s[p] = arc.lag_s;
    }
  }
}

// Finds `first` and `last` of side activities from arcs alone.
void place_beside(const ExecutionGraph& graph, GpuLanes& lanes) {
  const std::vector<std::uint32_t> position = positions_of(graph, lanes);
  const auto row = static_cast<std::uint32_t>(lanes.main.size());
  // Main launches that have ended before an activity begins, and the first to begin after its end.
  std::vector<std::uint32_t> ended(graph.size(), 0), next(graph.size(), row);
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    for (const GraphArc& arc : graph.arcs_into(ActivityId{i})) {
      const std::uint32_t from = arc.from.value;
      ended[i] = std::max(ended[i], position[from] > 0 ? position[from] : ended[from]);
    }
  }
  for (std::uint32_t i = static_cast<std::uint32_t>(graph.size()); i-- > 0;) {
    const std::uint32_t here = position[i] > 0 ? position[i] - 1 : next[i];
    for (const GraphArc& arc : graph.arcs_into(ActivityId{i}))
      next[index(arc.from)] = std::min(next[index(arc.from)], here);
  }
  for (SideActivity& side : lanes.side) {
    side.first = ended[side.activity];
    side.last = std::max(next[side.departure], side.first);
  }
}

// Puts launches of main streams into `lanes`, and returns all others by stream.
std::map<std::uint32_t, SideStream> find_streams(const LaunchCosts& costs,
                                                 std::vector<GpuLanes>& lanes) {
  const ExecutionGraph& graph = costs.model().graph();
  std::map<std::uint32_t, SideStream> streams;
  std::vector<std::uint32_t> arrival(graph.streams().size(), 0);
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    const auto gpu = graph.gpu_of(activity);
    if (!gpu) continue;
    const Kernel& kernel = graph.kernels()[index(activity.kernel)];
    const double held = sm_demand(kernel, costs.model().spec().sm_count).held;
    const bool launch = activity.kind == ActivityKind::launch && costs.is_clocked(i);
    if (launch && costs.leads(i)) {
      lanes[index(*gpu)].main.push_back(i);
    } else if (launch) {
      SideStream& stream = streams[*activity.stream];
      stream.held += held * activity.duration_s;
      stream.launches = true;
      stream.all.push_back({i, i, false, 0, 0});
      stream.kernels.insert(costs.kernel_of(i));
    } else if (activity.kind == ActivityKind::arrival) {
      arrival[*activity.stream] = i;
    } else if (activity.kind == ActivityKind::departure) {
      const std::uint32_t from = arrival[*activity.stream];
      SideStream& stream = streams[*activity.stream];
      stream.held += held * (activity.end_s() - graph.activities()[from].start_s);
      stream.all.push_back({from, i, true, 0, 0});
      stream.kernels.insert(costs.kernel_of(i));
    }
  }
  return streams;
}

}  // namespace

std::vector<GpuLanes> gpu_lanes(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<GpuLanes> lanes(graph.gpus().size());
  std::map<std::uint32_t, SideStream> streams = find_streams(costs, lanes);
  for (std::uint32_t g = 0; g < lanes.size(); ++g) {
    GpuLanes& of = lanes[g];
    find_gaps(graph, of);
    bool only_main_launches = true;
    SideStream *most = nullptr, *own = nullptr;
    for (auto& [number, stream] : streams) {
      if (graph.streams()[number].gpu.value != g) continue;
      if (costs.leads(stream.all.front().activity)) {
        own = &stream;
        continue;
      }
      only_main_launches &= !stream.launches;
      if (most == nullptr || stream.held > most->held) most = &stream;
    }
    of.shared = most != nullptr;
    if (most == nullptr || of.main.empty()) {
      of.gaps_hold = only_main_launches;
      continue;
    }
    // Collectives of the main stream are others too: a side activity may run beside them.
    if (own != nullptr) of.others.push_back(own->kernels);
    of.others_hold = own != nullptr;
    for (auto& [number, stream] : streams) {
      if (graph.streams()[number].gpu.value != g || &stream == most || &stream == own) continue;
      of.others.push_back(stream.kernels);
      for (const SideActivity& one : stream.all) {
        if (!one.holds) of.other_launches.push_back(one.activity);
        of.others_hold |= one.holds;
      }
    }
    of.gaps_hold = only_main_launches || of.others.empty();
    of.side = std::move(most->all);
    // What three or more at once do to each other is bounded for collectives only.
    if (!of.others.empty()) {
      std::erase_if(of.side, [&](const SideActivity& one) {
        const Kernel& kernel = graph.kernels()[index(graph.activities()[one.activity].kernel)];
        return sm_demand(kernel, costs.model().spec().sm_count).held <= 0.0;
      });
    }
    place_beside(graph, of);
  }
  return lanes;
}

void find_pauses(const ExecutionGraph& graph, std::span<const double> latest_s, GpuLanes& lanes) {
  lanes.pauses.clear();
  if (lanes.side.empty()) return;
  const std::vector<SideActivity>& side = lanes.side;
  for (std::size_t k = 0; k <= side.size(); ++k) {
    SidePause& pause = lanes.pauses.emplace_back();
    pause.first = k == 0 ? 0 : side[k - 1].first;
    pause.last = k == side.size() ? static_cast<std::uint32_t>(lanes.main.size()) : side[k].last;
    pause.waits_for_end = k == side.size();
    if (pause.waits_for_end || (k == 0 && latest_s.empty())) continue;
    const std::uint32_t next = side[k].activity;
    if (k == 0) pause.lag_s = latest_s[next];
    for (const GraphArc& arc : graph.arcs_into(ActivityId{next})) {
      if (k > 0 && (arc.from.value != side[k - 1].departure || !pause.arcs.empty())) continue;
      pause.arcs.push_back(static_cast<std::uint32_t>(arc_index(graph, arc)));
      if (k > 0) pause.lag_s = arc.lag_s;
    }
  }
}

namespace {

// Bounds the end of an activity by what the row of main launches does meanwhile. The activity ends
// no later than when `main` launches have ended and `at_s` of the row's least time has passed.
struct LatestEnd {
  std::uint32_t main = 0;
  double at_s = 0.0;
};

// @param least_end_s  the row's least time to the end of its first launches, shape [main + 1]
// @param most_s       the most of that time that passes while a launch beside the row runs, shape
//                     [activities]
std::vector<LatestEnd> latest_ends(const ExecutionGraph& graph, const SideLimits& limits,
                                   std::uint32_t gpu, const std::vector<std::uint32_t>& position,
                                   const std::vector<double>& least_end_s,
                                   std::span<const double> most_s) {
  std::vector<LatestEnd> latest(graph.size());
  for (std::uint32_t i = 0; i < graph.size(); ++i) {
    LatestEnd& own = latest[i];
    const Activity& activity = graph.activities()[i];
    if (position[i] > 0) {
      own = {position[i], least_end_s[position[i]]};
      continue;
    }
    for (const GraphArc& arc : graph.arcs_into(ActivityId{i})) {
      const LatestEnd& from = latest[index(arc.from)];
      own = {std::max(own.main, from.main), std::max(own.at_s, from.at_s + arc.lag_s)};
    }
    if (activity.kind == ActivityKind::transfer) own.at_s = unknown_s;
    if (activity.kind == ActivityKind::launch && limits.least_s[i] > 0.0)
      own.at_s = on_gpu(graph, activity, gpu) ? own.at_s + most_s[i] : unknown_s;
  }
  return latest;
}

// Narrows side activities by the row's least time. That is of launches and gaps, and a launch
// beside it lasts up to most_s; or of launches alone, of which passed_s passes meanwhile.
void narrow_by_row(const ExecutionGraph& graph, const SideLimits& limits, std::uint32_t gpu,
                   GpuLanes& lanes, bool with_gaps, double margin_s) {
  std::vector<double> least_end_s{0.0}, begin_s;
  for (std::size_t p = 0; p < lanes.main.size(); ++p) {
    begin_s.push_back(least_end_s.back() + (with_gaps ? lanes.lag_before_s[p] : 0.0));
    least_end_s.push_back(begin_s.back() + limits.least_s[lanes.main[p]]);
  }
  const std::vector<LatestEnd> latest =
      latest_ends(graph, limits, gpu, positions_of(graph, lanes), least_end_s,
                  with_gaps ? limits.most_s : limits.passed_s);
  for (SideActivity& side : lanes.side) {
    const LatestEnd& end = latest[side.departure];
    const auto has_ended = [&](std::uint32_t p) {  // when launch p begins
      return p >= end.main && begin_s[p] >= end.at_s + margin_s;
    };
    // Launches rise with time, so once it has ended it has for all that follow.
    std::uint32_t p = side.first;
    while (p < side.last && !has_ended(p)) ++p;
    side.last = p;
  }
}

// Narrows side activities by earliest starts, and by latest ends that let everything end in time.
void narrow_by_deadline(const ExecutionGraph& graph, const SideLimits& limits, GpuLanes& lanes,
                        double margin_s) {
  std::vector<double> start_s(graph.size()), left_s(graph.size(), 0.0);
  earliest_starts(graph, limits.least_s, start_s);
  for (std::size_t i = graph.size(); i-- > 0;) {  // longest path from the end of each
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      double& of = left_s[index(arc.from)];
      of = std::max(of, arc.lag_s + limits.least_s[i] + left_s[i]);
    }
  }
  const double end_s = limits.deadline_s + margin_s;
  for (SideActivity& side : lanes.side) {
    const double first_s = start_s[side.activity], last_s = end_s - left_s[side.departure];
    while (side.last > side.first && start_s[lanes.main[side.last - 1]] >= last_s + margin_s)
      --side.last;
    while (side.first < side.last && end_s - left_s[lanes.main[side.first]] + margin_s <= first_s)
      ++side.first;
  }
}

}  // namespace

void narrow(const ExecutionGraph& graph, const SideLimits& limits, std::uint32_t gpu,
            GpuLanes& lanes) {
  constexpr double rounding = 1e-9;
  const double margin_s = rounding * limits.deadline_s;
  narrow_by_deadline(graph, limits, lanes, margin_s);
  if (!limits.most_s.empty()) narrow_by_row(graph, limits, gpu, lanes, true, margin_s);
  if (!limits.passed_s.empty()) narrow_by_row(graph, limits, gpu, lanes, false, margin_s);
}

}  // namespace rubato
