#include "explorer/graph/parallel_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "common/algorithms/sort_by.hpp"
#include "explorer/graph/late_passes.hpp"
#include "explorer/graph/uniform_sweep.hpp"

namespace rubato {

namespace {

// What a pass takes: launches in the main stream, and the pauses between them.
struct PassCost {
  std::map<KernelId, double> launches;  // how many, each times its slowdown
  ThrottleId throttle;
  double begin_s = std::numeric_limits<double>::infinity();
  double end_s = 0.0, compute_s = 0.0;

  [[nodiscard]] double waiting_s() const { return std::max(end_s - begin_s - compute_s, 0.0); }
};

PassType type_of(const GraphModel& model, const ClockGrid& grid, std::span<const ClockId> clocks,
                 const PipelinePass& pass, const PassCost& cost) {
  PassType type{pass.stage, pass.kind, {}};
  for (const ClockId clock : clocks) {
    const ClockPair& pair = grid[clock];
    const double idle_w = model.idle_power_w(pair, cost.throttle);
    ClockOption option{
        .core_mhz = effective_core_mhz(model.spec(), model.held_clock(pair, cost.throttle)),
        .time_s = cost.waiting_s(),
        .energy_j = idle_w * cost.waiting_s(),
        .mem_mhz = model.spec().mem_states[index(pair.mem)].mem_mhz};
    for (const auto& [kernel, count] : cost.launches) {
      const OperatingPoint point = model.evaluate(kernel, pair, cost.throttle);
      option.time_s += count * point.time_s;
      option.energy_j += count * point.energy_j;
    }
    type.options.push_back(option);
  }
  return type;
}

// Gives dependencies between passes of two stages the time of a message between the two, alone: the
// shortest there is.
void add_messages(const GraphModel& model, std::uint64_t ranks_of_stage,
                  PipelineSchedule& schedule) {
  const ExecutionGraph& graph = model.graph();
  std::map<std::pair<std::uint64_t, std::uint64_t>, double> least_s;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& transfer = graph.activities()[i];
    if (transfer.kind != ActivityKind::transfer) continue;
    // Stages share collectives too: the gradients of tied tables are no message.
    const auto& sent = graph.kernels()[index(transfer.kernel)].collective;
    if (!sent || sent->kind != CollectiveKind::send_recv) continue;
    const auto sides = graph.arcs_into(id_at<ActivityId>(i));
    const auto stage_of = [&](const GraphArc& arc) -> std::uint64_t {
      return graph[arc.from].rank / ranks_of_stage;
    };
    const std::pair<std::uint64_t, std::uint64_t> ends =
        std::minmax(stage_of(sides.front()), stage_of(sides.back()));
    const double time_s = model.transfer_s(i);
    const auto [at, added] = least_s.emplace(ends, time_s);
    if (!added) at->second = std::min(at->second, time_s);
  }
  for (Dependency& one : schedule.dependencies) {
    const std::uint64_t from = schedule.passes[index(one.from)].stage;
    const std::uint64_t to = schedule.passes[index(one.to)].stage;
    const auto message = least_s.find(std::minmax(from, to));
    if (message != least_s.end()) one.lag_s = message->second;
  }
}

}  // namespace

ParallelPlanner::ParallelPlanner(const ParallelStepInput& input, const std::string& grid,
                                 const GraphDisturbance& disturbance)
    : step_(parallel_step(input)),
      graph_(capture_graph(step_.stages)),
      model_(std::make_unique<const GraphModel>(
          disturbed(GraphModel(graph_.graph, input.spec, input.spec.default_clock), disturbance))),
      grid_(make_clock_grid(input.spec, grid)),
      simulator_(*model_, grid_),
      baseline_(simulator_.run(uniform_plan(graph_.graph, grid_.default_clock()))),
      pass_of_activity_(graph_.graph.size()) {
  for (std::size_t s = 0; s < step_.stages.size(); ++s) {
    for (std::size_t i = 0; i < step_.pass_of_launch[s].size(); ++i)
      pass_of_activity_[index(graph_.activity_of_launch[s][i])] = step_.pass_of_launch[s][i];
  }
  make_work(slowdown_of(graph_.graph, disturbance), input.gpus() / input.pipeline.stages);
}

