#include "explorer/results/verification.hpp"

#include <cmath>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "explorer/exploration.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/results/measurements.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

constexpr const char* plan_text =
    R"({"format": "rubato-plan", "schema": 1, "gpu": {"spec": "a100"}, "run": {"work": "step"},
  "plans": [{"plan_id": 7, "granularity": "pass", "promise": {"time_s": 1.0, "energy_j": 90.0,
    "time_change_pct": 1.0, "time_change_low_pct": null, "time_change_high_pct": null,
    "energy_change_pct": -10, "energy_change_low_pct": -12, "energy_change_high_pct": -8}},
   {"plan_id": 8, "granularity": "run", "promise": {"time_s": 1.0, "energy_j": 99.0,
    "time_change_pct": 0.0, "energy_change_pct": -1}}]})";

class Verify : public ::testing::Test {
 protected:
  Verification of(const std::string& rows,
                  const std::string& header = "pair,arm,steps,time_s,energy_j,plan_id") {
    write_file(folder_ / "plan.json", plan_text);
    write_file(folder_ / "ab.csv", header + "\n" + rows);
    return verify(folder_ / "plan.json", folder_ / "ab.csv");
  }

  TemporaryFolder folder_;
};

// Two pairs: -10 % and -9 % of energy per step, though the windows hold other numbers of steps.
constexpr const char* two_pairs =
    "0,default,10,1.0,1000,\n0,plan,5,0.505,450,7\n1,plan,10,1.01,910,7\n1,default,10,1.0,1000,\n";

TEST_F(Verify, ChangeIsTheGeometricMeanOfPairsWithStudentsInterval) {
  const Verification found = of(two_pairs);
  EXPECT_EQ(found.pairs, 2U);
  const double a = std::log(0.90), b = std::log(0.91);
  const double half = 6.314 * (std::abs(a - b) / std::sqrt(2.0)) / std::sqrt(2.0);
  EXPECT_NEAR(found.measured_energy.value, std::sqrt(0.90 * 0.91) - 1.0, 1e-12);
  EXPECT_NEAR(found.measured_energy.low, std::exp((a + b) / 2 - half) - 1.0, 1e-12);
  EXPECT_NEAR(found.measured_energy.high, std::exp((a + b) / 2 + half) - 1.0, 1e-12);
  EXPECT_NEAR(found.measured_time.value, 0.01, 1e-12);
  EXPECT_EQ(found.energy, PromiseVerdict::kept);
  EXPECT_TRUE(found.saves());
  EXPECT_NEAR(found.default_power_w, 1000.0, 1e-9);
}

TEST_F(Verify, PromiseIsThatOfThePlanThatWasPlayed) {
  const Verification found =
      of("0,default,1,1,100,\n0,plan,1,1,90,8\n1,default,1,1,100,\n1,plan,1,1,90,8\n");
  EXPECT_EQ(found.granularity, "run");
  EXPECT_EQ(found.promised_energy.low, -0.01);
  EXPECT_EQ(found.energy, PromiseVerdict::better);
  expect_error<DataError>(
      [&] { (void)of("0,default,1,1,1,\n0,plan,1,1,1,9\n1,default,1,1,1,\n1,plan,1,1,1,9\n"); },
      "measured under plan 9, which the plan file does not hold");
}

TEST_F(Verify, VerdictIsHowTheIntervalsLie) {
  const ChangeRange promised{-0.10, -0.12, -0.08};
  EXPECT_EQ(verdict_of(promised, {-0.09, -0.11, -0.07}), PromiseVerdict::kept);
  EXPECT_EQ(verdict_of(promised, {-0.07, -0.08, -0.06}), PromiseVerdict::kept);  // they touch
  EXPECT_EQ(verdict_of(promised, {-0.06, -0.079, -0.05}), PromiseVerdict::missed);
  EXPECT_EQ(verdict_of(promised, {-0.15, -0.16, -0.121}), PromiseVerdict::better);
}

TEST_F(Verify, SavingThatMayBeNothingIsUndecided) {
  const ChangeRange promised{-0.02, -0.04, -0.01};
  EXPECT_EQ(saving_verdict(promised, {-0.01, -0.03, 0.01}), PromiseVerdict::undecided);
  EXPECT_EQ(saving_verdict(promised, {-0.01, -0.03, 0.0}), PromiseVerdict::undecided);
  EXPECT_EQ(saving_verdict(promised, {-0.01, -0.03, -1e-6}), PromiseVerdict::kept);
  EXPECT_EQ(saving_verdict(promised, {0.00, -0.005, 0.005}), PromiseVerdict::missed);
  EXPECT_EQ(saving_verdict(promised, {-0.10, -0.11, -0.09}), PromiseVerdict::better);
  // No saving was promised: none is no surprise.
  EXPECT_EQ(saving_verdict({0.01, -0.01, 0.03}, {0.0, -0.01, 0.01}), PromiseVerdict::kept);
}

