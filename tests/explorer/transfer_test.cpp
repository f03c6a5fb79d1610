#include "explorer/transfer.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

class TransferTest : public testing::Test {
 protected:
  TransferTest() {
    found_ = explore(input_);
    store_trace(folder_ / "r.db", input_, *found_, {"rubato explore", "{}"});
  }

  // Plans are the questions of small_input.
  [[nodiscard]] StoredPlan plan(std::int64_t id) const {
    return load_plan(ResultStore::open_read_only(folder_ / "r.db"), id);
  }

  TemporaryFolder folder_;
  ExplorationInput input_ = small_input();
  std::optional<Exploration> found_;
};

TEST_F(TransferTest, ToItsOwnTraceChangesNothing) {
  for (std::size_t i = 0; i < 4; ++i) {
    const Transfer same = transfer(plan(static_cast<std::int64_t>(i) + 1), input_.trace);
    EXPECT_EQ(same.transferred.energy_j, found_->plans[i].sim.total.energy_j);
    EXPECT_EQ(same.own->energy_j, found_->plans[i].sim.total.energy_j);
    EXPECT_EQ(same.regret_points(), 0.0);
    EXPECT_DOUBLE_EQ(same.known_frac, 1.0);
  }
}

// On its own trace the interval is the plan's; at another batch less is known of every kernel.
TEST_F(TransferTest, TheIntervalIsThePlansAndWiderElsewhere) {
  const Interval own = transfer(plan(3), input_.trace).interval->energy;
  EXPECT_EQ(own.low_pct, found_->plans[2].interval->energy.low_pct);
  EXPECT_EQ(own.high_pct, found_->plans[2].interval->energy.high_pct);
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.batch = 8;
  const Transfer other = transfer(plan(3), generate_training_step(shape).trace);
  const Interval elsewhere = other.interval->energy;
  EXPECT_GT(elsewhere.high_pct - elsewhere.low_pct, own.high_pct - own.low_pct);
  const double change = change_pct(other.transferred.energy_j, other.baseline.energy_j);
  EXPECT_LE(elsewhere.low_pct, change);
  EXPECT_GE(elsewhere.high_pct, change);
}

// At batch 1 the usual tiles of five products leave a fifth of the SMs idle, at batch 5 none more
// than where they were measured: which tiles a library takes then is within the interval.
TEST_F(TransferTest, IntervalsReachOverWhatTilesMayDo) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  const auto below = [&](std::uint64_t batch) {
    shape.batch = batch;
    const Transfer other = transfer(plan(3), generate_training_step(shape).trace);
    return change_pct(other.transferred.time_s, other.baseline.time_s) -
           other.interval->time.low_pct;
  };
  EXPECT_GT(below(1), below(5) + 1.0);
}

TEST_F(TransferTest, KeepsUnknownKernelsAtDefaultClocks) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.tensor_parallel = 4;
  const Transfer other = transfer(plan(3), generate_training_step(shape).trace);
  EXPECT_GT(other.known_frac, 0.3);
  EXPECT_LT(other.known_frac, 1.0);  // collectives are new
  EXPECT_LT(other.transferred.energy_j, other.baseline.energy_j);
  EXPECT_LE(other.own->time_s, other.baseline.time_s * (1.0 + 1e-12));
}

TEST_F(TransferTest, RegretAtEqualTimeIsAgainstAPlanThatIsNoSlower) {
  TrainingStep shape = gpt_preset("gpt3-xl");
  for (const std::uint64_t batch : {1U, 40U}) {
    shape.batch = batch;
    const Transfer other = transfer(plan(3), generate_training_step(shape).trace);
    ASSERT_TRUE(other.own_in_time);
    EXPECT_LE(other.own_in_time->time_s, other.transferred.time_s * (1.0 + 1e-8));
    EXPECT_LE(other.own_in_time->energy_j, other.transferred.energy_j * (1.0 + 1e-12));
    EXPECT_GE(*other.equal_time_regret_points(), -1e-10);
    EXPECT_GT(other.limited_frac, 0.9);  // docs/models.md: nearly all GEMMs of this step
    EXPECT_LE(other.limited_frac, 1.0);
  }
  // Tensor parallelism brings collectives, which are far below the limit.
  shape.tensor_parallel = 8;
  EXPECT_LT(transfer(plan(3), generate_training_step(shape).trace).limited_frac, 0.5);
}

TEST_F(TransferTest, RefusesPlansWithoutClocks) {
  expect_error<UsageError>([&] { (void)plan(99); }, "there is no plan 99",
                           "v_plans lists the plans");
  expect_error<UsageError>([&] { (void)plan(5); }, "plan 5 is infeasible");
}

}  // namespace
}  // namespace rubato
