#include "traces/pipeline/captured_ranks.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "traces/pipeline/orders.hpp"

namespace rubato {

namespace {

constexpr std::uint32_t most_chunks = 16;

// Files of pass times alone do not say how many stages there are: their reader takes it from the
// forward passes a rank begins with, as under 1F1B, and then ranks that ran interleaved passes
// disagree. Under Megatron-LM's interleaved 1F1B rank r of P, each with C chunks, begins with
// 2 (P - r - 1) + (C - 1) P + 1 of them (Narayanan et al., arXiv 2104.04473; its
// forward_backward_pipelining_with_interleaving). Of several answers the one with as many stages as
// ranks were given counts.
std::optional<std::uint32_t> interleaved_stages(std::span<const Capture> captures,
                                                const std::vector<CapturedStage>& ranks) {
  std::set<std::uint32_t> sizes, found;
  std::uint32_t last_rank = 0;
  for (std::size_t i = 0; i < captures.size(); ++i) {
    const CaptureGroup* group = pipeline_group(captures[i]);
    if (group == nullptr || !captures[i].rank) return std::nullopt;
    if (group->size) sizes.insert(*group->size);
    last_rank = std::max(last_rank, *captures[i].rank);
  }
  if (sizes.size() < 2) return std::nullopt;
  const auto fits = [&](std::uint32_t stages, std::uint32_t chunks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const std::vector<PassKind>& order = ranks[i].order;
      const auto forwards = static_cast<std::uint32_t>(order.size() / 2);
      const auto leading =
          static_cast<std::uint32_t>(std::ranges::find(order, PassKind::backward) - order.begin());
      const std::uint32_t expected =
          2 * (stages - *captures[i].rank - 1) + (chunks - 1) * stages + 1;
      if (forwards % (stages * chunks) != 0 || leading != std::min(expected, forwards))
        return false;
    }
    return true;
  };
  for (std::uint32_t stages = last_rank + 1; stages < *sizes.rbegin(); ++stages) {
    for (std::uint32_t chunks = 2; chunks <= most_chunks; ++chunks) {
      if (fits(stages, chunks)) found.insert(stages);
    }
  }
  const auto given = static_cast<std::uint32_t>(captures.size());
  if (found.contains(given)) return given;
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

// Returns whether the files say which rank is which stage.
bool find_stages(std::span<const Capture> captures, CapturedPipeline& pipeline) {
  std::uint32_t stages = 0;
  bool by_group = true;
  for (const Capture& capture : captures) {
    const CaptureGroup* group = pipeline_group(capture);
    by_group = by_group && group != nullptr && capture.rank &&
               std::ranges::find(group->ranks, *capture.rank) != group->ranks.end();
    if (group != nullptr)
      stages = std::max(
          {stages, group->size.value_or(0), static_cast<std::uint32_t>(group->ranks.size())});
  }
  const auto interleaved = interleaved_stages(captures, pipeline.ranks);
  stages = interleaved.value_or(stages);
  if (stages == 0) {
    stages = static_cast<std::uint32_t>(captures.size());
    pipeline.notes.emplace_back(
        "the files do not say how many stages there are: as many as ranks are assumed");
  }
  std::uint64_t world = std::max<std::uint64_t>(stages, captures.size());
  for (const Capture& capture : captures) {
    const std::uint64_t size = interleaved ? 0 : capture.world_size.value_or(0);  // was its guess
    world = std::max({world, size, std::uint64_t{capture.rank.value_or(0)} + 1});
  }
  for (std::uint32_t i = 0; i < captures.size(); ++i) {
    const std::uint32_t rank = captures[i].rank.value_or(i);
    if (by_group) {
      const std::vector<std::uint32_t>& ranks = pipeline_group(captures[i])->ranks;
      pipeline.stage_of_rank.push_back(
          static_cast<std::uint32_t>(std::ranges::find(ranks, rank) - ranks.begin()));
      continue;
    }
    pipeline.stage_of_rank.push_back(
        static_cast<std::uint32_t>(std::uint64_t{rank} * stages / world));
  }
  pipeline.shape.stages = stages;
  return by_group;
}

bool guessed_steps(const Capture& capture) { return capture.step_source != StepSource::annotation; }

bool ran(const CapturedPipeline& pipeline, const PipelineShape& shape) {
  for (std::size_t r = 0; r < pipeline.ranks.size(); ++r) {
    const std::vector<PipelinePass> order = stage_order(shape, pipeline.stage_of_rank[r]);
    if (!std::ranges::equal(order, pipeline.ranks[r].order, {}, &PipelinePass::kind)) return false;
  }
  return true;
}

void find_order(CapturedPipeline& pipeline) {
  PipelineShape& shape = pipeline.shape;
  const std::uint32_t passes = shape.microbatches;
  for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::gpipe}) {
    shape.kind = kind;
    pipeline.order_known = ran(pipeline, shape);
    if (pipeline.order_known) return;
  }
  PipelineShape chunked = shape;
  chunked.kind = ScheduleKind::interleaved;
  for (chunked.chunks = 2; chunked.chunks <= most_chunks; ++chunked.chunks) {
    if (passes % (chunked.chunks * shape.stages) != 0) continue;
    chunked.microbatches = passes / chunked.chunks;
    pipeline.order_known = ran(pipeline, chunked);
    if (!pipeline.order_known) continue;
    shape = chunked;
    return;
  }
  shape.kind = ScheduleKind::one_f_one_b;
  pipeline.notes.emplace_back(
      "the ranks run their passes in no order that is known (GPipe, 1F1B, interleaved): chunks of "
      "a "
      "stage are not told apart, and plans need --ops and --edges");
}

