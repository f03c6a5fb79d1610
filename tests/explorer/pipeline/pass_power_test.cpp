// Powers of passes of few readings.

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/validation/pass_power.hpp"
#include "tests/made_pipeline_ranks.hpp"
#include "traces/pipeline/captured_ranks.hpp"

namespace rubato {
namespace {

// Of eight readings there is no jackknife: leaving one out leaves too few for the fit.
TEST(PassPower, PowersOfFewReadingsAreNoBetterKnown) {
  const MadePipeline made;
  const auto ranks = made.run(made.model.frame.default_clock);
  std::vector<Capture> captures;
  for (const SimulatedRun& rank : ranks) captures.push_back(rank.capture);
  const CapturedPipeline pipeline = find_pipeline(captures);
  const CapturedStage& stage = pipeline.ranks.front();
  PowerLog log = ranks.front().log;
  const PassPower all = pass_power(ranks.front().capture, stage, log);
  std::string refused;
  std::size_t accepted = 0;
  for (; refused.empty(); log.samples.pop_back()) {
    try {
      const PassPower few = pass_power(ranks.front().capture, stage, log);
      ASSERT_EQ(few.forward_w.has_value(), few.forward_reach_w.has_value());
      ASSERT_EQ(few.backward_w.has_value(), few.backward_reach_w.has_value());
      if (few.forward_reach_w) {
        EXPECT_GT(*few.forward_reach_w, 0.2 * *all.forward_reach_w);
      }
      accepted = log.samples.size();
    } catch (const DataError& error) {
      refused = error.what();
    }
  }
  EXPECT_NE(refused.find(" readings within steps of"), std::string::npos) << refused;
  log = ranks.front().log;
  log.samples.resize(accepted);
  EXPECT_TRUE(pass_power(ranks.front().capture, stage, log).forward_reach_w);
}

}  // namespace
}  // namespace rubato
