#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/capture/parallel_input.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/transformer/parameters.hpp"

namespace rubato {
namespace {

// Equal stages: hardly any vocabulary.
ParallelStepInput in_stages(std::uint32_t stages, std::uint32_t microbatches, double bus_gbs) {
  ParallelStepInput input = staged_input(bus_gbs, stages, microbatches);
  input.shape.model.vocab = 128;
  return input;
}

// The share of the step that a stage waits: (p - 1) / (m + p - 1), of v chunks (p - 1) / (v m + p -
// 1). What is beside layers, embedding and head, takes 4 % of them.
TEST(PipelineStep, BubblesAreThoseOfTheSchedules) {
  struct Case {
    ScheduleKind kind;
    std::uint32_t stages, microbatches, chunks;
  };
  for (const Case& c :
       {Case{ScheduleKind::gpipe, 4, 8, 1}, Case{ScheduleKind::one_f_one_b, 4, 8, 1},
        Case{ScheduleKind::one_f_one_b, 6, 24, 1}, Case{ScheduleKind::interleaved, 4, 8, 3},
        Case{ScheduleKind::interleaved, 2, 6, 2}}) {
    ParallelStepInput input = in_stages(c.stages, c.microbatches, fast);
    input.pipeline.kind = c.kind;
    input.pipeline.chunks = c.chunks;
    const ParallelStepTimes t = parallel_step(input).times;
    const double expected = (c.stages - 1.0) / (1.0 * c.chunks * c.microbatches + c.stages - 1.0);
    EXPECT_NEAR(t.bubble_s() / t.step_s, expected, 0.1 * expected) << name_of(c.kind);
    EXPECT_LT(t.exposed_s(), 0.01 * t.step_s);
  }
}

// Longest path over the passes of the schedule, with the times of what each runs.
double schedule_span_s(const ParallelStepInput& input, const ParallelStep& step) {
  const PipelineSchedule schedule = make_schedule(input.pipeline);
  const RankWork work = rank_work(input.shape, true);
  const auto list_s = [&](const RankWork::Launches& list) {
    double sum_s = 0.0;
    for (const KernelId kernel : list) {
      double one_s = 1e9;
      for (const Capture& stage : step.stages)
        one_s = std::min(one_s, time_of(stage, work.kernel(kernel).name));
      sum_s += one_s;
    }
    return sum_s;
  };
  const double forward_s = list_s(work.forward), backward_s = list_s(work.backward);
  const std::uint32_t last = input.pipeline.stages * input.pipeline.chunks - 1;
  const auto time_s = [&](const PipelinePass& pass) {
    const std::uint32_t place = pass.chunk * input.pipeline.stages + pass.stage;
    const double layers =
        static_cast<double>(input.shape.model.layers / (last + 1) +
                            (place < input.shape.model.layers % (last + 1) ? 1 : 0));
    if (pass.kind == PassKind::forward) {
      return layers * forward_s + (place == 0 ? list_s(work.embedding) : 0.0) +
             (place == last ? list_s(work.loss) : 0.0);
    }
    return layers * backward_s + (place == 0 ? list_s(work.embedding_backward) : 0.0) +
           (place == last ? list_s(work.head_backward) : 0.0);
  };
  std::vector<double> end_s(schedule.passes.size(), 0.0);
  double span_s = 0.0;
  std::vector<std::vector<PassId>> before(schedule.passes.size());
  for (const Dependency& d : schedule.dependencies) before[index(d.to)].push_back(d.from);
  for (const PassId pass : topological_order(schedule)) {
    for (const PassId other : before[index(pass)])
      end_s[index(pass)] = std::max(end_s[index(pass)], end_s[index(other)]);
    end_s[index(pass)] += time_s(schedule.passes[index(pass)]);
    span_s = std::max(span_s, end_s[index(pass)]);
  }
  return span_s;
}

// Stages with a large vocabulary at both ends, layers that do not divide: as the schedule's own
// longest path, where messages take next to nothing.
TEST(PipelineStep, FollowsItsSchedule) {
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    for (const bool overlap : {false, true}) {
      ParallelStepInput input = in_stages(5, 10, fast);
      input.shape.model.vocab = 20000;
      input.pipeline.kind = kind;
      input.pipeline.chunks = kind == ScheduleKind::interleaved ? 2 : 1;
      input.overlap_messages = overlap;
      const ParallelStep step = parallel_step(input);
      const double span_s = schedule_span_s(input, step);
      // Copies of messages in memory, once for each hop.
      EXPECT_GE(step.times.step_s, span_s * (1.0 - 1e-6)) << name_of(kind);
      EXPECT_LE(step.times.step_s, span_s * 1.05) << name_of(kind);
    }
  }
}

TEST(PipelineStep, SendsActivationsAndGradientsOnceForEachMicrobatch) {
  ParallelStepInput input = in_stages(4, 8, usual);
  input.shape.tensor_parallel = 2;
  const ParallelStep step = parallel_step(input);
  const double bytes = 2.0 * 4.0 * 1024.0 * 768.0 / 2.0;  // of the tensor-parallel rank
  for (std::size_t s = 0; s < 4; ++s) {
    const std::size_t sides = s == 0 || s == 3 ? 1 : 2;
    EXPECT_EQ(count_launches(step.stages[s], "p0_send_activations"), 8U * sides);
    EXPECT_EQ(count_launches(step.stages[s], "p1_send_gradients"), 8U * sides);
    EXPECT_DOUBLE_EQ(sent(step.stages[s], CollectiveKind::send_recv).bytes,
                     2.0 * 8.0 * static_cast<double>(sides) * bytes);
  }
}

// Gradients are reduced once, in the last microbatch of each stage; together they are all
// parameters, and the token table once more, of which the last stage has one too.
TEST(PipelineStep, ReducesGradientsOnce) {
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
        ScheduleKind::early_recompute, ScheduleKind::zb_h1}) {
    ParallelStepInput input = in_stages(4, 8, usual);
    input.shape.data_parallel = 8;
    input.pipeline.kind = kind;
    input.pipeline.chunks = kind == ScheduleKind::interleaved ? 3 : 1;
    const ParallelStep step = parallel_step(input);
    double bytes = 0.0;
    for (const Capture& stage : step.stages) {
      bytes += sent(stage, CollectiveKind::all_reduce, "d0_").bytes;
      const auto reduced = std::ranges::find_if(stage.launches, [&](const CapturedLaunch& launch) {
        return stage.kernels[index(launch.kernel)].name.starts_with("d0_");
      });
      ASSERT_NE(reduced, stage.launches.end());
      EXPECT_GT(static_cast<double>(reduced->start_ns) * s_per_ns, 0.5 * step.times.step_s);
    }
    EXPECT_NEAR(bytes / 2.0 / (parameters_per_rank(input.shape) + 128.0 * 768.0), 1.0, 1e-12)
        << name_of(kind);
  }
}

