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
    : GraphSimulator(model.graph()) {
  model_ = &model;
  clocks_.assign(grid.pairs().begin(), grid.pairs().end());
  clock_count_ = grid.size();
  gpu_of_clock_.resize(model.throttles() * grid.size());
}

GraphSimulator::GraphSimulator(const ExecutionGraph& graph, const LaunchCells& cells)
    : GraphSimulator(graph) {
  assert(graph.streams().size() == graph.gpus().size());
  cells_ = &cells;
  clock_count_ = cells.clocks();
}

GraphSimulator::GraphSimulator(const ExecutionGraph& graph)
    : graph_(&graph), main_stream_(main_streams(graph)), transfer_of_(graph.size(), 0) {
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
  auto& gpu = gpu_of_clock_[index(throttle) * clock_count_ + index(clock)];
  if (!gpu) gpu = std::make_unique<SharedGpu>(model_->shared_gpu(clocks_[index(clock)], throttle));
  return *gpu;
}

double GraphSimulator::idle_power_w(ClockId clock, GpuId gpu) const {
  return cells_ != nullptr ? cells_->idle_power_w(clock)
                           : model_->idle_power_w(clocks_[index(clock)], model_->throttle_of(gpu));
}

bool GraphSimulator::differ(ClockId a, ClockId b) const {
  return a != b && (cells_ == nullptr || cells_->change({}, a, b));
}

SwitchCost GraphSimulator::change(const SwitchModel& switching, ClockId from, ClockId to) const {
  return cells_ != nullptr ? cells_->change(switching, from, to).value_or(SwitchCost{})
                           : switching.change(clocks_[index(from)], clocks_[index(to)]);
}

void GraphSimulator::check_timed(const GraphPlan& plan) const {
  if (plan.timed.empty()) return;
  bool fits = plan.timed.size() == graph_->gpus().size();
  for (const auto& clocks : plan.timed) {
    fits &= !clocks.empty() && std::ranges::is_sorted(clocks, {}, &TimedClock::from_s);
    for (const TimedClock& one : clocks)
      fits &= one.from_s >= 0.0 && index(one.clock) < clock_count_;
  }
  if (!fits) throw DataError("the plan's clocks by time do not fit the GPUs, or are out of order");
}

GraphRun GraphSimulator::run(const GraphPlan& plan, const GraphRunOptions& options) {
  if (plan.clock_of_activity.size() != graph_->size()) {
    throw DataError(fmt::format("the plan has {} clocks; expected {}, one per activity",
                                plan.clock_of_activity.size(), graph_->size()));
  }
  for (const ClockId clock : plan.clock_of_activity) {
    if (index(clock) >= clock_count_)
      throw DataError(
          fmt::format("the plan asks for clock {}; there are {}", index(clock), clock_count_));
  }
  check_timed(plan);
  validate(options.switching);
  assert(!plan.asked_ahead || (cells_ != nullptr && plan.timed.empty()));
  if (options.after != nullptr && (cells_ != nullptr || !options.switching.is_free())) {
    assert(options.after->left_behind.size() == graph_->gpus().size());
    return GraphReplay(*this, plan, options, options.after->left_behind).run();
  }
  const auto asked = [&](RunEnd end) {
    return asked_clocks(*graph_, main_stream_,
                        cells_ != nullptr ? std::span<const double>() : model_->work(), plan, end);
  };
  // With cells, the change from the last launch's clock to the first one's counts even if free.
  if (options.switching.is_free())
    return GraphReplay(*this, plan, options,
                       asked(cells_ != nullptr ? RunEnd::last : RunEnd::first))
        .run();
  const std::vector<HeldClock> assumed = asked(RunEnd::last);
  GraphRun found = GraphReplay(*this, plan, options, assumed).run();
  // The next run meets what this one leaves behind: another clock, a change under way, a dwell.
  const std::vector<HeldClock>& held = found.left_behind;
  bool as_assumed = true;
  for (std::size_t g = 0; g < held.size(); ++g) {
    const bool changed = found.gpus[g].clock_changes > 0 || found.gpus[g].late_launches > 0;
    as_assumed &= held[g].clock == assumed[g].clock &&
                  !(changed && options.switching.may_delay()) && !(held[g].stalled_until_s > 0.0);
  }
  return as_assumed ? found : GraphReplay(*this, plan, options, held).run();
}

}  // namespace rubato
