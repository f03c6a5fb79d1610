#include "explorer/captured_campaign.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "common/numbers.hpp"
#include "explorer/confidence/campaign_steps.hpp"
#include "explorer/graph/plan_interval.hpp"
#include "explorer/graph/planner.hpp"
#include "models/calibration/capture_fit.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {

namespace {

using Kernels = std::vector<const SweepKernel*>;

// Launches in a row.
Capture captured_step(const Kernels& kernels, const std::vector<std::uint32_t>& launches,
                      const ClockPair& clock) {
  Capture capture;
  capture.name = "campaign";
  capture.devices.emplace_back();
  capture.streams.emplace_back();
  std::int64_t now_ns = 0;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    capture.kernels.push_back(launched_kernel(*kernels[k]));
    const auto duration_ns = std::llround(measured_cost(*kernels[k], clock)->time_s / s_per_ns);
    for (std::uint32_t i = 0; i < launches[k]; ++i, now_ns += duration_ns) {
      CapturedLaunch& launch = capture.launches.emplace_back();
      launch.kernel = id_at<KernelId>(k);
      launch.start_ns = now_ns;
      launch.duration_ns = duration_ns;
    }
  }
  return capture;
}

// A spec with the kernels of a step that was captured at two clocks, the second the measured one
// nearest to three quarters of the first. Of no GPU that shapes of kernels are shipped of: those of
// its own sweep are what is tested.
GpuSpec captured_twice(GpuSpec spec, const std::vector<Kernel>& step, const Kernels& kernels,
                       const std::vector<ClockPair>& clocks, const ClockGrid& grid) {
  constexpr double share = 0.75, error = 3e-3;
  const std::size_t first = index(grid.default_clock());
  const auto distance = [&](std::size_t i) {
    const double of_first = effective_core_mhz(spec, grid[id_at<ClockId>(i)]) /
                            effective_core_mhz(spec, grid[id_at<ClockId>(first)]);
    return clocks[i].mem == clocks[first].mem && i != first ? std::abs(of_first - share) : 2.0;
  };
  std::size_t second = first == 0 ? 1 : 0;
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    if (distance(i) < distance(second)) second = i;
  }
  std::vector<CaptureObservation> captures;
  for (const std::size_t i : {first, second}) {
    CaptureObservation& one = captures.emplace_back();
    one.clock = grid[id_at<ClockId>(i)];
    for (const SweepKernel* kernel : kernels)
      one.times.emplace_back(TypicalTime{measured_cost(*kernel, clocks[i])->time_s, error, 1});
  }
  Trace trace;
  trace.name = "campaign";
  trace.kernels = step;
  spec.name = "campaign";
  return fit_captures(spec, trace, captures).spec;
}

Cost measured_run(const ExecutionGraph& graph, const GraphPlan& plan, const Kernels& kernels,
                  const std::vector<ClockPair>& clocks) {
  Kernels launched;
  std::vector<ClockPair> at;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (activity.kind != ActivityKind::launch) continue;
    const std::string& name = graph.kernels()[index(activity.kernel)].name;
    launched.push_back(*std::ranges::find(kernels, name, &SweepKernel::name));
    at.push_back(clocks[index(plan.clock_of_activity[i])]);
  }
  return measured_total(std::vector<std::uint32_t>(launched.size(), 1), launched, at);
}

Prediction prediction_of(const GraphPlanInterval& of, const Cost& estimate_pct,
                         const Cost& measured_pct) {
  const auto around = [](double low, double value_pct, double high) {
    return Interval{percent * low, value_pct, percent * high};
  };
  return {{around(of.low.time_frac, estimate_pct.time_s, of.high.time_frac),
           around(of.low.energy_frac, estimate_pct.energy_j, of.high.energy_frac)},
          estimate_pct,
          measured_pct};
}

void test_captured_plans(const SweptClocks& swept, const Kernels& kernels, int captures,
                         std::mt19937_64& random, std::vector<Prediction>& predictions) {
  const std::vector<ClockPair> clocks = common_clocks(kernels);
  if (clocks.size() < 3) return;
  GpuSpec spec = swept.spec(clocks);
  const ClockGrid grid = swept.grid(spec, clocks);
  constexpr double of_longest = 1.0, most = 20.0;
  const CaptureGraph run =
      capture_graph(captured_step(kernels, drawn_launches(kernels, of_longest, most, random),
                                  clocks[index(grid.default_clock())]));
  if (captures > 1) spec = captured_twice(spec, run.graph.kernels(), kernels, clocks, grid);
  const GraphModel model(run.graph, spec, spec.default_clock);
  GraphPlanner planner(model, grid);
  const GraphRun& usual = planner.baseline();
  const GraphPlanIntervals intervals(model, model, grid, usual);
  std::vector<GraphQuestion> questions;
  for (const Granularity grain : {Granularity::run, Granularity::kernel}) {
    for (const double slack : {0.02, 0.05, 0.1, 0.2}) questions.push_back({grain, slack});
  }
  const Cost base =
      measured_run(run.graph, uniform_plan(run.graph, grid.default_clock()), kernels, clocks);
  const auto is_default = [&](ClockId clock) { return clock == grid.default_clock(); };
  for (const GraphPlanResult& found : planner.plan(questions)) {
    if (!found.found() || std::ranges::all_of(found.plan.clock_of_activity, is_default)) continue;
    const Cost measured = measured_run(run.graph, found.plan, kernels, clocks);
    predictions.push_back(prediction_of(
        intervals.of(found.plan, found.run),
        {change_pct(found.run.span_s, usual.span_s),
         change_pct(found.run.total_energy_j, usual.total_energy_j)},
        {change_pct(measured.time_s, base.time_s), change_pct(measured.energy_j, base.energy_j)}));
  }
}

}  // namespace

std::vector<Prediction> play_captured(const GpuSpec& spec, const Sweep& sweep, std::size_t seed,
                                      int captures) {
  std::mt19937_64 random(seed);
  const SweptClocks swept(spec, sweep);
  std::vector<Prediction> predictions;
  for (int step = 0; step < steps_of_a_campaign; ++step)
    test_captured_plans(swept, drawn_kernels(sweep, random), captures, random, predictions);
  return predictions;
}

}  // namespace rubato
