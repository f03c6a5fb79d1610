#include "sim/graph/simulator.hpp"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "common/error.hpp"
#include "sim/graph/replay.hpp"

namespace rubato {

GraphPlan uniform_plan(const ExecutionGraph& graph, ClockId clock) {
  return {.clock_of_activity = std::vector<ClockId>(graph.size(), clock)};
}

GraphSimulator::GraphSimulator(const GraphModel& model, const ClockGrid& grid)
    : model_(&model),
      grid_(grid),
      gpu_of_clock_(model.throttles() * grid.size()),
      main_stream_(main_streams(model.graph())),
      transfer_of_(model.graph().size(), 0) {
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
    const bool transfers = graph.activities()[i].kind == ActivityKind::transfer;
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      if (transfers) transfer_of_[index(arc.from)] = static_cast<std::uint32_t>(i);
      const std::uint32_t at = next[index(arc.from)]++;
      out_[at] = static_cast<std::uint32_t>(i);
      out_lag_s_[at] = arc.lag_s;
    }
  }
}

SharedGpu& GraphSimulator::gpu_at(ClockId clock, ThrottleId throttle) {
  auto& gpu = gpu_of_clock_[index(throttle) * grid_.size() + index(clock)];
  if (!gpu) gpu = std::make_unique<SharedGpu>(model_->shared_gpu(grid_[clock], throttle));
  return *gpu;
}

void GraphSimulator::check_timed(const GraphPlan& plan) const {
  if (plan.timed.empty()) return;
  bool fits = plan.timed.size() == model_->graph().gpus().size();
  for (const auto& clocks : plan.timed) {
    fits &= !clocks.empty() && std::ranges::is_sorted(clocks, {}, &TimedClock::from_s);
    for (const TimedClock& one : clocks)
      fits &= one.from_s >= 0.0 && index(one.clock) < grid_.size();
  }
  if (!fits) throw DataError("the plan's clocks by time do not fit the GPUs, or are out of order");
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
  check_timed(plan);
  validate(options.switching);
  const GraphModel& of = *model_;
  if (options.switching.is_free())
    return GraphReplay(*this, plan, options, asked_clocks(of, plan, RunEnd::first)).run();
  if (options.after != nullptr) {
    assert(options.after->left_behind.size() == of.graph().gpus().size());
    return GraphReplay(*this, plan, options, options.after->left_behind).run();
  }
  const std::vector<HeldClock> assumed = asked_clocks(of, plan, RunEnd::last);
  GraphRun found = GraphReplay(*this, plan, options, assumed).run();
  // What one run leaves behind, another clock, a change under way or a dwell, meets the next.
  const std::vector<HeldClock>& held = found.left_behind;
  bool as_assumed = true;
  for (std::size_t g = 0; g < held.size(); ++g) {
    const bool changed = found.gpus[g].clock_changes > 0 || found.gpus[g].late_launches > 0;
    as_assumed &= held[g].clock == assumed[g].clock && !(changed && options.switching.may_delay());
  }
  return as_assumed ? found : GraphReplay(*this, plan, options, held).run();
}

}  // namespace rubato