// Joined by their messages, stages are the run they were made as.
TEST(PipelineStep, IsReadAsTheGraphItWasMadeAs) {
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
        ScheduleKind::early_recompute, ScheduleKind::zb_h1}) {
    for (const bool overlap : {false, true}) {
      ParallelStepInput input = in_stages(3, 6, usual);
      input.shape.data_parallel = 2;
      input.shape.tensor_parallel = 2;
      input.pipeline.kind = kind;
      input.pipeline.chunks = kind == ScheduleKind::interleaved ? 2 : 1;
      input.overlap_messages = overlap;
      const ParallelStep step = parallel_step(input);
      const CaptureGraph made = capture_graph(std::span(step.stages));
      const std::size_t hops = 3 * input.pipeline.chunks - 1;
      // And the token tables of the ends.
      EXPECT_EQ(made.ranks.collectives.size(), 2 * 6 * hops + 1) << name_of(kind);
      EXPECT_TRUE(made.ranks.notes.empty());
      for (const std::uint64_t inferred : made.graph.count_arcs().inferred) EXPECT_EQ(inferred, 0U);
      std::vector<double> durations, starts(made.graph.size());
      for (const Activity& activity : made.graph.activities())
        durations.push_back(activity.duration_s);
      EXPECT_NEAR(earliest_starts(made.graph, durations, starts) / step.times.step_s, 1.0, 0.001);
    }
  }
}

// GPipe, p stages, m microbatches, hops of time t: beside kernels messages lengthen the step where
// the pipeline fills and drains, 2 (p - 1) t; waited for, by 2 (m - 1) t more at least.
TEST(PipelineStep, MessagesBesideKernelsAreHidden) {
  ParallelStepInput input = in_stages(4, 16, fast);
  input.pipeline.kind = ScheduleKind::gpipe;
  input.overlap_messages = true;
  const ParallelStep free = parallel_step(input);
  input.spec.cluster->inside.bus_gbs = 20.0;
  const ParallelStep beside = parallel_step(input);
  input.overlap_messages = false;
  const ParallelStep waited = parallel_step(input);
  const auto longer_s = [&](const ParallelStep& step) {
    const char* const tables = "p2_all_reduce_tables";
    return step.times.step_s - free.times.step_s -
           (time_of(step.stages[0], tables) - time_of(free.stages[0], tables));
  };
  const auto hop_s = [](const ParallelStep& step) {
    return time_of(step.stages[1], "p0_send_activations");
  };
  const double more_s = hop_s(beside) - hop_s(free);
  EXPECT_GT(more_s, 2e-4);
  EXPECT_NEAR(longer_s(beside) / more_s, 2.0 * 3.0, 0.01);
  EXPECT_GT(longer_s(waited) / more_s, 2.0 * (3.0 + 15.0));
  EXPECT_LT(longer_s(waited) / more_s, 4.0 * (3.0 + 15.0));
  EXPECT_NEAR(beside.times.compute_s(), waited.times.compute_s(), 1e-12);
}

