#include "traces/pipeline/step_end.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

PipelineSchedule with_step_end(const PipelineSchedule& schedule, bool all_reduce, bool optimizer,
                               bool tied_embeddings) {
  PipelineSchedule longer{schedule.shape, {}, schedule.dependencies};
  const std::uint32_t stages = schedule.shape.stages;
  std::vector<PassId> moved_to(schedule.passes.size());
  std::vector<PassId> gradients, updates;  // of each stage: what is ready last, what waits
  std::vector<std::pair<PassId, PassId>> embeddings;  // what comes before, the reduction
  for (const std::vector<PassId>& row : schedule.rows()) {
    for (const PassId id : row) {
      moved_to[index(id)] = id_at<PassId>(longer.passes.size());
      longer.passes.push_back(schedule.passes[index(id)]);
    }
    if (row.empty()) continue;
    const std::uint32_t stage = longer.passes.back().stage;
    const auto append = [&](PassKind kind) {
      longer.passes.push_back({stage, 0, 0, kind});
      return id_at<PassId>(longer.passes.size() - 1);
    };
    PassId last = id_at<PassId>(longer.passes.size() - 1);
    if (all_reduce) last = append(PassKind::all_reduce);
    if (tied_embeddings && stages > 1 && (stage == 0 || stage + 1 == stages)) {
      embeddings.emplace_back(last, append(PassKind::embedding_all_reduce));
      last = embeddings.back().second;
    }
    gradients.push_back(last);
    if (optimizer) updates.push_back(append(PassKind::optimizer));
  }
  for (Dependency& d : longer.dependencies) {
    d.from = moved_to[index(d.from)];
    d.to = moved_to[index(d.to)];
  }
  for (std::size_t i = 1; i < longer.passes.size(); ++i) {
    if (ends_step(longer.passes[i].kind))
      longer.dependencies.push_back({id_at<PassId>(i - 1), id_at<PassId>(i), 0.0});
  }
  if (embeddings.size() == 2) {
    longer.dependencies.push_back({embeddings[0].first, embeddings[1].second, 0.0});
    longer.dependencies.push_back({embeddings[1].first, embeddings[0].second, 0.0});
  }
  for (const PassId update : updates) {
    for (const PassId gradient : gradients) {
      if (longer.passes[index(gradient)].stage != longer.passes[index(update)].stage)
        longer.dependencies.push_back({gradient, update, 0.0});
    }
  }
  return longer;
}

void set_embedding_reduction(PipelineProfile& profile, std::uint32_t first, std::uint32_t last,
                             double time_s) {
  std::erase_if(profile.passes,
                [](const PassType& pass) { return pass.kind == PassKind::embedding_all_reduce; });
  for (const std::uint32_t stage : {first, last}) {
    const PassType* backward = profile.find(stage, PassKind::backward);
    if (backward == nullptr)
      throw DataError(
          fmt::format("{}: no profile of the backward pass of stage {}", profile.name, stage));
    PassType reduction = *backward;
    reduction.kind = PassKind::embedding_all_reduce;
    std::erase_if(reduction.options, &ClockOption::mixed);  // it runs no kernels
    for (ClockOption& option : reduction.options) {
      option.time_s = time_s;
      option.energy_j = 0.0;  // not measured: taken to be that of waiting
    }
    profile.passes.push_back(std::move(reduction));
    if (first == last) return;
  }
}

}  // namespace rubato