// Passes as the planner of pipelines takes them: at each clock the sums of their kernels, and the
// pauses within them.
void ParallelPlanner::make_work(const std::vector<double>& slowdown, std::uint64_t ranks_of_stage) {
  const ExecutionGraph& graph = graph_.graph;
  std::vector<PassCost> costs(step_.schedule.passes.size());
  const std::vector<std::uint32_t> main = main_streams(graph);
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Activity& activity = graph.activities()[i];
    if (!pass_of_activity_[i] || activity.kind != ActivityKind::launch) continue;
    PassCost& cost = costs[*pass_of_activity_[i]];
    if (main[index(*graph.gpu_of(activity))] != *activity.stream) continue;
    cost.throttle = model_->throttle_of(*graph.gpu_of(activity));
    cost.launches[activity.kernel] += slowdown[i];
    cost.begin_s = std::min(cost.begin_s, baseline_.start_s[i]);
    cost.end_s = std::max(cost.end_s, baseline_.end_s[i]);
    cost.compute_s += baseline_.end_s[i] - baseline_.start_s[i];
  }
  clock_of_option_ = {grid_.default_clock()};
  for (std::size_t c = 0; c < grid_.size(); ++c)
    if (id_at<ClockId>(c) != grid_.default_clock()) clock_of_option_.push_back(id_at<ClockId>(c));
  double idle_w = std::numeric_limits<double>::infinity();
  for (const ClockId clock : clock_of_option_)
    idle_w = std::min(idle_w, model_->idle_power_w(grid_[clock]));
  work_ = {.schedule = step_.schedule, .types = {}, .type_of_pass = {}, .blocked_power_w = idle_w};
  add_messages(*model_, ranks_of_stage, work_.schedule);
  std::map<std::tuple<std::uint32_t, std::uint32_t, PassKind>, PassTypeId> known;
  for (std::size_t p = 0; p < costs.size(); ++p) {
    const PipelinePass& pass = step_.schedule.passes[p];
    const auto [at, added] = known.emplace(std::tuple(pass.stage, pass.chunk, pass.kind),
                                           id_at<PassTypeId>(work_.types.size()));
    if (added) work_.types.push_back(type_of(*model_, grid_, clock_of_option_, pass, costs[p]));
    work_.type_of_pass.push_back(at->second);
  }
}

GraphPlan ParallelPlanner::graph_plan(const PipelinePlan& plan) const {
  GraphPlan found = uniform_plan(graph_.graph, grid_.default_clock());
  for (std::size_t i = 0; i < pass_of_activity_.size(); ++i) {
    if (!pass_of_activity_[i]) continue;
    found.clock_of_activity[i] =
        clock_of_option_[index(plan.option_of_pass[*pass_of_activity_[i]])];
  }
  found.only_main_streams_ask = true;
  return found;
}

// Speeds passes up, least energy for each second first, until they gain what is missing.
// @return whether any could be
bool ParallelPlanner::speed_up(PipelinePlan& plan, const std::set<std::uint32_t>& passes,
                               double missing_s) const {
  struct Step {
    double price_w = 0.0, gain_s = 0.0;
    std::uint32_t pass = 0;
    OptionId to;
  };
  std::vector<Step> steps;
  for (const std::uint32_t pass : passes) {
    const std::vector<ClockOption>& options = work_.type_of(PassId{pass}).options;
    const ClockOption& now = options[index(plan.option_of_pass[pass])];
    Step best{std::numeric_limits<double>::infinity(), 0.0, pass, {}};
    for (std::size_t o = 0; o < options.size(); ++o) {
      const double gain_s = now.time_s - options[o].time_s;
      if (gain_s <= 0.0) continue;
      const double price_w = (options[o].energy_j - now.energy_j) / gain_s;
      if (price_w < best.price_w) best = {price_w, gain_s, pass, id_at<OptionId>(o)};
    }
    if (best.gain_s > 0.0) steps.push_back(best);
  }
  sort_by(steps, &Step::price_w);
  for (const Step& step : steps) {
    plan.option_of_pass[step.pass] = step.to;
    missing_s -= step.gain_s;
    if (missing_s <= 0.0) break;
  }
  return !steps.empty();
}

