#include "explorer/pipeline/straggler.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "traces/pipeline/step_end.hpp"

namespace rubato {

namespace {

using Key = std::pair<std::uint32_t, PassKind>;

double highest_clock_time_s(const std::map<Key, const PassType*>& types, PassKind kind) {
  CompensatedSum time_s;
  for (const auto& [key, type] : types) {
    if (key.second == kind) time_s.add(type->options.front().time_s);
  }
  return time_s.value();
}

}  // namespace

std::vector<StragglerPoint> straggle(const PipelinePlanner& planner,
                                     std::span<const double> times_s, const RunContext& context) {
  const double baseline_s = planner.baseline().time_s;
  for (const double time_s : times_s) {
    if (time_s >= baseline_s) continue;
    throw UsageError(
        fmt::format("the slowest pipeline takes {:.5g} s; expected at least {:.5g} s, the time of "
                    "this one at its highest clocks",
                    time_s, baseline_s));
  }
  const PipelineResult intrinsic = planner.plan({&baseline_s, 1}, AfterEnd::wait, context).front();
  const std::vector<PipelineResult> results = planner.plan(times_s, AfterEnd::wait, context);
  std::vector<StragglerPoint> points;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double waiting_j = planner.waiting_power_w() * (times_s[i] - baseline_s);
    points.push_back({times_s[i], planner.baseline().energy_j + waiting_j,
                      intrinsic.energy_j + waiting_j, results[i]});
  }
  return points;
}

PipelineWork without_one_stage(const PipelineWork& work) {
  PipelineShape shape = work.schedule.shape;
  if (shape.stages < 2 || shape.chunks != 1) {
    throw UsageError(
        fmt::format("{} stages of {} chunks cannot lose one; expected at least 2 stages of 1 chunk",
                    shape.stages, shape.chunks));
  }
  const std::uint32_t old_stages = shape.stages--;
  std::map<Key, const PassType*> old_types;
  for (std::size_t i = 0; i < work.schedule.passes.size(); ++i) {
    const PipelinePass& pass = work.schedule.passes[i];
    old_types[{pass.stage, pass.kind}] = &work.type_of(id_at<PassId>(i));
  }
  const auto has = [&](PassKind kind) {
    return std::ranges::any_of(old_types, [&](const auto& t) { return t.first.second == kind; });
  };
  PipelineWork left{with_step_end(make_schedule(shape), has(PassKind::all_reduce),
                                  has(PassKind::optimizer), has(PassKind::embedding_all_reduce)),
                    {},
                    {},
                    work.blocked_power_w};
  std::map<Key, const PassType*> taken;
  for (const PipelinePass& pass : left.schedule.passes) {
    std::uint32_t from = pass.stage * old_stages / shape.stages;
    if (pass.kind == PassKind::embedding_all_reduce && pass.stage > 0) from = old_stages - 1;
    const auto found = old_types.find({from, pass.kind});
    if (found == old_types.end()) {
      throw UsageError("the graph does not follow its schedule; give the straggler's time instead");
    }
    taken[{pass.stage, pass.kind}] = found->second;
  }
  std::map<Key, PassTypeId> ids;
  for (const auto& [key, type] : taken) {
    const double factor =
        highest_clock_time_s(old_types, key.second) / highest_clock_time_s(taken, key.second);
    PassType longer = *type;
    longer.stage = key.first;
    for (ClockOption& option : longer.options) {
      option.time_s *= factor;
      option.energy_j *= factor;
    }
    ids[key] = id_at<PassTypeId>(left.types.size());
    left.types.push_back(std::move(longer));
  }
  for (const PipelinePass& pass : left.schedule.passes) {
    left.type_of_pass.push_back(ids.at({pass.stage, pass.kind}));
  }
  return left;
}

}  // namespace rubato
