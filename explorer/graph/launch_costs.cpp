#include "explorer/graph/launch_costs.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "common/algorithms/parallel.hpp"
#include "sim/sharing/shared_gpu.hpp"

namespace rubato {

namespace {

// Of a kernel's power, what runs beside it does not draw again.
double running_idle_w(const GraphModel& model, const ClockPair& clock, ThrottleId throttle) {
  const GpuSpec& spec = model.spec();
  return model.power_factor(throttle) *
         idle_power_w(spec, spec.mem_states[index(clock.mem)],
                      effective_core_mhz(spec, model.held_clock(clock, throttle)));
}

}  // namespace

LaunchCosts::LaunchCosts(const GraphModel& model, const ClockGrid& grid,
                         std::vector<double> slowdown)
    : model_(&model), clocks_(grid.size()), slowdown_(std::move(slowdown)) {
  const ExecutionGraph& graph = model.graph();
  slowdown_.resize(graph.size(), 1.0);
  least_w_ = std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < model.throttles(); ++t) {
    for (const ClockPair& clock : grid.pairs()) {
      idle_w_.push_back(model.idle_power_w(clock, id_at<ThrottleId>(t)));
      least_w_ = std::min(least_w_, idle_w_.back());
    }
  }

  const std::size_t kernels = model.throttles() * graph.kernels().size();
  time_s_.resize(kernels * clocks_);
  active_j_.resize(kernels * clocks_);
  running_w_.resize(kernels * clocks_);
  surplus_j_.resize(kernels * clocks_);
  useful_.resize(useful_sets * kernels);
  parallel_for(kernels, [&](std::size_t k) { add_kernel(grid, k); });
  compare_clocks();

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

// Kernels of the first throttle come first. A kernel may leave parts of the GPU asleep that an idle
// GPU keeps awake, and where the power limit holds it, it draws no more than it does in all.
void LaunchCosts::add_kernel(const ClockGrid& grid, std::size_t kernel) {
  const std::size_t different = model_->graph().kernels().size();
  const auto id = id_at<KernelId>(kernel % different);
  const auto throttle = id_at<ThrottleId>(kernel / different);
  const double idle_scale = model_->coefficients()[index(id)].idle_scale;
  for (std::size_t c = 0; c < clocks_; ++c) {
    const ClockPair& clock = grid.pairs()[c];
    const OperatingPoint point = model_->evaluate(id, clock, throttle);
    const std::size_t at = kernel * clocks_ + c;
    time_s_[at] = point.time_s;
    running_w_[at] = std::min(running_idle_w(*model_, clock, throttle) * idle_scale,
                              point.energy_j / point.time_s);
    active_j_[at] = std::max(point.energy_j - running_w_[at] * point.time_s, 0.0);
  }
}

// What follows from the least idle power: it counts for the whole run, and only what is beyond it
// counts for a launch.
void LaunchCosts::compare_clocks() {
  for (const double idle_w : running_w_) least_w_ = std::min(least_w_, idle_w);
  least_idle_w_ =
      (least_w_ + model_->host_power_w()) * static_cast<double>(model_->graph().gpus().size());
  for (std::size_t at = 0; at < running_w_.size(); ++at)
    surplus_j_[at] = (running_w_[at] - least_w_) * time_s_[at];
  parallel_for(kernels(), [&](std::size_t k) { find_useful_clocks(k); });
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
    useful.clear();
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

namespace {

using KernelSet = std::vector<std::uint32_t>;   // of LaunchCosts, ascending
using StreamKernels = std::set<std::uint32_t>;  // of LaunchCosts

// Kernels of each stream of each GPU that runs something: launches, and collectives while they hold
// the GPU. Shape [gpus].
std::vector<std::vector<StreamKernels>> kernels_of_streams(const LaunchCosts& costs) {
  const ExecutionGraph& graph = costs.model().graph();
  std::vector<StreamKernels> kernels(graph.streams().size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (activity.stream && (activity.kind == ActivityKind::departure || costs.is_clocked(i)))
      kernels[*activity.stream].insert(costs.kernel_of(i));
  }
  std::vector<std::vector<StreamKernels>> of_gpus(graph.gpus().size());
  for (std::size_t s = 0; s < kernels.size(); ++s) {
    if (!kernels[s].empty())
      of_gpus[index(graph.streams()[s].gpu)].push_back(std::move(kernels[s]));
  }
  return of_gpus;
}

// Whether a GPU has more than two streams, and too many sets of their kernels to try all.
bool has_many_sets(std::span<const StreamKernels> streams) {
  constexpr double most_sets = 1000.0;
  double sets = 1.0;
  for (const StreamKernels& kernels : streams) sets *= 1.0 + static_cast<double>(kernels.size());
  return streams.size() > 2 && sets > most_sets;
}

// Sets of kernels of different streams of one GPU: all of them, or where there are too many, pairs.
std::set<KernelSet> kernels_beside(std::span<const std::vector<StreamKernels>> of_gpus) {
  std::set<KernelSet> beside;
  for (const std::vector<StreamKernels>& streams : of_gpus) {
    const std::size_t most = has_many_sets(streams) ? 2 : streams.size();
    std::set<KernelSet> sets{{}};
    for (const StreamKernels& kernels : streams) {
      const std::vector<KernelSet> before(sets.begin(), sets.end());
      for (const KernelSet& others : before) {
        if (others.size() == most) continue;
        for (const std::uint32_t kernel : kernels) {
          KernelSet set = others;
          set.insert(std::ranges::upper_bound(set, kernel), kernel);
          sets.insert(std::move(set));
        }
      }
    }
    std::erase_if(sets, [](const KernelSet& set) { return set.size() < 2; });
    beside.merge(sets);
  }
  return beside;
}

// The least that a launch takes among others.
struct LeastOfLaunch {
  std::uint32_t kernel = 0;  // of LaunchCosts
  double time_s = 0.0, active_j = 0.0, idle_w = 0.0;
};

// Launches that the power limit may hold among those of other streams. None draws more beside
// others than alone, and what each draws grows with the clock. So they are held no lower than where
// all that may run at once is within the limit, if it is summed up as if alone.
class HeldTogether {
 public:
  HeldTogether(const GraphModel& model, std::span<const StreamKernels> streams)
      : model_(model), streams_(streams) {
    for (const StreamKernels& kernels : streams) {
      for (const std::uint32_t kernel : kernels) {
        most_idle_scale_ = std::max(most_idle_scale_, launch(kernel).idle_scale);
        least_limit_scale_ = std::min(least_limit_scale_, launch(kernel).limit_scale);
      }
    }
  }

  [[nodiscard]] std::vector<LeastOfLaunch> at(const ClockPair& asked, ThrottleId throttle) const {
    constexpr double step = 0.98;  // from one clock that is tried to the next
    const GpuSpec& spec = model_.spec();
    const ClockPair clock = model_.held_clock(asked, throttle);
    const double limit_w = clock.power_limit_w.value_or(model_.power_limit_w()) *
                           spec.power_limit.regulated_frac * least_limit_scale_;
    const double factor = model_.power_factor(throttle);
    const ClockState fastest = clock_state(spec, clock, false);
    const double lowest_mhz = std::min(spec.core.min_mhz, fastest.core_mhz);
    std::vector<StreamKernels> over(streams_.begin(), streams_.end());
    std::vector<LeastOfLaunch> found;
    for (ClockState state = fastest; std::ranges::any_of(over, std::not_fn(&StreamKernels::empty));
         state = clock_state(spec, spec.mem_states[index(clock.mem)],
                             std::max(step * state.core_mhz, lowest_mhz))) {
      std::vector<double> most_w;  // of each stream
      for (const StreamKernels& kernels : streams_) {
        most_w.push_back(0.0);
        for (const std::uint32_t kernel : kernels)
          most_w.back() = std::max(most_w.back(), active_w(kernel, state));
      }
      const double all_w =
          std::reduce(most_w.begin(), most_w.end(), most_idle_scale_ * state.idle_w);
      for (std::size_t s = 0; s < over.size(); ++s) {
        std::erase_if(over[s], [&](std::uint32_t kernel) {
          const double active = active_w(kernel, state);
          const bool within = all_w - most_w[s] + active <= limit_w;
          if (!within && state.core_mhz > lowest_mhz) return false;
          if (within && state.core_mhz == fastest.core_mhz) return true;  // nothing holds it
          found.push_back({kernel, unlimited_point(fastest, launch(kernel)).time_s,
                           factor * active * unlimited_point(state, launch(kernel)).time_s,
                           factor * state.idle_w * launch(kernel).idle_scale});
          return true;
        });
      }
    }
    return found;
  }

 private:
  [[nodiscard]] const KernelCoefficients& launch(std::uint32_t kernel) const {
    return model_.coefficients()[kernel % model_.graph().kernels().size()];
  }
  [[nodiscard]] double active_w(std::uint32_t kernel, const ClockState& state) const {
    const OperatingPoint point = unlimited_point(state, launch(kernel));
    return point.energy_j / point.time_s - state.idle_w * launch(kernel).idle_scale;
  }

  const GraphModel& model_;
  std::span<const StreamKernels> streams_;
  double most_idle_scale_ = 0.0, least_limit_scale_ = std::numeric_limits<double>::infinity();
};

}  // namespace

// Where launches of several streams reach the power limit together, the GPU's clock falls for all,
// to one that need not be in the grid. There a launch may take less energy than alone at any clock.
// So each cell has the least time, energy and idle power that a launch has alone or beside others:
// those of each set of kernels, or where there are too many, of each pair and of HeldTogether.
LaunchCosts LaunchCosts::for_bounds(const GraphModel& model, const ClockGrid& grid) {
  LaunchCosts costs(model, grid);
  const auto different = static_cast<std::uint32_t>(model.graph().kernels().size());
  const std::vector<std::vector<StreamKernels>> of_gpus = kernels_of_streams(costs);
  const std::set<KernelSet> sets = kernels_beside(of_gpus);
  bool lowered = false;
  const auto lower = [&](std::size_t clock, const LeastOfLaunch& found) {
    constexpr double sum_rounding = 1e-12;
    const std::size_t at = found.kernel * grid.size() + clock;
    for (const auto& [least, one] : {std::pair(&costs.time_s_[at], found.time_s),
                                     std::pair(&costs.active_j_[at], found.active_j),
                                     std::pair(&costs.running_w_[at], found.idle_w)}) {
      if (one >= *least * (1.0 - sum_rounding)) continue;
      *least = one;
      lowered = true;
    }
  };
  for (std::size_t cell = 0; cell < model.throttles() * grid.size(); ++cell) {
    const std::size_t c = cell % grid.size();
    const auto throttle = id_at<ThrottleId>(cell / grid.size());
    SharedGpu gpu = model.shared_gpu(grid.pairs()[c], throttle);
    for (const KernelSet& set : sets) {
      if (set.front() / different != index(throttle)) continue;
      KernelSet running = set;
      for (std::uint32_t& kernel : running) kernel %= different;
      const Sharing& sharing = gpu.at(running);
      for (std::size_t n = 0; n < set.size(); ++n) {
        const double time_s = 1.0 / sharing.launches_per_s[n];
        lower(c, {set[n], time_s, sharing.active_w[n] * time_s, sharing.idle_w});
      }
    }
    for (std::size_t g = 0; g < of_gpus.size(); ++g) {
      if (!has_many_sets(of_gpus[g]) || model.throttle_of(id_at<GpuId>(g)) != throttle) continue;
      for (const LeastOfLaunch& one : HeldTogether(model, of_gpus[g]).at(grid.pairs()[c], throttle))
        lower(c, one);
    }
  }
  if (lowered) costs.compare_clocks();
  return costs;
}

std::vector<double> slowdown_in(const LaunchCosts& costs, const GraphRun& run, ClockId clock) {
  std::vector<double> slowdown(run.start_s.size(), 1.0);
  for (std::size_t i = 0; i < slowdown.size(); ++i) {
    if (!costs.is_clocked(i)) continue;
    slowdown[i] = std::max((run.end_s[i] - run.start_s[i]) / costs.time_s(i, clock), 1.0);
  }
  return slowdown;
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
