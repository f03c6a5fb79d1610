#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/drawing/latency.hpp"
#include "tools/drawing/page.hpp"
#include "tools/drawing/transfer.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {
namespace {

const std::string hostile = "<b>&lt; \"'&nbsp;\t";  // a name as it may stand in a file

std::string two_lines() { return "a: energy -1 %,\nb c on " + hostile; }

TEST(Answer, IsPlainTextOnATerminal) {
  EXPECT_EQ(answer_text("on what", two_lines()),
            "on what\na: energy -1 %,\nb c on <b>&lt; \"'&nbsp;\\x09\n\n");
  EXPECT_EQ(answer_text("on what", {}), "on what\n\n");
}

TEST(Page, HoldsAnswerAndTablesAsData) {
  OutputTable table({{"kernel"}, {"time_ms"}});
  table.add_row({"</script>" + hostile, 1.5});
  const std::string page =
      drawn_page({"title", "on what", two_lines(), "little"},
                 std::array{PagePart{.name = "kernels", .title = "Kernels", .table = &table}});
  EXPECT_NE(page.find(R"("found":"a: energy -1 %, b c on)"), std::string::npos);
  EXPECT_NE(page.find(R"("kernels":{"columns":["kernel","time_ms"],"rows":[["\u003c/script\u003e)"),
            std::string::npos);
}

// A plan that changes time by +2 % and energy by -10 %, where a plan of the run's own saves 12 %.
DrawnTransfer played(const std::string& run) {
  DrawnTransfer drawn;
  drawn.transfer.run = run;
  drawn.transfer.baseline = {1.0, 100.0};
  drawn.transfer.transferred = {1.02, 90.0};
  drawn.transfer.own = Cost{1.0, 88.0};
  return drawn;
}

TEST(TransferAnswer, IsOfOneRunOrTheMeanOfMany) {
  DrawnTransfer trace = played("a"), worse = played("b");
  trace.transfer.own_in_time = Cost{1.02, 87.0};
  worse.transfer.own_in_time = Cost{1.02, 85.0};
  const auto said = [](const std::vector<DrawnTransfer>& runs) {
    return answer_text("on what", transfer_answer(runs));
  };
  EXPECT_EQ(said({trace}),
            "on what\nThere the plan changes energy by -10.00 % and time by +2.00 %. A plan of its "
            "own would save 3.00 points more in the same time.\n\n");
  EXPECT_EQ(
      said({trace, worse}),
      "on what\nOn 2 other traces the plan changes energy by -10.00 % and time by +2.00 % in "
      "the mean. Plans of their own would save 4.00 points more in the same time; most, 5.00, "
      "on b.\n\n");
  worse.source = true;
  EXPECT_EQ(said({trace, worse}), said({trace}));
  trace.source = true;
  EXPECT_EQ(said({trace}), "on what\nNothing but the trace it was found on.\n\n");
}

TEST(TransferAnswer, OfCapturesSaysWhereTheDeadlineIsKept) {
  DrawnTransfer kept = played("a"), missed = played("b");
  kept.transfer.deadline_s = 1.02;
  missed.transfer.deadline_s = 1.01;
  const auto said = [](const std::vector<DrawnTransfer>& runs) {
    return answer_text("on what", transfer_answer(runs));
  };
  EXPECT_EQ(
      said({missed}),
      "on what\nThere the plan changes energy by -10.00 % and time by +2.00 %; the deadline is "
      "missed. A plan of its own would save 2.00 points more.\n\n");
  EXPECT_EQ(
      said({kept, missed}),
      "on what\nOn 2 captured runs the plan changes energy by -10.00 % and time by +2.00 % in "
      "the mean; the deadline is kept on 1. Plans of their own would save 2.00 points more in "
      "the mean.\n\n");
}

TEST(LatencyAnswer, NamesTheShortestAndTheLongestOnce) {
  const std::vector<LatencySaving> savings{
      {10.0, true, -5.0}, {1e3, true, -2.0}, {10.0, false, -6.0}};
  EXPECT_EQ(answer_text("on what", latency_answer(savings, "stage")),
            "on what\nA stage that waits for its clock: energy -5.00 % if a switch takes 10 "
            "us, -2.00 % if it takes 1 ms.\nA stage that runs on meanwhile: energy -6.00 % if a "
            "switch takes 10 us.\n\n");
  EXPECT_TRUE(latency_answer(std::vector<LatencySaving>{}, "stage").empty());
}

}  // namespace
}  // namespace rubato
