#include "models/validation/model_comparison.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.hpp"
#include "models/alternatives/measured_table.hpp"

namespace rubato {

namespace {

// Kernels that are modelled together: their positions, and what fits may see.
struct Group {
  std::vector<std::size_t> kernels;
  Sweep seen, others;
  std::vector<std::vector<bool>> is_seen;  ///< of every point of every kernel of the group
};

Sweep without_kernels(const Sweep& sweep) {
  Sweep out = sweep;
  out.kernels.clear();
  return out;
}

void add_to(Group& group, const GpuSpec& spec, const Sweep& sweep, std::size_t k,
            std::size_t points) {
  const SweepKernel& kernel = sweep.kernels[k];
  std::vector<bool> seen(kernel.points.size(), false);
  for (const std::size_t i : spread_points(spec, kernel, points)) seen[i] = true;
  SweepKernel part = kernel;
  part.points.clear();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i]) part.points.push_back(kernel.points[i]);
  }
  group.kernels.push_back(k);
  group.is_seen.push_back(std::move(seen));
  group.seen.kernels.push_back(std::move(part));
}

std::vector<Group> groups_of(const GpuSpec& spec, const Sweep& sweep,
                             const ComparisonOptions& options) {
  const std::vector<std::size_t> group_of =
      options.leave_kernels_out ? kernel_groups(sweep.kernels.size(), options.groups)
                                : std::vector<std::size_t>(sweep.kernels.size(), 0);
  std::vector<Group> groups(std::ranges::max(group_of) + 1);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].seen = groups[g].others = without_kernels(sweep);
    for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
      if (group_of[k] == g)
        add_to(groups[g], spec, sweep, k, options.points);
      else
        groups[g].others.kernels.push_back(sweep.kernels[k]);
    }
  }
  return groups;
}

// Adds what a model says of the kernels of a group to what it says of other groups.
void test_on(const Group& group, const CellModel& model, const Sweep& sweep, ComparedModel& out) {
  const ModelFit& fit = model.fit();
  const bool first = out.fit.most_points == 0;
  const std::size_t least = first ? fit.least_points : out.fit.least_points;
  const std::size_t most = std::max(out.fit.most_points, fit.most_points);
  out.fit = fit;
  out.fit.least_points = std::min(least, fit.least_points);
  out.fit.most_points = most;
  for (std::size_t g = 0; g < group.kernels.size(); ++g) {
    const SweepKernel& kernel = sweep.kernels[group.kernels[g]];
    std::vector<OperatingPoint>& cells = out.cells[group.kernels[g]];
    for (std::size_t i = 0; i < kernel.points.size(); ++i) {
      cells.push_back(model.at(g, kernel.points[i].clock));
      if (!group.is_seen[g][i])
        out.held_out.push_back({kernel.name, kernel.points[i], cells.back()});
    }
  }
}

// The part of a sweep that can be compared: kernels of which points can be held out.
Sweep testable(const GpuSpec& spec, const Sweep& sweep, std::size_t points,
               std::vector<std::string>& notes) {
  Sweep out = one_setting(sweep, spec);
  std::erase_if(out.kernels,
                [&](const SweepKernel& kernel) { return kernel.points.size() <= points; });
  if (out.kernels.empty()) {
    throw UsageError(fmt::format("{}: no kernel has more than {} points with time and power",
                                 sweep.file, points),
                     {.in = {}, .hint = "fewer --points"});
  }
  if (out.kernels.size() < sweep.kernels.size()) {
    notes.push_back(fmt::format("{} of {} kernels have no more than {} points and are left out",
                                sweep.kernels.size() - out.kernels.size(), sweep.kernels.size(),
                                points));
  }
  if (const std::size_t left = sweep.points() - out.points(); left > 0) {
    notes.push_back(fmt::format(
        "{} of {} points are compared: repeats are averaged, points under lower power caps left "
        "out",
        out.points(), sweep.points()));
  }
  return out;
}

}  // namespace

ModelComparison compare_models(const GpuSpec& spec, const Sweep& sweep,
                               std::span<const ModelChoice> models,
                               const ComparisonOptions& options, const RunContext& context) {
  ModelComparison found;
  found.sweep = testable(spec, sweep, options.points, found.notes);
  for (const ModelChoice& model : models) {
    found.models.push_back({.name = model.name, .fit = {}, .held_out = {}, .cells = {}});
    found.models.back().cells.resize(found.sweep.kernels.size());
  }
  const std::vector<Group> groups = groups_of(spec, found.sweep, options);
  for (std::size_t g = 0; g < groups.size() && !context.stop_requested(); ++g) {
    context.report({.done = g, .total = groups.size(), .note = "groups of kernels"});
    const GpuSpec own = options.leave_kernels_out
                            ? calibrate_sweep(spec, groups[g].others, options.fit).spec
                            : spec;
    for (std::size_t m = 0; m < models.size(); ++m) {
      const ModelData data{own, groups[g].seen, groups[g].others};
      const auto model =
          models[m].kind != nullptr
              ? fit_cell_model(*models[m].kind, data)
              : table_model(one_setting(*models[m].table, spec), own, kernel_names(groups[g].seen));
      test_on(groups[g], *model, found.sweep, found.models[m]);
    }
  }
  return found;
}

}  // namespace rubato
