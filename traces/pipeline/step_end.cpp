#include "traces/pipeline/step_end.hpp"

#include <vector>

namespace rubato {

PipelineSchedule with_step_end(const PipelineSchedule& schedule, bool all_reduce, bool optimizer) {
  PipelineSchedule longer{schedule.shape, {}, schedule.dependencies};
  std::vector<PassKind> ends;
  if (all_reduce) ends.push_back(PassKind::all_reduce);
  if (optimizer) ends.push_back(PassKind::optimizer);
  std::vector<PassId> moved_to(schedule.passes.size());
  std::vector<PassId> gradients, updates;  // of each stage: what is ready last, what waits for all
  for (const std::vector<PassId>& row : schedule.rows()) {
    for (const PassId id : row) {
      moved_to[index(id)] = id_at<PassId>(longer.passes.size());
      longer.passes.push_back(schedule.passes[index(id)]);
    }
    if (row.empty()) continue;
    const std::uint32_t stage = longer.passes.back().stage;
    gradients.push_back(id_at<PassId>(longer.passes.size() - 1));
    for (const PassKind kind : ends) {
      const PassId id = id_at<PassId>(longer.passes.size());
      (kind == PassKind::optimizer ? updates : gradients).push_back(id);
      longer.passes.push_back({stage, 0, 0, kind});
    }
  }
  for (Dependency& d : longer.dependencies) {
    d.from = moved_to[index(d.from)];
    d.to = moved_to[index(d.to)];
  }
  for (std::size_t i = 1; i < longer.passes.size(); ++i) {
    if (ends_step(longer.passes[i].kind))
      longer.dependencies.push_back({id_at<PassId>(i - 1), id_at<PassId>(i), 0.0});
  }
  for (const PassId update : updates) {
    for (const PassId gradient : gradients) {
      const PipelinePass& from = longer.passes[index(gradient)];
      const bool last = !all_reduce || from.kind == PassKind::all_reduce;
      if (last && from.stage != longer.passes[index(update)].stage)
        longer.dependencies.push_back({gradient, update, 0.0});
    }
  }
  return longer;
}

}  // namespace rubato