// The planner of pipelines knows nothing of what runs beside passes and between them. Where the
// graph ends late, passes on its critical path are sped up. Where those are at their fastest, it is
// the turn of passes that keep messages beside them waiting.
void ParallelPlanner::keep_in_time(ParallelPlan& best, PipelinePlan plan,
                                   const RunContext& context) {
  constexpr int most_repairs = 80;
  constexpr double rounding = 1e-9;
  constexpr double slowed_by = 8.0;  // a waiting message slows kernels by about an eighth
  const double allowed_s = (1.0 + best.slack_frac + rounding) * baseline_.span_s;
  const LatePasses late_passes(graph_.graph, baseline_, pass_of_activity_);
  const PipelinePlan wanted = plan;
  for (int i = 0; i < most_repairs && !context.stop_requested(); ++i) {
    const GraphRun run = simulator_.run(graph_plan(plan));
    if (run.span_s <= allowed_s) {
      if (i == 0) return keep_if_better(best, graph_plan(plan), {run.span_s, run.total_energy_j});
      give_back(plan, wanted, allowed_s, context);
      return keep_if_better(best, plan);
    }
    // Once one late path is shorter, another is the longest: from round to round more at once.
    double missing_s = (1.0 + 0.25 * i) * (run.span_s - allowed_s);
    bool sped_up = false;
    for (const std::set<std::uint32_t>& passes : late_passes.of(run)) {
      sped_up = speed_up(plan, passes, missing_s);
      if (sped_up) break;
      missing_s *= slowed_by;
    }
    if (!sped_up) break;
  }
  // Still late: the default clocks, and as much of the plan as ends in time.
  PipelinePlan in_time = plan;
  std::ranges::fill(in_time.option_of_pass, OptionId{0});
  give_back(in_time, plan, allowed_s, context);
  keep_if_better(best, in_time);
}

// Repairs may speed up more than was needed. Passes get the clocks back that were wanted, as long
// as the step ends in time: many passes at once, then fewer.
void ParallelPlanner::give_back(PipelinePlan& plan, const PipelinePlan& wanted, double allowed_s,
                                const RunContext& context) {
  constexpr std::size_t most_trials = 64, least_trials = 12, most_replayed = 2'000'000;
  std::vector<std::uint32_t> passes;
  for (std::uint32_t p = 0; p < wanted.option_of_pass.size(); ++p)
    if (plan.option_of_pass[p] != wanted.option_of_pass[p]) passes.push_back(p);
  std::size_t trials = std::clamp(most_replayed / graph_.graph.size(), least_trials, most_trials);
  for (std::size_t many = (passes.size() + 1) / 2; many > 0; many /= 2) {
    std::vector<std::uint32_t> kept;
    for (std::size_t first = 0; first < passes.size(); first += many) {
      const auto part = std::span(passes).subspan(first, std::min(many, passes.size() - first));
      PipelinePlan slower = plan;
      for (const std::uint32_t p : part) slower.option_of_pass[p] = wanted.option_of_pass[p];
      const bool tried = trials > 0 && !context.stop_requested();
      if (tried) --trials;
      if (tried && simulator_.run(graph_plan(slower)).span_s <= allowed_s) {
        plan = std::move(slower);
      } else {
        kept.insert(kept.end(), part.begin(), part.end());
      }
    }
    passes = std::move(kept);
  }
}

void ParallelPlanner::keep_if_better(ParallelPlan& best, const PipelinePlan& plan) {
  GraphPlan found = graph_plan(plan);
  const GraphRun run = simulator_.run(found);
  keep_if_better(best, std::move(found), {run.span_s, run.total_energy_j});
}

void ParallelPlanner::keep_if_better(ParallelPlan& best, GraphPlan plan,
                                     const Replayed& run) const {
  const double energy_frac = run.energy_j / baseline_.total_energy_j - 1.0;
  if (energy_frac >= best.energy_frac) return;
  best = {best.slack_frac, std::move(plan), run.span_s / baseline_.span_s - 1.0, energy_frac};
}

std::vector<ParallelPlan> ParallelPlanner::plan(std::span<const double> slacks_frac,
                                                const RunContext& context) {
  const PipelinePlanner passes(work_, {}, context);
  const std::vector<UniformRun> uniform = sweep_uniform(*model_, grid_, context);
  std::vector<ParallelPlan> plans;
  for (const double slack_frac : slacks_frac) {
    ParallelPlan best{slack_frac, uniform_plan(graph_.graph, grid_.default_clock()), 0.0, 0.0};
    for (const UniformRun& run : uniform) {
      if (run.span_s <= (1.0 + slack_frac) * baseline_.span_s)
        keep_if_better(best, uniform_plan(graph_.graph, run.clock), {run.span_s, run.energy_j});
    }
    const double deadline_s = passes.baseline().time_s + slack_frac * baseline_.span_s;
    const PipelineResult found = passes.plan({&deadline_s, 1}, AfterEnd::go_on, context).front();
    if (found.status != SolveStatus::infeasible) keep_in_time(best, found.plan, context);
    plans.push_back(std::move(best));
  }
  // What is in time for less is in time for more.
  for (ParallelPlan& plan : plans) {
    for (const ParallelPlan& other : plans) {
      if (other.time_frac > plan.slack_frac || other.energy_frac >= plan.energy_frac) continue;
      plan = {plan.slack_frac, other.plan, other.time_frac, other.energy_frac};
    }
  }
  return plans;
}

}  // namespace rubato
