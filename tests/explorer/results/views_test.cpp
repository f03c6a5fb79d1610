// Views: their words.

#include <cstdint>
#include <filesystem>
#include <string>
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

TEST_F(Views, SaySlackInPercent) {
  add_run(db());
  add_run(db());
  const ResultStore store = ResultStore::open_read_only(db());
  for (const char* view : {"v_plans", "v_trace_plans"}) {
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
}

}  // namespace
}  // namespace rubato
