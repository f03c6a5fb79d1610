#include "explorer/graph/launch_costs.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "common/algorithms/parallel.hpp"

namespace rubato {

namespace {

// Of a kernel's power, what runs beside it does not draw again.
double running_idle_w(const GraphModel& model, const ClockPair& clock, ThrottleId throttle) {
  const GpuSpec& spec = model.spec();
  return idle_power_w(spec, spec.mem_states[index(clock.mem)],
                      effective_core_mhz(spec, model.held_clock(clock, throttle)));
}

}  // namespace

LaunchCosts::LaunchCosts(const GraphModel& model, const ClockGrid& grid,
                         std::vector<double> slowdown)
    : model_(&model), clocks_(grid.size()), slowdown_(std::move(slowdown)) {
  const ExecutionGraph& graph = model.graph();
  slowdown_.resize(graph.size(), 1.0);
  least_w_ = std::numeric_limits<double>::infinity();
  // Some kernels leave parts of the GPU asleep that an idle GPU keeps awake.
  double least_scale = 1.0;
  for (const KernelCoefficients& kernel : model.coefficients())
    least_scale = std::min(least_scale, kernel.idle_scale);
  for (std::size_t t = 0; t < model.throttles(); ++t) {
    for (const ClockPair& clock : grid.pairs()) {
      idle_w_.push_back(model.idle_power_w(clock, id_at<ThrottleId>(t)));
      running_w_.push_back(running_idle_w(model, clock, id_at<ThrottleId>(t)));
      least_w_ = std::min({least_w_, idle_w_.back(), least_scale * running_w_.back()});
    }
  }
  least_idle_w_ = (least_w_ + model.host_power_w()) * static_cast<double>(graph.gpus().size());

  const std::size_t kernels = model.throttles() * graph.kernels().size();
  time_s_.resize(kernels * clocks_);
  active_j_.resize(kernels * clocks_);
  useful_.resize(useful_sets * kernels);
  surplus_j_.resize(kernels * clocks_);
  parallel_for(kernels, [&](std::size_t k) { add_kernel(grid, k); });

  const std::vector<std::uint32_t> main_stream = main_streams(graph);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    fixed_s_.push_back(model.transfer_s(i));
    const auto gpu = graph.gpu_of(activity);
    on_main_.push_back(gpu && main_stream[index(*gpu)] == *activity.stream);
    const std::size_t throttle = gpu ? index(model.throttle_of(*gpu)) : 0;
    kernel_of_.push_back(static_cast<std::uint32_t>(throttle * graph.kernels().size()) +
                         activity.kernel.value);
  }
  find_held_lags();
}

// Kernels of the first throttle come first.
void LaunchCosts::add_kernel(const ClockGrid& grid, std::size_t kernel) {
  const std::size_t different = model_->graph().kernels().size();
  const auto id = id_at<KernelId>(kernel % different);
  const std::size_t throttle = kernel / different;
  const double idle_scale = model_->coefficients()[index(id)].idle_scale;
  for (std::size_t c = 0; c < clocks_; ++c) {
    const OperatingPoint point = model_->evaluate(id, grid.pairs()[c], id_at<ThrottleId>(throttle));
    const std::size_t at = kernel * clocks_ + c;
    const double idle_w = running_w_[throttle * clocks_ + c] * idle_scale;
    time_s_[at] = point.time_s;
    active_j_[at] = std::max(point.energy_j - idle_w * point.time_s, 0.0);
    surplus_j_[at] = std::max(idle_w - least_w_, 0.0) * point.time_s;
  }
  find_useful_clocks(kernel);
}

void LaunchCosts::find_held_lags() {
  const ExecutionGraph& graph = model_->graph();
  held_after_s_.resize(graph.size(), 0.0);
  std::vector<bool> alone(graph.gpus().size(), true);  // the main stream has all launches
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (is_clocked(i) && !on_main_[i]) alone[index(*graph.gpu_of(graph.activities()[i]))] = false;
  }
  for (std::size_t i = 0; i < graph.size(); ++i) {
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      const std::size_t from = index(arc.from);
      if (arc.kind == ArcKind::stream_order && is_clocked(from) &&
          alone[index(*graph.gpu_of(graph[arc.from]))])
        held_after_s_[from] = std::max(held_after_s_[from], arc.lag_s);
    }
  }
}

double LaunchCosts::least_active_w(std::size_t activity) const {
  double least_w = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < clocks_; ++c) {
    const std::size_t at = cell(activity, id_at<ClockId>(c));
    least_w = std::min(least_w, active_j_[at] / time_s_[at]);
  }
  return least_w;
}

void LaunchCosts::find_useful_clocks(std::size_t kernel) {
  std::vector<ClockId> order;
  for (std::size_t c = 0; c < clocks_; ++c) order.push_back(id_at<ClockId>(c));
  for (const Useful set : {Useful::beside, Useful::on_main, Useful::holding}) {
    const auto cost = [&](ClockId clock) {
      const std::size_t at = kernel * clocks_ + index(clock);
      return active_j_[at] + (set == Useful::beside ? 0.0 : surplus_j_[at]);
    };
    std::ranges::sort(order, {}, [&](ClockId clock) {
      return std::tuple(time_s_[kernel * clocks_ + index(clock)], cost(clock), clock);
    });
    std::vector<ClockId>& useful = useful_[useful_sets * kernel + static_cast<std::size_t>(set)];
    for (const ClockId clock : order) {
      // Beaten by a faster one that costs no more; where the clock is held, in any lag too.
      const bool beaten = std::ranges::any_of(useful, [&](ClockId other) {
        return cost(other) <= cost(clock) &&
               (set != Useful::holding || surplus_w(kernel, other) <= surplus_w(kernel, clock));
      });
      if (!beaten) useful.push_back(clock);
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

DurationRange::DurationRange(const LaunchCosts& costs) {
  const GraphModel& model = costs.model();
  for (std::size_t i = 0; i < model.graph().size(); ++i) {
    double least = costs.time_s(i, ClockId{0});
    double most = std::max(least, model.transfer_s(i, model.spec().core.min_mhz));
    for (std::size_t c = 1; costs.is_clocked(i) && c < costs.clocks(); ++c) {
      const double time_s = costs.time_s(i, id_at<ClockId>(c));
      least = std::min(least, time_s);
      most = std::max(most, time_s);
    }
    least_s.push_back(least);
    most_s.push_back(most);
  }
}

std::vector<double> times_to_end_s(const ExecutionGraph& graph,
                                   const std::vector<double>& duration_s) {
  std::vector<double> to_end_s = duration_s;
  for (std::size_t i = graph.size(); i-- > 0;) {
    for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) {
      const std::size_t from = index(arc.from);
      to_end_s[from] = std::max(to_end_s[from], duration_s[from] + arc.lag_s + to_end_s[i]);
    }
  }
  return to_end_s;
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
