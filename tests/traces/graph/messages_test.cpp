// Sends and receives between ranks: who belongs together, whose clock is where, what waits for
// what.

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "tests/captures.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "tests/traces/graph/made_ranks.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/import/readers.hpp"
#include "traces/pipeline/captured_ranks.hpp"
#include "traces/pipeline/orders.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {
namespace {

// Three stages, two microbatches, passes of 10 ms, 1 ms from stage to stage. Their clocks begin
// when each is asked, which no file says.
//   0: F0 F1 . . . . B0 . B1      1: . F0 F1 . B0 . B1      2: . . F0 B0 F1 B1
std::vector<std::filesystem::path> made_stages(const TemporaryFolder& folder) {
  const auto file = [&](int rank, const std::string& lists) {
    return folder.file(fmt::format("pp_rank_{}.json", rank),
                       fmt::format(R"({{"4": {{"total": 90, "memory": 1, {}}}}})", lists));
  };
  return {
      file(
          0,
          R"("fwd_start": [0, 10], "fwd_end": [10, 20], "bwd_start": [55, 77], "bwd_end": [65, 87])"),
      file(
          1,
          R"("fwd_start": [11, 21], "fwd_end": [21, 31], "bwd_start": [44, 66], "bwd_end": [54, 76])"),
      file(
          2,
          R"("fwd_start": [22, 43], "fwd_end": [32, 53], "bwd_start": [33, 55], "bwd_end": [43, 65])")};
}

std::vector<Capture> read_all(const std::vector<std::filesystem::path>& files) {
  std::vector<Capture> captures;
  for (const auto& file : files) captures.push_back(import_capture(file));
  return captures;
}

TEST(PipelinePasses, AreReadWithWhatStagesSendEachOther) {
  const TemporaryFolder folder;
  const std::vector<Capture> captures = read_all(made_stages(folder));
  EXPECT_EQ(captures[1].rank, 1u);
  EXPECT_EQ(captures[0].world_size, std::nullopt);  // all forward passes come first: 3 or more
  EXPECT_EQ(captures[2].world_size, 3u);
  EXPECT_EQ(captures[1].steps, (std::vector<CapturedStep>{{"4", 0, 76'000'000}}));
  // The middle stage receives and sends around each of its four passes, the others half as often.
  EXPECT_EQ(captures[0].launches.size(), 8u);
  EXPECT_EQ(captures[1].launches.size(), 12u);
  EXPECT_EQ(captures[2].launches.size(), 8u);
  const CapturedLaunch& first = captures[1].launches.front();
  EXPECT_EQ(first.start_ns, 11'000'000);
  EXPECT_EQ(first.duration_ns, 0);
  EXPECT_EQ(captures[1].collectives[*first.collective].source_rank, 0u);
  EXPECT_EQ(captures[1].collectives[*first.collective].target_rank, 1u);
}

TEST(PipelinePasses, JoinStagesInBothDirections) {
  const TemporaryFolder folder;
  const CaptureGraph made = capture_graph(read_all(made_stages(folder)));
  EXPECT_EQ(made.ranks.messages.size(), 8u);
  EXPECT_TRUE(made.ranks.collectives.empty());
  EXPECT_LE(replay_error_s(made.graph), 1e-12);
  EXPECT_NEAR(made.graph.captured_span_s(), 87e-3, 1e-12);
  // Passes of half the time: five of the ten slots of the longest chain of passes are gone.
  EXPECT_NEAR(scaled_span_s(made.graph, 0.5), 45e-3, 2e-3);
}

// However the clocks of stages are set, they come back as far as sends and receives tell.
TEST(PipelinePasses, ClocksAreAlignedBetweenSendsAndReceives) {
  const TemporaryFolder folder;
  std::vector<Capture> captures = read_all(made_stages(folder));
  for (CapturedLaunch& launch : captures[1].launches) launch.start_ns += 7'000'000'000;
  for (CapturedLaunch& launch : captures[2].launches) launch.start_ns -= 300'000;
  const JoinedRanks joined = join_ranks(captures);
  // Both directions take 1 ms, so the middle is right.
  EXPECT_EQ(joined.offset_ns, (std::vector<std::int64_t>{0, -7'000'000'000, 300'000}));
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_EQ(
      joined.notes[0],
      "clocks of 2 pairs of ranks are aligned between their sends and receives, to +-1.000 ms");
}

TEST(PipelinePasses, WhatArrivesBeforeItWasSentIsRefused) {
  const TemporaryFolder folder;
  std::vector<Capture> captures = read_all(made_stages(folder));
  captures[1].launches[0].start_ns -= 5'000'000;  // received 4 ms before it was sent
  expect_error<DataError>(
      [&] { static_cast<void>(join_ranks(captures)); },
      "clocks of rank 0 and rank 1 cannot be aligned: however they are moved, something arrives",
      "give one --step");
}

TEST(PipelinePasses, AMissingStageIsNoted) {
  const TemporaryFolder folder;
  std::vector<Capture> captures = read_all(made_stages(folder));
  captures.erase(captures.begin());
  const CaptureGraph made = capture_graph(captures);
  EXPECT_EQ(made.ranks.messages.size(), 4u);
  ASSERT_EQ(made.ranks.notes.size(), 2u);
  EXPECT_EQ(made.ranks.notes[0],
            "rank 0 was not given; energies and plans are of the others; 4 sends and receives with "
            "them stay as captured");
}

// Megatron-LM's interleaved 1F1B, two chunks on each of four stages: ranks begin with other numbers
// of forward passes than under 1F1B, by which their reader counts stages.
std::vector<Capture> interleaved_ranks(const TemporaryFolder& folder, const PipelineShape& shape) {
  std::vector<std::filesystem::path> files;
  for (std::uint32_t rank = 0; rank < shape.stages; ++rank) {
    std::map<PassKind, std::vector<int>> starts, ends;
    int at = 0;
    for (const PipelinePass& pass : stage_order(shape, rank)) {
      starts[pass.kind].push_back(at);
      ends[pass.kind].push_back(at += 10);
    }
    files.push_back(folder.file(
        fmt::format("pp_rank_{}.json", rank),
        fmt::format(
            R"({{"4": {{"fwd_start": [{}], "fwd_end": [{}], "bwd_start": [{}], )"
            R"("bwd_end": [{}]}}}})",
            fmt::join(starts[PassKind::forward], ","), fmt::join(ends[PassKind::forward], ","),
            fmt::join(starts[PassKind::backward], ","), fmt::join(ends[PassKind::backward], ","))));
  }
  return read_all(files);
}

TEST(PipelinePasses, OfInterleavedStagesAreKnownAndNotJoined) {
  for (const PipelineShape shape :
       {PipelineShape{
            .kind = ScheduleKind::interleaved, .stages = 4, .microbatches = 8, .chunks = 2},
        PipelineShape{
            .kind = ScheduleKind::interleaved, .stages = 8, .microbatches = 16, .chunks = 2},
        PipelineShape{
            .kind = ScheduleKind::interleaved, .stages = 2, .microbatches = 6, .chunks = 3}}) {
    const TemporaryFolder folder;
    std::vector<Capture> captures = interleaved_ranks(folder, shape);
    const CapturedPipeline pipeline = find_pipeline(captures);
    EXPECT_TRUE(pipeline.order_known);
    EXPECT_EQ(pipeline.shape, shape);
    for (std::uint32_t rank = 0; rank < shape.stages; ++rank)
      EXPECT_EQ(pipeline.stage_of_rank[rank], rank);
    expect_error<DataError>(
        [&] { (void)join_ranks(captures); },
        fmt::format("of an interleaved pipeline of {} stages with {} chunks each", shape.stages,
                    shape.chunks),
        "pipeline profile");
    captures.pop_back();  // without the last rank, where the numbers allow one answer
    if (shape.stages == 8) {
      EXPECT_EQ(find_pipeline(captures).shape, shape);
    }
  }
}

TEST(PipelinePasses, BadFilesAreErrors) {
  const TemporaryFolder folder;
  const auto import_text = [&](const std::string& text) {
    return import_capture(folder.file("pp_rank_0.json", text));
  };
  expect_error<DataError>(
      [&] {
        (void)import_text(
            R"({"1": {"fwd_start": [0], "fwd_end": [1, 2], "bwd_start": [], "bwd_end": []}})");
      },
      "fwd_start has 1 times and fwd_end has 2; expected as many");
  expect_error<DataError>(
      [&] {
        (void)import_text(
            R"({"1": {"fwd_start": [3], "fwd_end": [1], "bwd_start": [4], "bwd_end": [5]}})");
      },
      "fwd_end[0] is 1 ms, before 3 ms in fwd_start; a pass ends after its start");
  expect_error<DataError>(
      [&] {
        (void)import_text(
            R"({"1": {"fwd_start": [0], "fwd_end": [1], "bwd_start": [], "bwd_end": []}})");
      },
      "1 forward and 0 backward passes; expected as many of both");
}

// Without a rank in its name a stage is on its own.
TEST(PipelinePasses, AFileWithoutItsRankHasNoTransfers) {
  const TemporaryFolder folder;
  const Capture capture = import_capture(folder.file(
      "stage.json",
      R"({"1": {"fwd_start": [0], "fwd_end": [1], "bwd_start": [2], "bwd_end": [3]}})"));
  EXPECT_EQ(capture.launches.size(), 2u);
  ASSERT_EQ(capture.left_out.size(), 1u);
  EXPECT_NE(capture.left_out[0].find("without its rank"), std::string::npos);
}

// Files of PyTorch name the far side of a send only, and number all of a rank's transfers in one.
TEST(RankJoin, SendsMeetTheirReceives) {
  MadeRanks made({0, 400 * us, 0});
  made.group(0);
  for (std::int64_t k = 0; k < 3; ++k) {
    made.collective({{0, k * 1'000 * us}, {1, (k * 1'000 + 5) * us}}, 20 * us, {});
    made.collective({{1, (k * 1'000 + 300) * us}, {2, (k * 1'000 + 310) * us}}, 20 * us, {});
  }
  std::map<std::size_t, std::uint64_t> sequence;
  for (std::size_t r = 0; r < 3; ++r) {
    Capture& capture = made.captures()[r];
    std::size_t seen = 0;
    for (CapturedCollective& said : capture.collectives) {
      said.kind = CollectiveKind::send_recv;
      said.sequence = sequence[r]++;
      const bool receives = r == 2 || (r == 1 && seen++ % 2 == 0);
      if (receives) {
        said.source_rank = static_cast<std::uint32_t>(r - 1);
      } else {
        said.target_rank = static_cast<std::uint32_t>(r + 1);
      }
    }
  }
  const JoinedRanks joined = join_ranks(made.finish());
  ASSERT_EQ(joined.collectives.size(), 6u);
  for (const JoinedCollective& one : joined.collectives) {
    ASSERT_EQ(one.members.size(), 2u);
    EXPECT_EQ(one.members[1].capture, one.members[0].capture + 1);
    EXPECT_EQ(one.end_spread_ns(), 0);
    EXPECT_EQ(one.transfer_ns(), 20 * us);
  }
  EXPECT_EQ(joined.offset_ns[1] - joined.offset_ns[0], -400 * us);
}

