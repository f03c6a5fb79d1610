// Views: their words.

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/expect_error.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

class Views : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path db() const { return folder_ / "r.db"; }

  static std::int64_t number(const ResultStore& store, const std::string& sql) {
    return std::get<std::int64_t>(store.query(sql).rows.at(0).at(0));
  }

  static void add_run(const std::filesystem::path& path) {
    const ExplorationInput input = small_input();
    (void)store_trace(path, input, explore(input), {"rubato explore", "{}"});
  }

  TemporaryFolder folder_;
};

TEST_F(Views, SaySlackInPercent) {
  add_run(db());
  add_run(db());
  const ResultStore store = ResultStore::open_read_only(db());
  EXPECT_EQ(number(store,
                   "SELECT count(*) > 0 AND count(*) = sum(abs(deadline_s - default_time_s * (1 + "
                   "(slack_pct + tolerance_pct) / 100)) < 1e-12 * deadline_s) FROM v_plans WHERE "
                   "slack_pct NOT NULL"),
            1);
  expect_error<UsageError>([&] { (void)store.query("SELECT slack_frac FROM v_plans"); },
                           "no such column");
  EXPECT_GT(number(store,
                   "SELECT count(*) FROM v_compare WHERE run_a = 1 AND run_b = 2 AND "
                   "slack_pct IS NOT NULL"),
            0);
}

// What a plan takes: the same in its totals, kernels, segments and passes.
TEST_F(Views, SumsOfPartsAreTheWhole) {
  add_run(db());
  const ResultStore store = ResultStore::open_read_only(db());
  EXPECT_EQ(number(store, "SELECT count(DISTINCT plan_id) FROM v_kernels"), 4);
  for (const char* parts : {"v_kernels", "v_passes", "v_classes", "v_kernel_clocks"}) {
    EXPECT_EQ(
        number(store, std::string("SELECT count(*) FROM v_plans p WHERE energy_j NOT NULL AND "
                                  "abs((SELECT sum(k.time_s) FROM ") +
                          parts + " k WHERE k.plan_id = p.plan_id) / planned_time_s - 1) > 1e-9"),
        0)
        << parts;
  }
  EXPECT_EQ(
      number(store,
             "SELECT count(*) FROM v_plans p WHERE energy_j NOT NULL AND (SELECT sum(s.launches "
             "* s.repeats) FROM v_segments s WHERE s.plan_id = p.plan_id) <> (SELECT "
             "sum(k.launches) FROM v_kernels k WHERE k.plan_id = p.plan_id)"),
      0);
  EXPECT_EQ(
      number(store,
             "SELECT count(*) FROM v_clocks c JOIN v_runs r USING (run_id) WHERE c.is_default "
             "AND abs(c.time_s / r.default_time_s - 1) < 1e-9 AND abs(c.energy_j / "
             "r.default_energy_j - 1) < 1e-9"),
      1);
}

}  // namespace
}  // namespace rubato