// A schedule has what ends a step on every stage or on none, the reduction of tied embeddings on
// the first and the last. Reductions that all end before the last pass are none.
void keep_common_ends(CapturedPipeline& pipeline) {
  constexpr double hidden_s = 1.5e-9;
  for (const PassKind kind :
       {PassKind::all_reduce, PassKind::embedding_all_reduce, PassKind::optimizer}) {
    std::set<std::uint32_t> stages;
    bool takes_time = false;
    for (std::size_t r = 0; r < pipeline.ranks.size(); ++r) {
      for (const CapturedPass& end : pipeline.ranks[r].ends) {
        if (end.kind != kind) continue;
        stages.insert(pipeline.stage_of_rank[r]);
        takes_time = takes_time || end.time_s() > hidden_s;
      }
    }
    const std::uint32_t last = pipeline.shape.stages - 1;
    const bool ties = kind == PassKind::embedding_all_reduce;
    if (takes_time &&
        (ties ? stages == std::set<std::uint32_t>{0, last} : stages.size() == last + 1))
      continue;
    for (CapturedStage& rank : pipeline.ranks)
      std::erase_if(rank.ends, [&](const CapturedPass& end) { return end.kind == kind; });
    if (takes_time)
      pipeline.notes.push_back(
          fmt::format("of {} stages {} end their steps with {}; it is left out, since a schedule "
                      "has it on {}",
                      pipeline.shape.stages, stages.size(), name_of(kind),
                      ties ? "the first and the last" : "all stages"));
  }
}

}  // namespace

void check_ranks_differ(std::span<const Capture> captures) {
  std::set<std::uint32_t> ranks;
  for (const Capture& capture : captures) {
    if (capture.rank && !ranks.insert(*capture.rank).second)
      throw DataError(
          fmt::format("two captures are of rank {}; expected one of each rank", *capture.rank),
          {.in = capture.name, .hint = {}});
  }
}

std::uint32_t CapturedPipeline::virtual_stage(std::size_t rank, const CapturedPass& pass) const {
  const std::uint32_t stage = stage_of_rank[rank];
  if (!order_known || shape.chunks == 1) return stage;
  return stage_order(shape, stage)[pass.position].chunk * shape.stages + stage;
}

CapturedPipeline find_pipeline(std::span<const Capture> captures) {
  check_ranks_differ(captures);
  CapturedPipeline pipeline;
  for (const Capture& capture : captures) {
    CapturedStage& rank = pipeline.ranks.emplace_back(find_passes(capture));
    pipeline.notes.insert(pipeline.notes.end(), rank.notes.begin(), rank.notes.end());
    const std::size_t passes = pipeline.ranks.front().order.size();
    if (rank.order.size() != passes)
      throw DataError(fmt::format("{}: {} passes in a step; {} has {}", capture.name,
                                  rank.order.size(), captures.front().name, passes),
                      {.in = {},
                       .hint = std::ranges::any_of(captures, guessed_steps)
                                   ? "steps were guessed: mark them (ProfilerStep, NVTX ranges)"
                                   : "all ranks must be of one run"});
  }
  const bool stages_known = find_stages(captures, pipeline);
  constexpr std::uint32_t most_stages = 65'536;  // a guard against damaged files
  if (captures.size() < 2 || pipeline.shape.stages < 2 || pipeline.shape.stages > most_stages)
    throw DataError(fmt::format("{} rank{} of {} stages; expected the ranks of a pipeline",
                                captures.size(), captures.size() == 1 ? "" : "s",
                                pipeline.shape.stages));
  pipeline.shape.microbatches = static_cast<std::uint32_t>(pipeline.ranks.front().order.size() / 2);
  find_order(pipeline);
  keep_common_ends(pipeline);
  // Under other orders than GPipe's no two stages run alike.
  const bool checked = pipeline.order_known && pipeline.shape.kind != ScheduleKind::gpipe &&
                       pipeline.shape.microbatches >= pipeline.shape.stages;
  if (!stages_known && !checked)
    pipeline.notes.emplace_back(
        "the files do not say which rank is which stage: stages are counted by rank");
  const std::set<std::uint32_t> given(pipeline.stage_of_rank.begin(), pipeline.stage_of_rank.end());
  if (given.size() < pipeline.shape.stages)
    pipeline.notes.push_back(fmt::format("of {} stages the ranks of {} are given",
                                         pipeline.shape.stages, fmt::join(given, ", ")));
  return pipeline;
}

void refuse_interleaved_pass_times(std::span<const Capture> captures) {
  PipelineShape shape;
  try {
    const CapturedPipeline pipeline = find_pipeline(captures);
    if (!pipeline.order_known || pipeline.shape.kind != ScheduleKind::interleaved) return;
    shape = pipeline.shape;
  } catch (const DataError&) {
    return;  // no pipeline: the error of the ranks says more
  }
  throw DataError(
      fmt::format("the ranks are of an interleaved pipeline of {} stages with {} chunks each; pass "
                  "times do not say what chunks send each other, so they cannot be joined",
                  shape.stages, shape.chunks),
      {.in = {},
       .hint = "'rubato pipeline profile FILES' makes a stage profile of them, and 'rubato "
               "pipeline describe --schedule interleaved' lets explore plan with it; files of the "
               "PyTorch profiler "
               "can be joined"});
}

}  // namespace rubato
