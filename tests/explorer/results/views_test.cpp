// Views: their words, in files of this program and of those before it.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "common/sqlite.hpp"
#include "explorer/results/store.hpp"
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
    (void)ResultStore::open(path).add(input, explore(input), {"rubato explore", "{}"});
  }

  TemporaryFolder folder_;
};

TEST_F(Views, SaySlackInPercentAlsoOfOlderFiles) {
  add_run(db());
  add_run(db());
  const auto check = [&] {
    const ResultStore store = ResultStore::open_read_only(db());
    for (const char* view : {"v_plans", "v_best_plan"}) {
      EXPECT_EQ(number(store, fmt::format("SELECT count(*) > 0 AND count(*) = sum(v.slack_pct = "
                                          "100.0 * p.slack_frac) FROM {} v JOIN plans p USING "
                                          "(plan_id) WHERE p.slack_frac IS NOT NULL",
                                          view)),
                1)
          << view;
      expect_error<UsageError>(
          [&] { (void)store.query(fmt::format("SELECT slack_frac FROM {}", view)); },
          "no such column");
    }
    EXPECT_GT(number(store,
                     "SELECT count(*) FROM v_compare WHERE run_a = 1 AND run_b = 2 AND "
                     "slack_pct IS NOT NULL"),
              0);
    (void)store.query("SELECT c.slack_pct, p.goal FROM v_compare_graphs c, v_graph_plans p");
  };
  check();
  std::string older;  // the views as they were: fractions
  {
    SqlConnection file(db(), SqlConnection::Mode::create);
    SqlStatement view(file,
                      "SELECT name, sql FROM sqlite_schema WHERE name IN ('v_plans', "
                      "'v_compare') ORDER BY name DESC");
    while (view.next()) {
      older += "DROP VIEW " + std::get<std::string>(view.value(0)) + ";" +
               std::get<std::string>(view.value(1)) + ";";
    }
  }
  for (const auto& [now, before] :
       {std::pair{"100.0 * p.slack_frac AS slack_pct", "p.slack_frac"},
        std::pair{"100.0 * p.tolerance_frac AS tolerance_pct", "p.tolerance_frac"},
        std::pair{"slack_pct", "slack_frac"}, std::pair{"tolerance_pct", "tolerance_frac"}}) {
    ASSERT_NE(older.find(now), std::string::npos);
    for (std::size_t at = 0; (at = older.find(now, at)) != std::string::npos;)
      older.replace(at, std::string_view(now).size(), before);
  }
  older += "DROP VIEW v_graph_plans; CREATE VIEW v_graph_plans AS SELECT 1 AS one;";
  SqlConnection(db(), SqlConnection::Mode::create)
      .execute(older + "CREATE VIEW my_own AS SELECT count(*) AS n FROM plans;");
  check();  // reading leaves the file as it is
  const auto columns = [&] {
    SqlConnection file(db(), SqlConnection::Mode::read_only);
    SqlStatement found(file,
                       "SELECT count(*) FROM pragma_table_info('v_plans') WHERE name = "
                       "'slack_frac'");
    EXPECT_TRUE(found.next());
    return std::get<std::int64_t>(found.value(0));
  };
  EXPECT_EQ(columns(), 1);
  add_run(db());  // writing makes the views anew, and only ours
  EXPECT_EQ(columns(), 0);
  check();
  EXPECT_GT(number(ResultStore::open_read_only(db()), "SELECT n FROM my_own"), 6);
}

}  // namespace
}  // namespace rubato
