#pragma once
// Sweeps run in a folder of their own.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "explorer/experiments/sweep.hpp"
#include "explorer/results/store.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {

/// Every stored number of a sweep without ids that depend on the order of work, and without times.
inline const std::vector<std::string> sweep_contents{
    "SELECT question_hash, result_hash, granularity, aggregation, goal, slack_pct, status, "
    "objective, lower_bound, gap_pct, time_s, energy_j, applied_time_s, applied_energy_j, "
    "clock_changes, is_answer FROM plans ORDER BY 1",
    "SELECT p.question_hash, s.segment_id, s.first_unit, s.clock_id, s.launches FROM plans p JOIN "
    "plan_segments s USING (plan_id) ORDER BY 1, 2",
    "SELECT p.question_hash, k.unit_id, k.clock_id, k.time_s, k.energy_j FROM plans p JOIN "
    "plan_units k USING (plan_id) ORDER BY 1, 2, 3",
    "SELECT r.run_hash, r.result_hash, r.batch, c.clock_id, c.time_s, c.energy_j FROM runs r JOIN "
    "clocks c USING (run_id) ORDER BY 1, 4",
    "SELECT r.run_hash, x.unit_id, x.clock_id, x.time_s, x.energy_j FROM runs r JOIN v_cells x "
    "USING "
    "(run_id) ORDER BY 1, 2, 3",
    "SELECT r.run_hash, f.granularity, f.point_id, f.time_s, f.energy_j FROM runs r JOIN fronts f "
    "USING (run_id) ORDER BY 1, 2, 3",
    "SELECT x.experiment_id, x.scenario, p.question_hash FROM experiment_plans x JOIN plans p "
    "USING "
    "(plan_id) ORDER BY 1, 2, 3",
    "SELECT name, value FROM model_errors ORDER BY 1"};

class SweepFixture : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  // Eight units of 66 kernels at a few clocks, and what further axes make of them.
  static SweepPlan plan(const std::string& axes = "") {
    return plan_sweep(parse_experiment(
        "schema = 1\nname = 'test'\n[defaults]\ngpu = 'rtx-3080-ti'\nmodel = 'gpt3-xl'\n"
        "batch = 8\nsequence = 1024\nclocks = 'mem=5001,auto core=1470,1680,auto'\n"
        "[axes]\nbatch = [4, 8]\ngranularity = ['pass', 'kernel']\nslack_pct = [0, 2]\n" +
            axes,
        "test.toml"));
  }

  // Runs what is not finished, as the command does.
  static SweepSummary run(const SweepPlan& plan, const std::filesystem::path& db,
                          std::size_t threads = 2, const SweepObserver& observer = {},
                          const RunContext& context = {}) {
    SweepStore store(db);
    std::vector<std::size_t> left;
    const std::vector<bool> finished = store.finished(plan);
    for (std::size_t u = 0; u < plan.units.size(); ++u) {
      if (!finished[u]) left.push_back(u);
    }
    store.begin(plan);
    return run_sweep(plan, left, store, {threads, "test"}, observer, context);
  }

  static std::vector<std::vector<SqlValue>> rows(const std::filesystem::path& db,
                                                 const std::string& sql) {
    return ResultStore::open_read_only(db).query(sql).rows;
  }
  static std::int64_t number(const std::filesystem::path& db, const std::string& sql) {
    return std::get<std::int64_t>(rows(db, sql).at(0).at(0));
  }

  TemporaryFolder folder_;
};

}  // namespace rubato
