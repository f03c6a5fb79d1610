// Captured ranks against numbers that someone else computed from the same files.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/captures.hpp"
#include "tests/expect_error.hpp"
#include "tests/traces/graph/graph_text.hpp"
#include "tests/traces/graph/made_ranks.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

TEST(RankJoin, EightRanksOfADlrmStepAgreeWithTheirReference) {
  const auto folder = captured("multirank/dlrm_v100_8rank");
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().ends_with(".pt.trace.json.gz")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Capture> captures;
  for (const auto& file : files) captures.push_back(import_capture(file));
  ASSERT_EQ(captures.size(), 8u);

  // collective, rank -> start, end in the rank's own time; times of the file are absolute.
  const CaptureGraph made = capture_graph(captures);
  const auto& found = made.ranks.collectives;
  ASSERT_EQ(found.size(), 8u);
  const std::vector<std::int64_t> skew_us{7624, 1101, 168, 125, 223, 534, 584, 885};
  const std::vector<std::int64_t> spread_us{2, 2, 1, 2, 5, 3, 5, 7};
  const std::vector<std::uint32_t> last{7, 7, 7, 7, 7, 5, 5, 4};
  const std::vector<double> transfer_us{10, 8, 7, 7, 85, 9.5, 19.5, 66};  // to the median end
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(found[i].members.size(), 8u);
    const std::uint32_t late = found[i].members[found[i].last].capture;
    EXPECT_EQ(captures[late].rank.value_or(late), last[i]) << i;
    // Clocks are aligned on ends by up to 4 us, which the reference does not do.
    EXPECT_NEAR(static_cast<double>(found[i].start_skew_ns()) * 1e-3,
                static_cast<double>(skew_us[i]), 5.0)
        << i;
    EXPECT_LE(found[i].end_spread_ns(), (spread_us[i] + 5) * us) << i;
    EXPECT_NEAR(static_cast<double>(found[i].transfer_ns()) * 1e-3, transfer_us[i], 6.0) << i;
  }
  for (const std::int64_t offset_ns : made.ranks.offset_ns) EXPECT_LE(std::abs(offset_ns), 5 * us);
  EXPECT_NEAR(scaled_span_s(made.graph, 1.0) / made.graph.captured_span_s(), 1.0, 1e-3);
  fmt::print("8 ranks: span {:.6f} s, largest error of a start {:.2e} s\n",
             made.graph.captured_span_s(), replay_error_s(made.graph));
}

TEST(RankJoin, RanksWithSampledEventsAreRefused) {
  const auto folder = captured("multirank/hta_sampled_2of128_negative");
  std::vector<Capture> captures;
  for (const char* name : {"sampled_rank-0.json.gz", "sampled_rank-1.json.gz"})
    captures.push_back(import_capture(folder / name));
  expect_error<DataError>([&] { static_cast<void>(capture_graph(captures)); },
                          "collective 3 of stream 0 does not match: all_reduce of 107822144 bytes",
                          "events are missing");
}

}  // namespace
}  // namespace rubato
