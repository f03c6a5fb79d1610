// Our frontier and our plans against lowtime's, the solver of Perseus.

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/numbers.hpp"
#include "explorer/pipeline/lowtime.hpp"
#include "explorer/pipeline/planner.hpp"
#include "explorer/published.hpp"
#include "tests/explorer/pipeline/reference.hpp"

namespace rubato {
namespace {

constexpr double unit_s = 1e-3;  // of the reference frontiers

// lowtime's own problem: exponential costs at whole milliseconds.
CrashProblem fitted_problem(const Reference& reference, const PipelineSchedule& schedule) {
  const CsvTable model = CsvTable::read(reference.file("model.csv"));
  const auto a = column_of(model, "a"), b = column_of(model, "b"), c = column_of(model, "c");
  const auto first = column_of(model, "min_q"), last = column_of(model, "max_q");
  CrashProblem problem;
  for (std::size_t row = 0; row < model.rows(); ++row) {
    std::vector<CurvePoint> points;
    for (double q = first[row]; q <= last[row]; ++q) {
      points.push_back({q * unit_s, a[row] * std::exp(b[row] * q) + c[row]});
    }
    problem.curves.push_back(lower_hull(points));
  }
  for (const PipelinePass& pass : schedule.passes) {  // rows: stage-major, forward first
    problem.curve_of_activity.push_back(2 * pass.stage + (pass.kind == PassKind::backward ? 1 : 0));
  }
  problem.dependencies = schedule.dependencies;
  return problem;
}

TEST(Lowtime, OurFrontierOnItsFittedCostsIsItsFrontier) {
  for (const Reference& reference : references()) {
    SCOPED_TRACE(reference.folder);
    const Frontier frontier = sweep_frontier(fitted_problem(reference, reference.schedule()));
    const CsvTable table = CsvTable::read(reference.file("frontier.csv"));
    const auto time_s = column_of(table, "time"), cost_j = column_of(table, "eff_cost");
    EXPECT_NEAR(frontier.slowest_time_s, time_s.front() + unit_s, 1e-9);  // its first step is done
    EXPECT_NEAR(frontier.least_time_s, time_s.back(), 1e-9);
    double worst = 0.0;
    for (std::size_t i = 0; i < time_s.size(); ++i) {
      worst = std::max(worst, std::abs(cost_on(frontier, time_s[i]) / cost_j[i] - 1.0));
      worst = std::max(worst, std::abs(frontier.lower_bound_j(time_s[i]) / cost_j[i] - 1.0));
    }
    EXPECT_LT(worst, 1e-9);
  }
}

TEST(Lowtime, OurPlansUseLessEnergyAtItsTimes) {
  for (const Reference& reference : references()) {
    SCOPED_TRACE(reference.folder);
    const PipelineWork work =
        pipeline_work(reference.schedule(), gpt3_a100(), a100_blocked_w, reference.stage_map());
    const PipelinePlanner planner(work);
    const CsvTable table = CsvTable::read(reference.file("frontier.csv"));
    const auto all_deadlines_s = column_of(table, "real_time");
    const auto all_energies_j = column_of(table, "real_energy");
    const std::size_t step = reference.microbatches > 12 ? 8 : 1;  // the largest takes seconds
    std::vector<double> deadlines_s, theirs_j;
    for (std::size_t i = 0; i < all_deadlines_s.size(); i += step) {
      deadlines_s.push_back(all_deadlines_s[i]);
      theirs_j.push_back(all_energies_j[i]);
    }
    const std::vector<PipelineResult> plans = planner.plan(deadlines_s);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      ASSERT_EQ(plans[i].status, SolveStatus::feasible);
      EXPECT_LE(plans[i].run.time_s, deadlines_s[i]);
      EXPECT_LT(plans[i].energy_j, theirs_j[i]) << deadlines_s[i];
      EXPECT_GE(plans[i].gap_frac, 0.0);
      EXPECT_LE(plans[i].gap_frac, 3e-3) << deadlines_s[i];
    }
  }
}

TEST(Lowtime, TheEmulationFitsItsCosts) {
  const Reference& reference = references()[1];
  const PipelineProfile profile = gpt3_a100();
  const CsvTable model = CsvTable::read(reference.file("model.csv"));
  const auto a = column_of(model, "a"), b = column_of(model, "b"), c = column_of(model, "c");
  const auto first = column_of(model, "min_q"), last = column_of(model, "max_q");
  for (std::size_t row = 0; row < model.rows(); ++row) {
    const PassType* type = profile.find(static_cast<std::uint32_t>(row / 2),
                                        row % 2 ? PassKind::backward : PassKind::forward);
    ASSERT_NE(type, nullptr);
    const ExponentialFit fit = fit_lowtime(*type, a100_blocked_w, unit_s);
    EXPECT_EQ(fit.first_q, first[row]);
    EXPECT_EQ(fit.last_q, last[row]);
    for (double q = first[row]; q <= last[row]; ++q) {
      EXPECT_NEAR(fit.cost_j(q) / (a[row] * std::exp(b[row] * q) + c[row]), 1.0, 1e-4);
    }
  }
}

// Modelled profiles list the default clocks first and may choose memory clocks, which lowtime does
// not touch.
TEST(Lowtime, TheEmulationDoesNotDependOnTheOrderOfClocks) {
  const auto profile = [](bool default_first) {
    PipelineProfile made{"p", {}};
    for (std::uint32_t stage = 0; stage < 3; ++stage) {
      for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
        PassType type{stage, kind, {}};
        for (int i = 0; i < 12; ++i) {
          const double x = 1.0 - 0.04 * i, time_s = (0.1 + 0.02 * stage) * (0.3 + 0.7 / x);
          type.options.push_back({1000.0 * x, time_s, time_s * (90 + 300 * x * x * x), 5000});
        }
        if (default_first) {
          std::rotate(type.options.begin() + 1, type.options.begin() + 6, type.options.end());
          type.options.push_back({1000.0, 0.3, 1.0, 405});
        }
        made.passes.push_back(std::move(type));
      }
    }
    return made;
  };
  const PipelineSchedule schedule = make_schedule({.stages = 3, .microbatches = 6});
  const LowtimeResult sorted = emulate_lowtime(pipeline_work(schedule, profile(false), 50.0));
  const LowtimeResult other = emulate_lowtime(pipeline_work(schedule, profile(true), 50.0));
  EXPECT_EQ(other.run.energy_j, sorted.run.energy_j);
  EXPECT_LT(sorted.run.energy_j,
            0.99 * simulate(pipeline_work(schedule, profile(false), 50.0),
                            PipelinePlan{std::vector<OptionId>(36, OptionId{0})})
                       .energy_j);
}