TEST_F(Verify, CameIsNeitherMissedNorUndecided) {
  Verification found;
  EXPECT_TRUE(found.came());
  found.energy = PromiseVerdict::better;
  EXPECT_TRUE(found.came());
  for (const PromiseVerdict verdict : {PromiseVerdict::missed, PromiseVerdict::undecided}) {
    found.energy = verdict;
    EXPECT_FALSE(found.came());
  }
  found.energy = PromiseVerdict::kept;
  found.time = PromiseVerdict::missed;
  EXPECT_FALSE(found.came());
}

// -10 % and +2 %: their interval is wide.
constexpr const char* noisy_pairs =
    "0,default,10,1.0,1000,\n0,plan,10,1.0,900,7\n1,plan,10,1.0,1020,7\n1,default,10,1.0,1000,\n";

TEST_F(Verify, UndecidedIsStoredAsSuch) {
  const Verification found = of(noisy_pairs);
  EXPECT_EQ(found.energy, PromiseVerdict::undecided);
  const auto db = folder_ / "r.db";
  store_verification(db, found, "rubato verify");
  const auto row = ResultStore::open_read_only(db)
                       .query(
                           "SELECT energy_verdict, promised_time_change_high_pct FROM "
                           "v_verified")
                       .rows.at(0);
  EXPECT_EQ(std::get<std::string>(row[0]), "undecided");
  EXPECT_EQ(std::get<double>(row[1]), 1.0);
}

TEST_F(Verify, SaysWhatIsWrongWithAFile) {
  expect_error<DataError>([&] { (void)of("0,default,1,1,1,\n0,plan,1,1,1,7\n"); },
                          "1 pairs have both arms; expected at least 2");
  expect_error<DataError>([&] { (void)of("0,base,1,1,1,\n"); },
                          "arm is 'base'; expected 'default' or 'plan'");
  expect_error<DataError>([&] { (void)of("0,plan,0,1,1,7\n"); }, "steps is '0'");
  expect_error<DataError>([&] { (void)of("0,plan,1,1,1,7\n0,plan,1,1,1,7\n"); },
                          "the pair has this arm already");
  expect_error<DataError>([&] { (void)of("0,plan,1,1,1,7\n1,plan,1,1,1,8\n"); },
                          "windows of several plans");
  expect_error<DataError>([&] { (void)of("0,plan,1,1\n", "pair,arm,steps,time_s"); }, "energy_j");
}

TEST_F(Verify, IsStoredWithTheNumbersItSays) {
  const Verification found = of(two_pairs);
  const auto db = folder_ / "r.db";
  EXPECT_EQ(store_verification(db, found, "rubato verify"), 1);
  const auto row = ResultStore::open_read_only(db)
                       .query(
                           "SELECT measured_energy_change_pct, promised_energy_change_low_pct, "
                           "energy_verdict, plan_id FROM v_verified")
                       .rows.at(0);
  EXPECT_NEAR(std::get<double>(row[0]), 100.0 * found.measured_energy.value, 1e-12);
  EXPECT_EQ(std::get<double>(row[1]), -12.0);
  EXPECT_EQ(std::get<std::string>(row[2]), "kept");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(row[3]));  // of no run in this database
}

TEST_F(Verify, IsFoundAgainByTheTotalsOfItsPlanAndShownInTheReport) {
  const auto db = folder_ / "r.db";
  const ExplorationInput input = small_input();
  const Exploration explored = explore(input);
  store_trace(db, input, explored, {"rubato explore", "{}"});
  const auto plan = ResultStore::open_read_only(db)
                        .query(
                            "SELECT plan_id, granularity, planned_time_s, planned_energy_j FROM "
                            "v_plans WHERE energy_j NOT NULL ORDER BY energy_j")
                        .rows.at(0);
  Verification found = of(two_pairs);
  found.granularity = std::get<std::string>(plan[1]);
  constexpr double rounding = 1e-15;  // a plan file may sum in another order
  found.plan_time_s = std::get<double>(plan[2]) * (1.0 + rounding);
  found.plan_energy_j = std::get<double>(plan[3]) * (1.0 - rounding);
  store_verification(db, found, "rubato verify");
  const ResultStore store = ResultStore::open_read_only(db);
  const auto row = store.query("SELECT energy_verdict FROM v_verified WHERE run_id = 1").rows.at(0);
  EXPECT_EQ(std::get<std::string>(row[0]), "kept");
  EXPECT_NE(run_page(store, 1, "r.db").find("\"kept\""), std::string::npos);
}

}  // namespace
}  // namespace rubato