// Makespan of a graph whose lags are replaced by the medians of their kind, so that its structure
// and a handful of numbers must tell when everything runs. A kind is that of the arc, and whether
// each of its ends lasts or is a moment.
double span_with_usual_lags_s(const ExecutionGraph& graph) {
  const auto slack_s = [&](const GraphArc& arc, std::size_t to) {
    return graph.activities()[to].start_s - graph[arc.from].end_s();
  };
  const auto kind_of = [&](const GraphArc& arc, std::size_t to) {
    return std::tuple(arc.kind, graph[arc.from].duration_s == 0.0,
                      graph.activities()[to].duration_s == 0.0);
  };
  const auto each_arc = [&](const auto& visit) {
    for (std::size_t i = 1; i < graph.size(); ++i) {
      for (const GraphArc& arc : graph.arcs_into(id_at<ActivityId>(i))) visit(arc, i);
    }
  };
  std::map<std::tuple<ArcKind, bool, bool>, std::vector<double>> deciding_s;
  each_arc([&](const GraphArc& arc, std::size_t to) {
    double least_s = std::numeric_limits<double>::infinity();
    for (const GraphArc& other : graph.arcs_into(id_at<ActivityId>(to)))
      least_s = std::min(least_s, slack_s(other, to));
    if (slack_s(arc, to) <= least_s) deciding_s[kind_of(arc, to)].push_back(slack_s(arc, to));
  });
  for (auto& [kind, slacks_s] : deciding_s) std::ranges::sort(slacks_s);
  std::vector<double> end_s(graph.size(), 0.0);
  each_arc([&](const GraphArc& arc, std::size_t to) {
    const auto& slacks_s = deciding_s[kind_of(arc, to)];
    const double lag_s = slacks_s.empty() ? 0.0 : slacks_s[slacks_s.size() / 2];
    const double ready_s = end_s[index(arc.from)] + lag_s;
    end_s[to] = std::max(end_s[to], ready_s + graph.activities()[to].duration_s);
  });
  return *std::ranges::max_element(end_s);
}