// Chung et al., SOSP 2024, Table 6. Time and energy of the artifact's frontiers give what it
// prints, and lowtime as emulated here, with the artifact's steps, gives these times and savings.
TEST(Lowtime, PublishedSavingsComeOut) {
  for (const PublishedPipeline& of : published_table6()) {
    SCOPED_TRACE(fmt::format("{}, {} microbatches", of.profile, of.microbatches));
    const PipelineWork work = pipeline_work(
        make_schedule({.stages = 8, .microbatches = of.microbatches}),
        parse_pipeline_profile(published_data(of.profile), of.profile), of.blocked_power_w);
    EXPECT_NEAR(saving_pct(of.planned_energy_j, highest_clocks_energy_j(work, of.planned_time_s)),
                of.saving_pct, 1e-6);
    if (of.microbatches > 12) continue;  // seconds
    const LowtimeResult theirs = emulate_lowtime(work, of.step_s);
    EXPECT_NEAR(theirs.planned_time_s, of.planned_time_s, 1e-9);
    EXPECT_NEAR(
        saving_pct(theirs.planned_energy_j, highest_clocks_energy_j(work, theirs.planned_time_s)),
        of.saving_pct, 0.01);
    const PipelinePlanner planner(work);
    EXPECT_LT(planner.plan({&theirs.run.time_s, 1}).front().energy_j, theirs.run.energy_j);
  }
}

}  // namespace
}  // namespace rubato