// The last stage has a copy of the token table, and updates it.
TEST(PipelineStep, OptimizerWorksOnTheStagesOwnParameters) {
  ParallelStepInput input = in_stages(4, 4, usual);
  input.shape.model.vocab = 51200;
  input.shape.optimizer = true;
  const ParallelStep step = parallel_step(input);
  const ParallelStepInput whole = [&] {
    ParallelStepInput one = in_stages(1, 4, usual);
    one.shape.optimizer = true;
    one.shape.model.vocab = 51200;
    return one;
  }();
  const auto bytes_of = [](const Capture& stage, std::string_view prefix) {
    double bytes = 0.0;
    for (const CapturedLaunch& launch : stage.launches) {
      const Kernel& kernel = stage.kernels[index(launch.kernel)];
      if (kernel.name.starts_with(prefix)) bytes += *kernel.dram_bytes;
    }
    return bytes;
  };
  double bytes = 0.0;
  for (const Capture& stage : step.stages) bytes += bytes_of(stage, "x6_adamw");
  const double once = bytes_of(parallel_step(whole).stages.front(), "x6_adamw");
  const double parameters = parameters_per_rank(input.shape);
  EXPECT_NEAR(bytes / once, (parameters + 51200.0 * 768.0) / parameters, 1e-9);
}

// Stages of 1, 3, 4 and 8 GPUs on nodes of 8: where a pair of two stages lies on two nodes, their
// messages are between nodes.
TEST(PipelineStep, HopsBetweenNodesArePricedAsSuch) {
  ParallelStepInput input = in_stages(4, 2, usual);
  input.spec.cluster->gpus_per_node = 8;
  input.spec.cluster->nodes = 8;
  input.spec.cluster->between = Link{LinkKind::rdma, 5.0, "made up"};
  struct Case {
    std::uint64_t replicas;
    std::array<std::size_t, 4> crossing;  // messages of each stage's forward passes
  };
  for (const Case& c : {Case{1, {0, 0, 0, 0}}, Case{3, {0, 2, 4, 2}}, Case{4, {0, 2, 2, 0}},
                        Case{8, {2, 4, 4, 2}}}) {
    input.shape.data_parallel = c.replicas;
    const ParallelStep step = parallel_step(input);
    for (std::size_t s = 0; s < 4; ++s) {
      const Capture& stage = step.stages[s];
      EXPECT_EQ(count_launches(stage, "p0_send_activations_between_nodes"), c.crossing[s]);
      EXPECT_EQ(count_launches(stage, "p1_send_gradients_between_nodes"), c.crossing[s]);
    }
    if (c.replicas != 4) continue;
    const double inside_s = time_of(step.stages[1], "p0_send_activations");
    EXPECT_GT(time_of(step.stages[1], "p0_send_activations_between_nodes"), 5.0 * inside_s);
  }
}

TEST(PipelineStep, RefusesWhatCannotBe) {
  ParallelStepInput input = in_stages(13, 4, usual);
  expect_error<UsageError>([&] { (void)parallel_step(input); },
                           "12 layers cannot be dealt out to 13 stages of 1 chunk");
  input = in_stages(4, 4, usual);
  input.pipeline.chunks = 2;
  expect_error<UsageError>([&] { (void)parallel_step(input); },
                           "2 chunks need the schedule 'interleaved'");
  input = in_stages(4, 0, usual);
  expect_error<UsageError>([&] { (void)parallel_step(input); }, "microbatches is 0");
  input = in_stages(1, 300'000, usual);
  expect_error<UsageError>([&] { (void)parallel_step(input); },
                           "12 layers of 300000 microbatches are about 1.33e+08 launches");
  input = in_stages(1, 1, usual);
  input.shape.model.layers = 1'000'000;
  expect_error<UsageError>([&] { (void)parallel_step(input); }, "expected at most 5000000");
  input = in_stages(2, 2, usual);
  input.shape.data_parallel = 2;
  input.sharding = Sharding::parameters;
  expect_error<UsageError>([&] { (void)parallel_step(input); },
                           "sharded parameters are for one stage");
}

}  // namespace
}  // namespace rubato
