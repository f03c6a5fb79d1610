#include "explorer/graph/plan_error.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "common/numbers.hpp"
#include "explorer/confidence.hpp"

namespace rubato {

namespace {

// Campaigns are of measured kernels: intervals of captured ones they may widen, not narrow.
RelativeErrors scale_of_captured(const GpuSpec& spec) {
  const RelativeErrors scale = model_errors(spec).scales.plans;
  return {std::max(1.0, scale.time), std::max(1.0, scale.energy)};
}

// Launches of one kernel that are as far from the default clocks.
struct Part {
  KernelId kernel;
  double reach = 0.0;
  double path_s = 0.0;  // on the path that ends last
  double energy_j = 0.0;
};

PlanChange change_of(std::span<const Part> parts, std::span<const Cost> logarithms,
                     const GraphRun& run) {
  double later_s = 0.0, more_j = 0.0;
  for (const Part& part : parts) {
    const Cost& log = logarithms[index(part.kernel)];
    later_s += part.path_s * std::expm1(part.reach * log.time_s);
    more_j += part.energy_j * std::expm1(part.reach * log.energy_j);
  }
  return {later_s / run.span_s, more_j / run.total_energy_j};
}

}  // namespace

std::vector<ActivityId> last_path(const ExecutionGraph& graph, const GraphRun& run) {
  std::vector<ActivityId> path;
  if (run.end_s.empty()) return path;
  const auto last = std::ranges::max_element(run.end_s) - run.end_s.begin();
  path.push_back(id_at<ActivityId>(static_cast<std::size_t>(last)));
  const auto ready_s = [&](const GraphArc& arc) { return run.end_s[index(arc.from)] + arc.lag_s; };
  while (true) {
    const std::span<const GraphArc> arcs = graph.arcs_into(path.back());
    if (arcs.empty()) return path;
    path.push_back(std::ranges::max_element(arcs, {}, ready_s)->from);
  }
}

PlanErrors::PlanErrors(const GraphModel& model, const ClockGrid& grid)
    : model_(model),
      scale_(scale_of_captured(model.spec())),
      draws_(draw_change_errors(model_errors(model.spec()), drawn_models,
                                model.graph().kernels().size())) {
  for (std::size_t c = 0; c < grid.size(); ++c)
    reach_of_clock_.push_back(error_reach(model.spec(), grid, id_at<ClockId>(c)));
}

PlanError PlanErrors::of(const GraphPlan& plan, const GraphRun& run) const {
  const ExecutionGraph& graph = model_.graph();
  std::map<std::pair<KernelId, double>, Part> parts;
  const auto part_of = [&](std::size_t activity) -> Part* {
    const double reach = reach_of_clock_[index(plan.clock_of_activity[activity])];
    if (model_.work()[activity] <= 0.0 || reach == 0.0) return nullptr;
    const KernelId kernel = graph.activities()[activity].kernel;
    return &parts.try_emplace({kernel, reach}, Part{.kernel = kernel, .reach = reach})
                .first->second;
  };
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (Part* part = part_of(i)) part->energy_j += run.energy_j[i];
  }
  for (const ActivityId activity : last_path(graph, run)) {
    const std::size_t i = index(activity);
    if (Part* part = part_of(i)) part->path_s += run.end_s[i] - run.start_s[i];
  }
  std::vector<Part> list;
  for (const auto& [key, part] : parts) list.push_back(part);

  const std::size_t kernels = graph.kernels().size();
  if (list.empty()) return {};
  std::vector<double> time, energy;
  for (std::size_t first = 0; first < draws_.size(); first += kernels) {
    const PlanChange change = change_of(list, std::span(draws_).subspan(first, kernels), run);
    time.push_back(change.time_frac);
    energy.push_back(change.energy_frac);
  }
  const SavingInterval found = scaled_interval(
      {interval_of(std::move(time)), interval_of(std::move(energy))}, scale_, {0.0, 0.0});
  return {{found.time.low_pct, found.energy.low_pct}, {found.time.high_pct, found.energy.high_pct}};
}

}  // namespace rubato
