// Orders and dependencies of the schedules, against their published bubbles.

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "sim/pipeline_run.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/pipeline/step_end.hpp"

namespace rubato {
namespace {

/// Two CSV files of an activity graph.
class GraphFiles {
 public:
  void write(const std::string& ops, const std::string& edges) const {
    std::ofstream(folder_ / "ops.csv") << ops;
    std::ofstream(folder_ / "edges.csv") << edges;
  }
  [[nodiscard]] PipelineSchedule read() const {
    return read_schedule(folder_ / "ops.csv", folder_ / "edges.csv");
  }

 private:
  TemporaryFolder folder_;
};

PipelineShape shape(ScheduleKind kind, std::uint32_t stages, std::uint32_t microbatches,
                    std::uint32_t chunks = 1) {
  return {.kind = kind, .stages = stages, .microbatches = microbatches, .chunks = chunks};
}

// One letter per pass: F0 B0 ... of a stage.
std::string order_text(const PipelineShape& of, std::uint32_t stage) {
  const PipelineSchedule schedule = make_schedule(of);
  std::string text;
  const auto rows = schedule.rows();
  for (const PassId id : rows[stage]) {
    const PipelinePass& pass = schedule.passes[index(id)];
    text += (text.empty() ? "" : " ") + std::string{"FBRIW"[static_cast<int>(pass.kind)]} +
            std::to_string(pass.microbatch);
    if (of.chunks > 1) text += "abcdef"[pass.chunk];
  }
  return text;
}

TEST(PipelineSchedule, OrdersAreThePublishedOnes) {
  EXPECT_EQ(order_text(shape(ScheduleKind::gpipe, 2, 3), 0), "F0 F1 F2 B2 B1 B0");
  EXPECT_EQ(order_text(shape(ScheduleKind::one_f_one_b, 3, 4), 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order_text(shape(ScheduleKind::one_f_one_b, 3, 4), 2), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(order_text(shape(ScheduleKind::early_recompute, 2, 2), 1), "F0 R0 B0 F1 R1 B1");
  EXPECT_EQ(order_text(shape(ScheduleKind::zb_h1, 2, 3), 0), "F0 F1 I0 W0 F2 I1 W1 I2 W2");
  // One chunk is 1F1B, of any number of microbatches.
  EXPECT_EQ(order_text(shape(ScheduleKind::interleaved, 3, 4), 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order_text(shape(ScheduleKind::interleaved, 2, 2, 2), 1),
            "F0a F1a F0b B0b F1b B1b B0a B1a");
}

// Time of an iteration with given times per pass, in units.
double iteration(const PipelineShape& of, std::map<PassKind, double> time) {
  PipelineProfile profile{"unit", {}};
  for (std::uint32_t stage = 0; stage < of.stages * of.chunks; ++stage) {
    for (const auto& [kind, units] : time) {
      profile.passes.push_back({stage, kind, {{1000.0, units, 1.0}}});
    }
  }
  const PipelineWork work = pipeline_work(make_schedule(of), profile, 0.0);
  return simulate(work, highest_clocks(work)).time_s;
}

// Bubbles: GPipe and 1F1B (S - 1)(f + b), interleaved that over the chunks (Narayanan et al.,
// 2104.04473, section 2.2), ZB-H1 (S - 1)(f + i - w) (Qi et al., 2401.10241, table 2).
RC_GTEST_PROP(PipelineSchedule, BubblesAreThePublishedOnes, ()) {
  const auto stages = *rc::gen::inRange<std::uint32_t>(1, 7);
  const auto microbatches = stages * *rc::gen::inRange<std::uint32_t>(1, 5);
  const auto chunks = stages == 1 ? 1 : *rc::gen::inRange<std::uint32_t>(1, 4);
  const double s = stages, m = microbatches, v = chunks;
  const std::map<PassKind, double> whole{{PassKind::forward, 1.0}, {PassKind::backward, 2.0}};
  for (const auto kind : {ScheduleKind::gpipe, ScheduleKind::one_f_one_b}) {
    RC_ASSERT(iteration(shape(kind, stages, microbatches), whole) == 3.0 * (m + s - 1.0));
  }
  RC_ASSERT(iteration(shape(ScheduleKind::interleaved, stages, microbatches, chunks), whole) ==
            3.0 * (m * v + s - 1.0));
  const std::map<PassKind, double> split{
      {PassKind::forward, 1.0}, {PassKind::input_gradient, 1.0}, {PassKind::weight_gradient, 1.0}};
  RC_ASSERT(iteration(shape(ScheduleKind::zb_h1, stages, microbatches), split) ==
            3.0 * m + (s - 1.0));
}

// Stage 1 is done at 4, stage 0 at 6; reductions take 0.5, and the optimizer waits for both.
TEST(PipelineSchedule, AStepEndsWithItsOptimizer) {
  const std::string passes =
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1000,1,30\n0,backward,1000,2,60\n1,forward,1000,1,30\n1,backward,1000,2,60\n";
  const std::string reductions = "0,all_reduce,1000,0.5,9\n1,all_reduce,1000,0.5,9\n";
  const std::string updates = "0,optimizer,1000,1,20\n1,optimizer,1000,1,20\n";
  const auto run = [&](const std::string& more, bool all_reduce, bool optimizer) {
    const PipelineSchedule plain = make_schedule({.stages = 2, .microbatches = 1});
    const PipelineWork work = pipeline_work(with_step_end(plain, all_reduce, optimizer),
                                            parse_pipeline_profile(passes + more, "p.csv"), 10.0);
    check(work.schedule, "test");
    return simulate(work, highest_clocks(work));
  };
  EXPECT_DOUBLE_EQ(run("", false, false).time_s, 6.0);
  EXPECT_DOUBLE_EQ(run(reductions, true, false).time_s, 6.5);
  EXPECT_DOUBLE_EQ(run(updates, false, true).time_s, 7.0);
  const PipelineRun whole = run(reductions + updates, true, true);
  EXPECT_DOUBLE_EQ(whole.time_s, 7.5);
  EXPECT_DOUBLE_EQ(whole.passes[6].start_s,
                   4.0);  // stage 1: forward, backward, all_reduce, optimizer
  EXPECT_DOUBLE_EQ(whole.passes[7].start_s, 6.5);
  // 6 s of passes and 3 s of step ends on two GPUs for 7.5 s: the rest is waited.
  EXPECT_DOUBLE_EQ(whole.pass_energy_j, 180.0 + 18.0 + 40.0);
  EXPECT_DOUBLE_EQ(whole.blocked_energy_j, 10.0 * (2 * 7.5 - 6.0 - 3.0));
}

// Stages are done at 7, 5 and 4. First and last begin when both are ready; the stage between does
// not take part, but its optimizer waits for them.
TEST(PipelineSchedule, TiedEmbeddingsAreReducedOnceBothStagesAreReady) {
  std::string rows = "stage,instruction,frequency,time,energy\n";
  for (const std::string stage : {"0", "1", "2"}) {
    rows += stage + ",forward,1000,1,30\n" + stage + ",backward,1000," +
            (stage == "2"   ? "1,60\n"
             : stage == "1" ? "1,60\n"
                            : "2,60\n") +
            stage + ",optimizer,1000,1,20\n" + stage + ",all_reduce,1000,0.5,9\n";
  }
  const auto run = [&](bool all_reduce, bool optimizer) {
    PipelineProfile profile = parse_pipeline_profile(rows, "p.csv");
    set_embedding_reduction(profile, 0, 2, 0.25);
    const PipelineWork work = pipeline_work(
        with_step_end(make_schedule({.stages = 3, .microbatches = 1}), all_reduce, optimizer, true),
        profile, 10.0);
    check(work.schedule, "test");
    return simulate(work, highest_clocks(work));
  };
  const PipelineRun alone = run(false, false);  // 0: F B E, 1: F B, 2: F B E
  EXPECT_DOUBLE_EQ(alone.time_s, 7.25);
  EXPECT_DOUBLE_EQ(alone.passes[2].start_s, 7.0);
  EXPECT_DOUBLE_EQ(alone.passes[7].start_s, 7.0);
  EXPECT_DOUBLE_EQ(alone.passes[7].energy_j, 10.0 * 0.25);
  EXPECT_DOUBLE_EQ(alone.blocked_energy_j, 10.0 * (3 * 7.25 - 7.0 - 0.5));
  const PipelineRun whole = run(true, true);  // 0: F B A E O, 1: F B A O, 2: F B A E O
  EXPECT_DOUBLE_EQ(whole.passes[3].start_s, 7.5);
  EXPECT_DOUBLE_EQ(whole.passes[12].start_s, 7.5);
  for (const std::size_t optimizer : {4U, 8U, 13U})
    EXPECT_DOUBLE_EQ(whole.passes[optimizer].start_s, 7.75);
  EXPECT_DOUBLE_EQ(whole.time_s, 8.75);
}

// One stage has both ends of its embeddings.
TEST(PipelineSchedule, OneStageReducesNoEmbeddings) {
  const PipelineSchedule plain = make_schedule({.stages = 1, .microbatches = 2});
  EXPECT_EQ(with_step_end(plain, false, false, true).passes, plain.passes);
}

TEST(PipelineSchedule, StepEndsAreNoPartOfChunks) {
  const PipelineSchedule plain = make_schedule(
      {.kind = ScheduleKind::interleaved, .stages = 2, .microbatches = 2, .chunks = 2});
  const PipelineSchedule longer = with_step_end(plain, true, true);
  EXPECT_EQ(longer.passes.size(), plain.passes.size() + 4);
  for (const std::vector<PassId>& row : longer.rows()) {
    EXPECT_EQ(longer.passes[index(row[row.size() - 2])].kind, PassKind::all_reduce);
    EXPECT_EQ(longer.passes[index(row.back())].kind, PassKind::optimizer);
  }
  const PipelineProfile profile = parse_pipeline_profile(
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1000,2,30\n0,backward,1000,2,60\n1,forward,1000,2,30\n1,backward,1000,2,60\n"
      "0,all_reduce,1000,4,9\n1,all_reduce,1000,4,9\n0,optimizer,1000,1,20\n1,optimizer,1000,1,"
      "20\n",
      "p.csv");
  const PipelineWork work = pipeline_work(longer, profile, 1.0);
  for (const PassType& type : work.types) {
    const double expected = type.kind == PassKind::all_reduce  ? 4.0
                            : type.kind == PassKind::optimizer ? 1.0
                                                               : 1.0;  // half of 2: two chunks
    EXPECT_EQ(type.options.front().time_s, expected);
  }
}

RC_GTEST_PROP(PipelineSchedule, HoldsEveryPassOnceAndLittleMemory, ()) {
  const auto stages = *rc::gen::inRange<std::uint32_t>(1, 6);
  const auto microbatches = stages * *rc::gen::inRange<std::uint32_t>(1, 4);
  const auto kind = static_cast<ScheduleKind>(*rc::gen::inRange(0, 5));
  const std::uint32_t chunks = kind == ScheduleKind::interleaved ? 2 : 1;
  const PipelineSchedule schedule = make_schedule(shape(kind, stages, microbatches, chunks));
  const std::size_t kinds =
      kind == ScheduleKind::early_recompute || kind == ScheduleKind::zb_h1 ? 3 : 2;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, PassKind>> seen;
  for (const PipelinePass& p : schedule.passes) {
    RC_ASSERT(seen.emplace(p.stage, p.chunk, p.microbatch, p.kind).second);
  }
  RC_ASSERT(seen.size() == std::size_t{stages} * chunks * microbatches * kinds);
  RC_ASSERT(topological_order(schedule).size() == seen.size());
  if (kind == ScheduleKind::gpipe || kind == ScheduleKind::interleaved) return;
  // Microbatches whose activations a stage holds: at most those of 1F1B.
  for (const auto& row : schedule.rows()) {
    const std::uint32_t stage = schedule.passes[index(row.front())].stage;
    std::int64_t held = 0, most = 0;
    for (const PassId id : row) {
      const PassKind pass = schedule.passes[index(id)].kind;
      if (pass == PassKind::forward) most = std::max(most, ++held);
      if (pass == PassKind::backward || pass == PassKind::input_gradient) --held;
    }
    RC_ASSERT(most <= static_cast<std::int64_t>(std::min(stages - stage, microbatches)));
  }
}

TEST(PipelineSchedule, RejectsWhatCannotBe) {
  expect_error<UsageError>([] { (void)make_schedule(shape(ScheduleKind::gpipe, 0, 4)); },
                           "stages is 0; expected at least 1");
  expect_error<UsageError>([] { (void)make_schedule(shape(ScheduleKind::interleaved, 4, 6, 2)); },
                           "6 microbatches; expected a multiple of the 4 stages");
  expect_error<UsageError>([] { (void)make_schedule(shape(ScheduleKind::gpipe, 4, 4, 2)); },
                           "2 chunks need the schedule 'interleaved'; found 'gpipe'");
  expect_error<UsageError>([] { (void)make_schedule(shape(ScheduleKind::gpipe, 40000, 40000)); },
                           "is too much");
  expect_error<UsageError>(
      [] { (void)make_schedule({.stages = 2, .microbatches = 2, .hold_s = -1.0}); },
      "hold time is -1 s; expected a number >= 0");
  expect_error<UsageError>([] { (void)schedule_from_name("1f1d"); }, "did you mean '1f1b'?");
}

TEST(PipelineSchedule, ReadsGraphsMadeElsewhere) {
  const GraphFiles files;
  files.write("op,stage,kind,mb,pos\n0,0,forward,0,0\n1,0,backward,0,1\n", "src,dst\n0,1\n");
  EXPECT_EQ(files.read().passes.size(), 2U);
  files.write("op,stage,kind,mb,pos\n0,0,forward,0,0\n1,1,forward,0,0\n2,1,backward,0,1\n",
              "src,dst\n0,1\n1,2\n2,1\n");
  expect_error<DataError>([&] { (void)files.read(); }, "wait for each other in a cycle");
  files.write("op,stage,kind,mb,pos\n0,0,forward,0,0\n1,1,forward,0,0\n", "src,dst\n");
  expect_error<DataError>([&] { (void)files.read(); },
                          "forward of microbatch 0, stage 1 is cut off from the first pass");
  files.write("op,stage,kind,mb,pos\n0,0,forwrd,0,0\n2,0,backward,x,1\n", "src,dst\n0,7\n");
  expect_error<DataError>([&] { (void)files.read(); }, "did you mean 'forward'?");
  // Stages run their ops by position, not by number; edges follow them.
  files.write("op,stage,kind,mb,pos\n0,0,backward,0,7\n1,0,forward,0,3\n2,1,forward,0,0\n",
              "src,dst,lag_s\n1,2,0.5\n2,0,0\n");
  const PipelineSchedule sorted = files.read();
  EXPECT_EQ(sorted.passes[0].kind, PassKind::forward);
  EXPECT_EQ(sorted.passes[1].kind, PassKind::backward);
  EXPECT_EQ(sorted.dependencies[0], (Dependency{PassId{0}, PassId{2}, 0.5}));
  EXPECT_EQ(sorted.dependencies[1], (Dependency{PassId{2}, PassId{1}, 0.0}));
  files.write("op,stage,kind,mb\n0,0,forward,0\n1,0,backward,0\n", "src,dst\n0,1\n");
  EXPECT_EQ(files.read().passes[0].kind, PassKind::forward);
  files.write("op,stage,kind,mb,pos\n0,0,forward,0,1\n1,0,backward,0,1\n", "src,dst\n0,1\n");
  expect_error<DataError>([&] { (void)files.read(); }, "ops 0 and 1 are both at pos 1 of stage 0");
  files.write("op,stage,kind,mb,pos\n", "src,dst\n");
  expect_error<DataError>([&] { (void)files.read(); }, "there is no pass");
}

}  // namespace
}  // namespace rubato