TEST(PipelinePasses, EightStagesOfAMegatronRunAreReplayed) {
  const auto folder = captured("multirank/primus_pp8");
  std::vector<Capture> stages;
  for (int rank = 0; rank < 8; ++rank)
    stages.push_back(import_capture(folder / fmt::format("pp_rank_{}.json.gz", rank)));
  // iteration -> span found by someone else after an alignment of their own
  std::map<int, double> reference_ms;
  const std::string spans = read_file(folder / "reference.csv");
  for (const std::string_view line : split(spans, '\n')) {
    const auto cells = split(line, ',');
    if (cells.size() > 3 && cells[0] == "pp8")
      reference_ms[std::stoi(std::string(cells[1]))] = std::stod(std::string(cells[2]));
  }
  ASSERT_EQ(reference_ms.size(), 20u);
  double worst = 0.0, sum_s = 0.0;
  for (int iteration = 2; iteration <= 20; ++iteration) {
    std::vector<Capture> captures;
    for (const Capture& stage : stages)
      captures.push_back(only_step(stage, std::to_string(iteration)));
    const CaptureGraph made = capture_graph(captures);
    const double span_s = made.graph.captured_span_s();
    EXPECT_EQ(made.ranks.messages.size(), 2u * 7 * 16);
    EXPECT_NEAR(1e3 * span_s / reference_ms[iteration], 1.0, 1e-4) << iteration;
    EXPECT_LE(replay_error_s(made.graph), 1e-9);
    const double error = span_with_usual_lags_s(made.graph) / span_s - 1.0;
    EXPECT_LE(std::abs(error), 2e-3) << iteration;
    worst = std::max(worst, std::abs(error));
    sum_s += span_s;
  }
  fmt::print("iterations 2 to 20: largest error of a replay with one lag of each kind {:.3f} %\n",
             100.0 * worst);
  // The whole run: steps aligned apart, one after the other.
  const CaptureGraph whole = capture_graph(stages);
  EXPECT_EQ(whole.ranks.messages.size(), 20u * 2 * 7 * 16);
  EXPECT_NE(whole.ranks.notes.back().find("in each of 20 steps apart"), std::string::npos);
  std::vector<Capture> first;
  for (const Capture& stage : stages) first.push_back(only_step(stage, "1"));
  const double first_s = capture_graph(first).graph.captured_span_s();
  EXPECT_NEAR(whole.graph.captured_span_s(), sum_s + first_s, 1e-6 * sum_s);
  EXPECT_LE(replay_error_s(whole.graph), 1e-9);
}

}  // namespace
}  // namespace rubato
