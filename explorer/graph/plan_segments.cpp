#include "explorer/graph/plan_segments.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rubato {

namespace {

struct ClockFrom {
  double at_s;
  ClockId clock;
};

// One GPU's segments, from its clocks and launches in order of time.
class SegmentCutter {
 public:
  SegmentCutter(GpuId gpu, std::vector<ClockFrom> clocks) : gpu_(gpu), clocks_(std::move(clocks)) {}

  void launch(const Activity& activity, bool on_main_stream, double start_s, double energy_j) {
    while (next_clock_ < clocks_.size() && clocks_[next_clock_].at_s <= start_s) {
      cut(clocks_[next_clock_].at_s).clock = clocks_[next_clock_].clock;
      ++next_clock_;
    }
    if (segments_.empty()) cut(start_s);
    const bool another_pass =
        activity.pass != Pass::unknown && activity.pass != segments_.back().pass;
    if (on_main_stream && (another_pass || activity.step != segments_.back().step)) {
      PlanSegment& begun = cut(start_s);
      begun.step = activity.step;
      if (activity.pass != Pass::unknown) begun.pass = activity.pass;
      seen_.clear();
    }
    PlanSegment& now = segments_.back();
    const std::uint64_t before = seen_[activity.kernel]++;
    if (now.launches++ == 0) {
      now.first_kernel = activity.kernel;
      now.first_index = before;
    }
    now.energy_j += energy_j;
  }

  // A stretch in which nothing starts is part of the one before. Launches before the first named
  // range belong to that range.
  [[nodiscard]] std::vector<PlanSegment> take(double end_s) {
    std::vector<PlanSegment> kept;
    for (PlanSegment& segment : segments_) {
      if (segment.launches > 0) kept.push_back(segment);
    }
    for (std::size_t i = kept.size(); i-- > 0;) {
      kept[i].time_s = (i + 1 < kept.size() ? kept[i + 1].start_s : end_s) - kept[i].start_s;
      if (kept[i].pass == Pass::unknown && i + 1 < kept.size() && kept[i + 1].step == kept[i].step)
        kept[i].pass = kept[i + 1].pass;
    }
    return kept;
  }

 private:
  // Begins a segment like the one before it. If nothing has started in that yet, it begins anew.
  PlanSegment& cut(double start_s) {
    if (segments_.empty() || segments_.back().launches > 0) {
      segments_.push_back(segments_.empty() ? PlanSegment{} : segments_.back());
      segments_.back().gpu = gpu_;
      segments_.back().launches = 0;
      segments_.back().energy_j = 0.0;
    }
    segments_.back().start_s = start_s;
    return segments_.back();
  }

  GpuId gpu_;
  std::vector<ClockFrom> clocks_;
  std::size_t next_clock_ = 0;
  std::vector<PlanSegment> segments_;
  std::map<KernelId, std::uint64_t> seen_;  // in this pass
};

}  // namespace

std::vector<PlanSegment> plan_segments(const GraphModel& model, const GraphRun& run) {
  const ExecutionGraph& graph = model.graph();
  std::vector<std::vector<ClockFrom>> clocks(graph.gpus().size());
  for (const GpuPhase& phase : run.phases) {
    auto& known = clocks[index(phase.gpu)];
    if (known.empty() || known.back().clock != phase.clock)
      known.push_back({phase.start_s, phase.clock});
  }
  const std::vector<std::uint32_t> main = main_streams(graph);
  std::vector<std::vector<std::size_t>> launches(graph.gpus().size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (model.work()[i] > 0.0) launches[index(*graph.gpu_of(graph.activities()[i]))].push_back(i);
  }
  std::vector<PlanSegment> list;
  for (std::size_t g = 0; g < launches.size(); ++g) {
    const auto order = [&](std::size_t i) {
      return std::pair(run.start_s[i], graph.activities()[i].stream != main[g]);
    };
    std::ranges::stable_sort(launches[g], {}, order);
    SegmentCutter cutter(id_at<GpuId>(g), std::move(clocks[g]));
    for (const std::size_t i : launches[g]) {
      const Activity& activity = graph.activities()[i];
      cutter.launch(activity, activity.stream == main[g], run.start_s[i], run.energy_j[i]);
    }
    std::ranges::copy(cutter.take(run.span_s), std::back_inserter(list));
  }
  return list;
}

}  // namespace rubato
