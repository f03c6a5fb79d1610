#include "explorer/choice.hpp"

#include <gtest/gtest.h>

#include "tests/explorer/small_run.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

TEST(ChoiceUnits, PassesAreThoseOfThePaper) {
  const Trace trace = load_trace("gpt3-xl");
  const ChoiceUnits units = choice_units(trace, Granularity::pass);
  EXPECT_EQ(units.names, (std::vector<std::string>{"forward", "backward"}));
  EXPECT_EQ(units.unit_of_kernel[15], UnitId{0});  // the loss ends the forward pass
  EXPECT_EQ(units.unit_of_kernel[16], UnitId{1});
  TrainingStep shape = gpt_preset("gpt3-xl");
  shape.optimizer = true;
  EXPECT_EQ(choice_units(generate_training_step(shape).trace, Granularity::pass).names.size(), 3U);
}

// One exploration of everything, as a whole-run test.
TEST(Explore, SimulatorAndSolverAgree) {
  ExplorationInput input = paper_input("paper");
  const std::vector<Goal> goals{LeastWaste{}, LeastWaste{0.1, 0.0}, LeastEdp{},
                                LeastEd2p{},  LeastEnergy{},        LeastTime{{}, 250.0}};
  for (const Goal& goal : goals) {
    for (const auto granularity : {Granularity::run, Granularity::pass, Granularity::kernel}) {
      input.questions.push_back({granularity, Aggregation::global, goal});
    }
  }
  const Exploration found = explore(input);
  ASSERT_EQ(found.plans.size(), 18U);
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const PlanResult& plan = found.plans[i];
    EXPECT_EQ(plan.status, SolveStatus::optimal) << i;
    if (const auto* waste = std::get_if<LeastWaste>(&plan.question.goal)) {
      EXPECT_LE(plan.sim.total.time_s,
                found.baseline.total.time_s * (1.0 + waste->slack_frac) * (1.0 + 1e-12));
      EXPECT_NEAR(plan.sim.total.energy_j / plan.objective, 1.0, 1e-12);
    }
    // A finer granularity never does worse.
    if (i % 3 != 0) {
      EXPECT_LE(plan.objective, found.plans[i - 1].objective * (1.0 + 1e-12));
    }
  }
  EXPECT_LE(found.plans.back().sim.total.average_power_w(), 250.0 * (1.0 + 1e-12));
}

}  // namespace
}  // namespace rubato
