#include "explorer/graph/launch_costs.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include <tbb/parallel_for.h>

namespace rubato {

LaunchCosts::LaunchCosts(const GraphModel& model, const ClockGrid& grid,
                         std::vector<double> slowdown)
    : model_(&model), clocks_(grid.size()), slowdown_(std::move(slowdown)) {
  const ExecutionGraph& graph = model.graph();
  slowdown_.resize(graph.size(), 1.0);
  double least_w = std::numeric_limits<double>::infinity();
  std::vector<double> idle_w;
  for (const ClockPair& clock : grid.pairs()) {
    idle_w.push_back(model.idle_power_w(clock));
    least_w = std::min(least_w, idle_w.back());
  }
  // Some kernels leave units asleep that an idle GPU keeps awake.
  double least_scale = 1.0;
  for (const KernelCoefficients& kernel : model.coefficients())
    least_scale = std::min(least_scale, kernel.idle_scale);
  least_w *= least_scale;
  least_idle_w_ = least_w * static_cast<double>(graph.gpus().size());

  const std::size_t kernels = graph.kernels().size();
  time_s_.resize(kernels * clocks_);
  active_j_.resize(kernels * clocks_);
  useful_.resize(2 * kernels);
  surplus_j_.resize(kernels * clocks_);
  tbb::parallel_for(std::size_t{0}, kernels, [&](std::size_t k) {
    const double idle_scale = model.coefficients()[k].idle_scale;
    for (std::size_t c = 0; c < clocks_; ++c) {
      const OperatingPoint point = model.evaluate(id_at<KernelId>(k), grid.pairs()[c]);
      const std::size_t at = k * clocks_ + c;
      time_s_[at] = point.time_s;
      active_j_[at] = std::max(point.energy_j - idle_w[c] * idle_scale * point.time_s, 0.0);
      surplus_j_[at] = std::max(idle_w[c] * idle_scale - least_w, 0.0) * point.time_s;
    }
    find_useful_clocks(k);
  });

  const std::vector<std::uint32_t> main_stream = main_streams(graph);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    fixed_s_.push_back(activity.kind == ActivityKind::transfer ? activity.duration_s : 0.0);
    const auto gpu = graph.gpu_of(activity);
    on_main_.push_back(gpu && main_stream[index(*gpu)] == *activity.stream);
  }
}

void LaunchCosts::find_useful_clocks(std::size_t kernel) {
  std::vector<ClockId> order;
  for (std::size_t c = 0; c < clocks_; ++c) order.push_back(id_at<ClockId>(c));
  for (const bool on_main : {false, true}) {
    const auto cost = [&](ClockId clock) {
      const std::size_t at = kernel * clocks_ + index(clock);
      return active_j_[at] + (on_main ? surplus_j_[at] : 0.0);
    };
    std::ranges::sort(order, {}, [&](ClockId clock) {
      return std::tuple(time_s_[kernel * clocks_ + index(clock)], cost(clock), clock);
    });
    std::vector<ClockId>& useful = useful_[2 * kernel + (on_main ? 1 : 0)];
    for (const ClockId clock : order) {
      if (useful.empty() || cost(clock) < cost(useful.back())) useful.push_back(clock);
    }
  }
}

std::vector<double> slowdown_in(const LaunchCosts& costs, const GraphRun& run, ClockId clock) {
  std::vector<double> slowdown(run.start_s.size(), 1.0);
  for (std::size_t i = 0; i < slowdown.size(); ++i) {
    if (!costs.is_clocked(i)) continue;
    slowdown[i] = std::max((run.end_s[i] - run.start_s[i]) / costs.time_s(i, clock), 1.0);
  }
  return slowdown;
}

PipelineWork launch_work(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  PipelineWork work;
  work.schedule.shape.stages = static_cast<std::uint32_t>(graph.gpus().size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    static constexpr std::array any_clock{ClockId{0}};
    const std::span<const ClockId> clocks =
        costs.is_clocked(i) ? costs.useful_clocks(i) : std::span<const ClockId>(any_clock);
    PassType type;
    type.options.reserve(clocks.size());
    for (const ClockId clock : clocks) {
      type.options.push_back({.core_mhz = 0.0,
                              .time_s = costs.time_s(i, clock),
                              .energy_j = costs.cost_j(i, clock),
                              .mem_mhz = 0.0});
    }
    work.types.push_back(std::move(type));
    work.type_of_pass.push_back(id_at<PassTypeId>(i));
    work.schedule.passes.emplace_back();
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      work.schedule.dependencies.push_back({PassId{arc.from.value}, id_at<PassId>(i), arc.lag_s});
    }
  }
  return work;
}

}  // namespace rubato
