// Ranks of runs whose clocks, collectives and stragglers are known.

#include "traces/graph/rank_join.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "tests/traces/graph/made_ranks.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {
namespace {

// Two ranks, three collectives; rank 1 is 70 us late for the second and has a clock 5 ms ahead.
MadeRanks two_ranks() {
  MadeRanks made({0, 5'000 * us});
  made.group(0);
  made.collective({{0, 100 * us}, {1, 110 * us}}, 20 * us, all_reduce(4096));
  made.collective({{0, 200 * us}, {1, 270 * us}}, 30 * us, all_reduce(512));
  made.collective({{0, 460 * us}, {1, 400 * us}}, 10 * us, all_reduce(4096));
  return made;
}

TEST(RankJoin, TellsWaitingFromTransferring) {
  const JoinedRanks joined = join_ranks(two_ranks().finish());
  ASSERT_EQ(joined.collectives.size(), 3u);
  EXPECT_EQ(joined.offset_ns[0] - joined.offset_ns[1], 5'000 * us);
  const std::vector<std::uint32_t> last{1, 1, 0};
  const std::vector<std::int64_t> skew_us{10, 70, 60}, transfer_us{20, 30, 10};
  for (std::size_t i = 0; i < 3; ++i) {
    const JoinedCollective& one = joined.collectives[i];
    EXPECT_EQ(one.members.size(), 2u);
    EXPECT_EQ(one.members[one.last].capture, last[i]);
    EXPECT_EQ(one.start_skew_ns(), skew_us[i] * us);
    EXPECT_EQ(one.end_spread_ns(), 0);
    EXPECT_EQ(one.transfer_ns(), transfer_us[i] * us);
    EXPECT_EQ(one.name, "nccl");
    EXPECT_EQ(one.kind, CollectiveKind::all_reduce);
    EXPECT_NE(one.group.find("group 0"), std::string::npos);
  }
  EXPECT_TRUE(joined.notes.empty());
}

TEST(RankJoin, EpochsAreAdded) {
  MadeRanks made = two_ranks();
  std::vector<Capture> captures = made.finish();
  captures[0].epoch_ns = 1'700'000'000'000'000'000;
  captures[1].epoch_ns = 1'700'000'000'000'000'000 - 5'000 * us;
  EXPECT_EQ(join_ranks(captures).offset_ns[0], join_ranks(captures).offset_ns[1]);
}

// Hosts that keep the time together differ by milliseconds. Files of seconds apart may be of one
// run with a wrong clock, or of other steps, which their names tell.
TEST(RankJoin, ClocksSecondsApartAreToldAndOtherStepsRefused) {
  MadeRanks made({0, -3'200'000 * us});
  made.group(0);
  made.collective({{0, 100 * us}, {1, 110 * us}}, 20 * us, all_reduce(4096));
  made.collective({{0, 200 * us}, {1, 270 * us}}, 30 * us, all_reduce(512));
  std::vector<Capture> captures = made.finish();
  for (Capture& capture : captures) {
    capture.epoch_ns = 1'700'000'000'000'000'000;
    capture.step_source = StepSource::annotation;
    capture.steps = {{"ProfilerStep#5", 0, 1}, {"ProfilerStep#6", 1, 2}};
  }
  EXPECT_EQ(join_ranks(captures).notes,
            std::vector<std::string>{
                "the clock of rank 1 is 3.200 s behind that of rank 0: they are aligned by what "
                "they share, as if these were files of the same steps"});
  EXPECT_EQ(join_ranks(captures).collectives[1].start_skew_ns(), 70 * us);
  captures[1].steps = {{"ProfilerStep#15", 0, 1}};
  expect_error<DataError>([&] { (void)join_ranks(captures); },
                          "they have no step in common: rank 0 has 'ProfilerStep#5', rank 1 has "
                          "'ProfilerStep#15'",
                          "same steps");
  captures[1].epoch_ns.reset();  // no date: nothing says that they are apart
  EXPECT_TRUE(join_ranks(captures).notes.empty());
}

TEST(RankJoin, ATransferIsOneActivityOfAllRanks) {
  MadeRanks made = two_ranks();
  made.compute(0, 0, 90 * us);
  made.compute(1, 0, 105 * us);
  const std::vector<Capture> captures = made.finish();
  const CaptureGraph joined = capture_graph(captures);
  EXPECT_LE(replay_error_s(joined.graph), 1e-12);
  EXPECT_NEAR(joined.graph.captured_span_s(), 470e-6, 1e-12);
  std::map<ActivityKind, int> count;
  for (const Activity& activity : joined.graph.activities()) ++count[activity.kind];
  EXPECT_EQ(count[ActivityKind::arrival], 6);
  EXPECT_EQ(count[ActivityKind::transfer], 3);
  EXPECT_EQ(count[ActivityKind::departure], 6);
  EXPECT_EQ(count[ActivityKind::launch], 2);
  EXPECT_EQ(joined.graph.gpus().size(), 2u);
  EXPECT_EQ(joined.graph.gpus()[1].rank, 1u);
  for (std::size_t c = 0; c < 2; ++c) {
    for (std::size_t i = 0; i < captures[c].launches.size(); ++i)
      EXPECT_EQ(joined.graph[joined.activity_of_launch[c][i]].launch, i);
  }
}

TEST(RankJoin, CountsThatDifferAreRefused) {
  MadeRanks made = two_ranks();
  made.captures()[1].launches.pop_back();
  expect_error<DataError>([&] { static_cast<void>(join_ranks(made.finish())); },
                          "do not match: rank 0 has 3, rank 1 has 2", "the same step of one run");
}

TEST(RankJoin, OtherBytesOrKindsAreRefused) {
  for (const bool bytes : {true, false}) {
    MadeRanks made = two_ranks();
    CapturedCollective& said = made.captures()[1].collectives[1];
    if (bytes) {
      said.in_bytes = 513;
    } else {
      said.kind = CollectiveKind::all_gather;
    }
    expect_error<DataError>(
        [&] { static_cast<void>(join_ranks(made.finish())); },
        bytes ? "collective 1 of group 0 does not match: all_reduce of 512 bytes on rank 0, "
                "all_reduce of 513 bytes on rank 1"
              : "collective 1 of group 0 does not match: all_reduce of 512 bytes on rank 0, "
                "all_gather on rank 1",
        "files of different runs");
  }
}

// All-gathers of unequal parts are no mismatch.
TEST(RankJoin, OnlyAllReducesNeedEqualBytes) {
  MadeRanks made = two_ranks();
  for (std::size_t r = 0; r < 2; ++r) {
    made.captures()[r].collectives[0].kind = CollectiveKind::all_gather;
    made.captures()[r].collectives[0].in_bytes = 100 + r;
  }
  EXPECT_EQ(join_ranks(made.finish()).collectives.size(), 3u);
}

TEST(RankJoin, NothingSharedIsRefused) {
  MadeRanks made({0, 0});
  made.group(0);
  made.collective({{0, 0}}, 10 * us);
  made.compute(1, 0, 10 * us);
  expect_error<DataError>([&] { static_cast<void>(join_ranks(made.finish())); },
                          "the captures share no collective", "joined by their collectives");
}

TEST(RankJoin, ARankGivenTwiceIsRefused) {
  std::vector<Capture> captures = two_ranks().finish();
  captures[1].rank = 0;
  expect_error<DataError>([&] { static_cast<void>(capture_graph(captures)); },
                          "two captures are of rank 0; expected one of each rank");
}

TEST(RankJoin, FilesThatDoNotSayTheirRankAreNamedByPosition) {
  MadeRanks made = two_ranks();
  for (Capture& capture : made.captures()) capture.rank.reset();
  EXPECT_EQ(join_ranks(made.finish()).collectives.size(), 3u);
  made.captures()[0].launches.pop_back();
  expect_error<DataError>([&] { static_cast<void>(join_ranks(made.finish())); },
                          "file 0 ('rank0') has 2, file 1 ('rank1') has 3");
}

// Equal counts, but of other collectives: the profilers left some out.
TEST(RankJoin, SampledEventsAreRefusedByTheirEnds) {
  MadeRanks made({0, 0});
  made.group({});
  for (std::int64_t k = 0; k < 10; ++k)
    made.collective({{0, k * 7'000 * us}, {1, (k * 7'000 + 5) * us}}, 20 * us);
  auto& launches = made.captures()[0].launches;
  auto& others = made.captures()[1].launches;
  launches.erase(launches.begin() + 2);
  launches.erase(launches.begin() + 7);
  others.erase(others.begin() + 5);
  others.erase(others.begin() + 5);
  expect_error<DataError>([&] { static_cast<void>(join_ranks(made.finish())); },
                          "of 8 collectives do not end together on all ranks; 'nccl' of stream 0",
                          "events were left out of these files");
}

TEST(RankJoin, WindowsThatWereCutAreJoinedBySequence) {
  MadeRanks made({0, -300 * us});
  made.group(0);
  for (std::uint64_t k = 0; k < 6; ++k) {
    const auto at_ns = static_cast<std::int64_t>(k) * 1'000 * us;
    made.collective({{0, at_ns}, {1, at_ns + 4 * us}}, 20 * us, numbered(40 + k));
  }
  made.captures()[0].launches.erase(made.captures()[0].launches.begin());
  made.captures()[1].launches.pop_back();
  made.captures()[1].launches.pop_back();
  const JoinedRanks joined = join_ranks(made.finish());
  ASSERT_EQ(joined.collectives.size(), 3u);
  EXPECT_EQ(joined.offset_ns[1] - joined.offset_ns[0], 300 * us);
  for (const JoinedCollective& one : joined.collectives) EXPECT_EQ(one.end_spread_ns(), 0);
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_NE(joined.notes[0].find("3 collectives of group 0 are not in every file"),
            std::string::npos)
      << joined.notes[0];
}

// Coalesced operations carry one number; a rank that lost all of them does not pair with another.
TEST(RankJoin, NumbersThatRepeatDoNotStandForAnotherRank) {
  MadeRanks made({0, 0});
  made.group(0);
  made.collective({{0, 0}, {1, 2 * us}}, 20 * us, numbered(1));
  made.collective({{0, 100 * us}}, 20 * us, numbered(2));
  made.collective({{0, 200 * us}}, 20 * us, numbered(2));
  made.collective({{0, 300 * us}, {1, 302 * us}}, 20 * us, numbered(3));
  const JoinedRanks joined = join_ranks(made.finish());
  ASSERT_EQ(joined.collectives.size(), 2u);
  for (const JoinedCollective& one : joined.collectives) {
    EXPECT_EQ(one.start_skew_ns(), 2 * us);
    EXPECT_EQ(one.end_spread_ns(), 0);
  }
}

TEST(RankJoin, ARankThatSharesNothingIsNoted) {
  MadeRanks made({0, 9 * us, 0});
  made.group(0);
  made.collective({{0, 0}, {1, 2 * us}}, 20 * us);
  made.compute(2, 0, 10 * us);
  const JoinedRanks joined = join_ranks(made.finish());
  ASSERT_EQ(joined.notes.size(), 1u);
  EXPECT_EQ(joined.notes[0], "rank 2 shares no collective; its clock is taken as it is");
}

struct Expected {
  std::vector<MadeRanks::Part> parts;
  std::int64_t transfer_ns;
};

// A run of any groups, clocks, skews and jitter.
class AnyRun {
 public:
  AnyRun() : made_(error_ns_) {
    const auto rounds = *rc::gen::inRange(3, 9);
    for (int round = 0; round < rounds; ++round) {
      const auto number = *rc::gen::inRange<std::uint32_t>(0, groups_);
      if (with_groups_) {
        made_.group(number);
      } else {
        made_.group({}, *rc::gen::inRange<std::uint32_t>(1, 3));
      }
      if (pipeline_) {
        pass_on();
        continue;
      }
      std::vector<std::size_t> all(ranks_);
      std::iota(all.begin(), all.end(), std::size_t{0});
      add(all, all_reduce(64 * (1 + *rc::gen::inRange<std::uint64_t>(0, 3))),
          std::to_string(number));
    }
  }

  [[nodiscard]] JoinedRanks joined() { return join_ranks(made_.finish()); }
  [[nodiscard]] const std::vector<Expected>& expected() const { return expected_; }
  [[nodiscard]] const std::vector<std::int64_t>& error_ns() const { return error_ns_; }
  [[nodiscard]] std::int64_t jitter_ns() const { return jitter_ns_; }

 private:
  // Neighbours send one another something.
  void pass_on() {
    made_.group(0);
    for (std::uint32_t r = 0; r + 1 < ranks_; ++r) {
      CapturedCollective said;
      said.kind = CollectiveKind::send_recv;
      said.source_rank = r;
      said.target_rank = r + 1;
      add({r, r + 1}, said, "pipeline" + std::to_string(r));
    }
  }

  void add(const std::vector<std::size_t>& members, CapturedCollective said,
           const std::string& row) {
    Expected one{{}, *rc::gen::inRange<std::int64_t>(20 * us, 300 * us)};
    std::int64_t last_ns = now_ns_;
    for (const std::size_t r : members) {
      const std::int64_t start_ns = now_ns_ + *rc::gen::inRange<std::int64_t>(0, 3'000 * us);
      last_ns = std::max(last_ns, start_ns);
      one.parts.push_back({r, start_ns, *rc::gen::inRange<std::int64_t>(0, jitter_ns_ + 1)});
    }
    if (with_numbers_) said.sequence = 100 + counts_[row]++;
    made_.collective(one.parts, one.transfer_ns, said);
    expected_.push_back(one);
    now_ns_ = last_ns + one.transfer_ns + jitter_ns_ + 1'000 * us;
  }

  std::size_t ranks_ = *rc::gen::inRange<std::size_t>(2, 5);
  std::int64_t jitter_ns_ = *rc::gen::inRange<std::int64_t>(0, 8 * us);
  std::vector<std::int64_t> error_ns_ = *rc::gen::container<std::vector<std::int64_t>>(
      ranks_, rc::gen::inRange<std::int64_t>(-50'000'000, 50'000'000));
  bool pipeline_ = *rc::gen::arbitrary<bool>();  // only neighbours communicate
  bool with_groups_ = pipeline_ || *rc::gen::arbitrary<bool>();
  bool with_numbers_ = with_groups_ && *rc::gen::arbitrary<bool>();
  std::uint32_t groups_ = with_groups_ ? *rc::gen::inRange<std::uint32_t>(1, 4) : 1U;
  MadeRanks made_;
  std::map<std::string, std::uint64_t> counts_;
  std::vector<Expected> expected_;
  std::int64_t now_ns_ = 0;
};

// Exactly what belongs together is joined.
RC_GTEST_PROP(RankJoin, FindsWhatBelongsTogether, ()) {
  AnyRun run;
  const JoinedRanks joined = run.joined();
  const std::vector<Expected>& expected = run.expected();
  const std::vector<std::int64_t>& error_ns = run.error_ns();
  RC_ASSERT(joined.collectives.size() == expected.size());
  const std::int64_t worst_ns = std::ssize(error_ns) * run.jitter_ns();
  for (std::size_t r = 1; r < error_ns.size(); ++r) {
    const std::int64_t found_ns = joined.offset_ns[r] - joined.offset_ns[0];
    RC_ASSERT(std::abs(found_ns + error_ns[r] - error_ns[0]) <= worst_ns);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {  // 1 ms apart: the order is kept
    const JoinedCollective& one = joined.collectives[i];
    const Expected& want = expected[i];
    RC_ASSERT(one.members.size() == want.parts.size());
    const auto last = std::ranges::max_element(want.parts, {}, &MadeRanks::Part::start_ns);
    RC_ASSERT(one.end_spread_ns() <= worst_ns + run.jitter_ns());
    RC_ASSERT(std::abs(one.transfer_ns() - want.transfer_ns) <= worst_ns + run.jitter_ns());
    for (std::size_t m = 0; m < one.members.size(); ++m) {
      RC_ASSERT(one.members[m].capture == want.parts[m].rank);
      RC_ASSERT(std::abs(one.members[m].start_ns - joined.offset_ns[0] - error_ns[0] -
                         want.parts[m].start_ns) <= worst_ns);
    }
    const auto& named = want.parts[one.last];
    RC_ASSERT(last->start_ns - named.start_ns <= worst_ns);
  }
}

}  // namespace
}  // namespace rubato
