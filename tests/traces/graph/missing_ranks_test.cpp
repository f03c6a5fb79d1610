// Runs of which something was not given, and GPUs that share a file.

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "tests/traces/graph/made_ranks.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {
namespace {

// Four ranks, two all-reduces of all and one of ranks 2 and 3 alone.
std::vector<Capture> four_ranks() {
  MadeRanks made({0, 0, 0, 0});
  made.group(1);
  made.group(0);
  for (Capture& capture : made.captures()) {
    capture.groups[0].size = 4;
    capture.groups[0].ranks = {0, 1, 2, 3};
    capture.groups[1].size = 2;
    capture.groups[1].ranks = {2, 3};
  }
  made.collective({{0, 100 * us}, {1, 110 * us}, {2, 150 * us}, {3, 120 * us}}, 20 * us,
                  all_reduce(4096));
  made.group(1);
  made.collective({{2, 300 * us}, {3, 310 * us}}, 20 * us, all_reduce(64));
  made.group(0);
  made.collective({{0, 500 * us}, {1, 510 * us}, {2, 520 * us}, {3, 590 * us}}, 20 * us,
                  all_reduce(4096));
  return made.finish();
}

TEST(MissingRanks, AreStoodInForByTheLastOfThoseGiven) {
  std::vector<Capture> captures = four_ranks();
  ASSERT_TRUE(join_ranks(captures).notes.empty());
  captures.erase(captures.begin() + 2);
  const JoinedRanks joined = join_ranks(captures);
  ASSERT_EQ(joined.collectives.size(), 2u);
  // Rank 2 came last, 30 us after rank 3: that counts as transfer now.
  EXPECT_EQ(captures[joined.collectives[0].members[joined.collectives[0].last].capture].rank, 3u);
  EXPECT_EQ(joined.collectives[0].transfer_ns(), 50 * us);
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_EQ(
      joined.notes[0],
      "rank 2 was not given; energies and plans are of the others; in 2 collectives the last of "
      "those given stands in for them: waiting for others counts as transfer, which no clock "
      "changes; 1 collectives with none but them stay as captured, waiting included");
  const CaptureGraph made = capture_graph(captures);
  EXPECT_EQ(last_rank(made, made.ranks.collectives[0]), 3u);
  EXPECT_LE(replay_error_s(made.graph), 1e-12);
}

// One file of a larger run, as a single capture too.
TEST(MissingRanks, OfALoneRankAreNamed) {
  const Capture lone = four_ranks()[1];
  const JoinedRanks joined = capture_graph(lone).ranks;
  EXPECT_TRUE(joined.collectives.empty());
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_TRUE(joined.notes[0].starts_with("rank")) << joined.notes[0];
  EXPECT_NE(joined.notes[0].find("; energies and plans are of rank 1 alone; "), std::string::npos)
      << joined.notes[0];
  EXPECT_TRUE(joined.notes[0].ends_with("collectives with them stay as captured, waiting included"))
      << joined.notes[0];
}

// Groups of files may have a size and no list of ranks.
TEST(MissingRanks, AreCountedWhereTheyHaveNoNumbers) {
  std::vector<Capture> captures = four_ranks();
  captures.resize(2);
  for (Capture& capture : captures) capture.groups[0].ranks.clear();
  const JoinedRanks joined = join_ranks(captures);
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_EQ(joined.notes[0].find("2 or more ranks were not given; energies and plans"), 0u)
      << joined.notes[0];
}

// Files of older PyTorch have no groups; they say how many ranks the run had.
TEST(MissingRanks, AreKnownFromTheSizeOfTheRunWhereGroupsAreNot) {
  std::vector<Capture> captures = four_ranks();
  for (Capture& capture : captures) {
    capture.world_size = 4;
    for (CaptureGroup& group : capture.groups) {
      group.size.reset();
      group.ranks.clear();
    }
  }
  EXPECT_TRUE(join_ranks(captures).notes.empty());
  captures.erase(captures.begin() + 2);
  const JoinedRanks joined = join_ranks(captures);
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_EQ(joined.notes[0].find("rank 2 was not given; energies and plans are of the others; in 2 "
                                 "collectives the last of those given stands in for them"),
            0u)
      << joined.notes[0];
  EXPECT_TRUE(joined.notes[0].ends_with("all ranks are taken to be in them")) << joined.notes[0];
}

TEST(MissingRanks, RanksOfRunsOfAnotherSizeAreRefused) {
  std::vector<Capture> captures = four_ranks();
  captures[0].world_size = 4;
  captures[3].world_size = 8;
  expect_error<DataError>([&] { static_cast<void>(join_ranks(captures)); },
                          "rank 0 is of a run of 4 ranks, rank 3 of one of 8", "files of one run");
}

// Two ranks of four_ranks as the GPUs of one file.
Capture two_gpus() {
  std::vector<Capture> captures = four_ranks();
  Capture both = captures[0];
  both.rank.reset();
  both.devices.push_back({1, "A100"});
  both.streams.push_back({1, 20});
  for (CaptureGroup& group : both.groups) group = {group.name, "", {}, {}};
  for (CapturedLaunch launch : captures[1].launches) {
    launch.stream = 3;
    both.collectives.push_back(captures[1].collectives[*launch.collective]);
    launch.collective = static_cast<std::uint32_t>(both.collectives.size() - 1);
    both.launches.push_back(launch);
  }
  std::ranges::stable_sort(both.launches, {}, &CapturedLaunch::start_ns);
  return both;
}

TEST(SeveralGpus, OfOneFileShareCollectives) {
  const Capture both = two_gpus();
  const CaptureGraph made = capture_graph(both);
  ASSERT_EQ(made.ranks.collectives.size(), 2u);
  EXPECT_EQ(made.ranks.collectives[0].start_skew_ns(), 10 * us);
  EXPECT_EQ(last_rank(made, made.ranks.collectives[0]), 1u);
  EXPECT_EQ(made.ranks.offset_ns, std::vector<std::int64_t>{0});
  // A stream without launches is none of the run.
  EXPECT_EQ(made.graph.gpus().size(), 2u);
  EXPECT_EQ(made.graph.streams().size(), 2u);
  std::size_t transfers = 0;
  for (const Activity& activity : made.graph.activities())
    transfers += activity.kind == ActivityKind::transfer ? 1 : 0;
  EXPECT_EQ(transfers, 2u);
  EXPECT_LE(replay_error_s(made.graph), 1e-12);
}

// What does not match on the GPUs of one file is no reason to refuse it.
TEST(SeveralGpus, ThatDoNotMatchStayAsCaptured) {
  Capture both = two_gpus();
  both.launches.pop_back();
  const CaptureGraph made = capture_graph(both);
  EXPECT_TRUE(made.ranks.collectives.empty());
  ASSERT_EQ(made.ranks.notes.size(), 1u);
  EXPECT_EQ(made.ranks.notes[0],
            "collectives between the GPUs of this file stay as captured, waiting included: "
            "collectives of group 0 do not match: GPU 0 has 2, GPU 1 has 1");
}

TEST(SeveralGpus, WithoutCollectivesNeedNoNote) {
  Capture both = two_gpus();
  for (CapturedLaunch& launch : both.launches) launch.kernel = KernelId{0};
  EXPECT_TRUE(capture_graph(both).ranks.notes.empty());
}

// The GPUs of two ranks in one file, as a process that has both; their launches take turns.
Capture in_one_file(const Capture& first, const Capture& second) {
  Capture both = first;
  both.devices.push_back({1, "A100"});
  const auto streams = static_cast<std::uint32_t>(both.streams.size());
  for (CaptureStream stream : second.streams) {
    stream.device = 1;
    both.streams.push_back(stream);
  }
  const auto collectives = static_cast<std::uint32_t>(both.collectives.size());
  both.collectives.insert(both.collectives.end(), second.collectives.begin(),
                          second.collectives.end());
  for (CapturedLaunch launch : second.launches) {
    launch.stream += streams;
    if (launch.collective) *launch.collective += collectives;
    both.launches.push_back(launch);
  }
  std::ranges::stable_sort(both.launches, {}, &CapturedLaunch::start_ns);
  return both;
}

// Ranks 0 and 2 in the one, 1 and 3 in the other, whose clock is 7 ms ahead.
std::vector<Capture> two_files_of_two_gpus() {
  const std::vector<Capture> ranks = four_ranks();
  std::vector<Capture> files{in_one_file(ranks[0], ranks[2]), in_one_file(ranks[1], ranks[3])};
  for (CapturedLaunch& launch : files[1].launches) launch.start_ns += 7'000 * us;
  return files;
}

TEST(SeveralGpus, OfSeveralFilesAreJoinedAsRanksOfTheirOwn) {
  const std::vector<Capture> files = two_files_of_two_gpus();
  const CaptureGraph made = capture_graph(files), apart = capture_graph(four_ranks());
  EXPECT_TRUE(made.ranks.notes.empty());
  ASSERT_EQ(made.ranks.collectives.size(), 3u);
  EXPECT_EQ(made.ranks.offset_ns[0] - made.ranks.offset_ns[1], 7'000 * us);
  for (std::size_t i = 0; i < 3; ++i) {
    const JoinedCollective &one = made.ranks.collectives[i], &other = apart.ranks.collectives[i];
    EXPECT_EQ(one.members.size(), other.members.size());
    EXPECT_EQ(one.start_skew_ns(), other.start_skew_ns());
    EXPECT_EQ(one.transfer_ns(), other.transfer_ns());
    const CollectiveMember &last = one.members[one.last], &expected = other.members[other.last];
    // Rank 2 is the second GPU of the first file, rank 3 that of the second.
    const Capture& file = files[last.capture];
    EXPECT_EQ(last.capture, expected.capture % 2);
    EXPECT_EQ(file.streams[file.launches[last.launch].stream].device, expected.capture / 2);
  }
  EXPECT_EQ(made.graph.gpus().size(), 4u);
  EXPECT_NEAR(made.graph.captured_span_s(), apart.graph.captured_span_s(), 1e-12);
  EXPECT_LE(replay_error_s(made.graph), 1e-12);
  EXPECT_EQ(made.overlap_s, 0.0);  // GPUs overlap, streams do not
}

TEST(SeveralGpus, OfSeveralFilesThatDoNotMatchAreNamed) {
  std::vector<Capture> files = two_files_of_two_gpus();
  files[1].launches.pop_back();  // of rank 3, the second GPU
  expect_error<DataError>([&] { static_cast<void>(join_ranks(files)); },
                          "collectives of group 0 (ranks 0 to 3) do not match: rank 0 GPU 0 has 2, "
                          "rank 0 GPU 1 has 2, rank 1 GPU 0 has 2, rank 1 GPU 1 has 1");
  files = two_files_of_two_gpus();
  files[1].collectives.back().in_bytes = 512;
  expect_error<DataError>([&] { static_cast<void>(join_ranks(files)); },
                          "all_reduce of 4096 bytes on rank 0 GPU 0, all_reduce of 512 bytes on "
                          "rank 1 GPU 1");
}

// The file has one number, its group one for each GPU: which are missing is not known.
TEST(SeveralGpus, OfWhichAFileIsMissingHaveNoNumbers) {
  const std::vector<Capture> one{two_files_of_two_gpus().front()};
  const JoinedRanks joined = join_ranks(one);
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_EQ(joined.notes[0].find("2 or more ranks were not given; energies and plans"), 0u)
      << joined.notes[0];
}

// Launches of one stream that overlap for a part of them run one after the other; how much that
// was is told, of all files.
TEST(SeveralGpus, OverlapWithinTheirStreamsAddsUp) {
  std::vector<Capture> files = two_files_of_two_gpus();
  for (std::size_t f = 0; f < 2; ++f) {
    Capture& file = files[f];
    const std::int64_t at_ns = file.launches.back().end_ns() + 100 * us;
    CapturedLaunch launch;
    launch.start_ns = at_ns;
    launch.duration_ns = 50 * us;
    file.launches.push_back(launch);
    launch.start_ns = at_ns + 40 * us;  // within the one before for 10 us
    file.launches.push_back(launch);
    launch.stream = 3;  // beside both, on the other GPU
    launch.start_ns = at_ns + 45 * us;
    file.launches.push_back(launch);
  }
  const CaptureGraph made = capture_graph(files);
  EXPECT_NEAR(made.overlap_s, 2 * 10e-6, 1e-12);
  EXPECT_EQ(made.ranks.collectives.size(), 3u);
}

}  // namespace
}  // namespace rubato
