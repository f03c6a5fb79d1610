// Cells of kernels: shared by those that are alike.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/sqlite.hpp"
#include "explorer/exploration.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tests/explorer/small_run.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

class SharedCells : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path db() const { return folder_ / "r.db"; }

  void add_run(std::optional<double> power_limit_w = {}) const {
    ExplorationInput input = small_input();
    input.power_limit_w = power_limit_w;
    store_trace(db(), input, explore(input), {"rubato explore", "{}"});
  }

  [[nodiscard]] std::int64_t number(const std::string& sql) const {
    return std::get<std::int64_t>(ResultStore::open_read_only(db()).query(sql).rows.at(0).at(0));
  }

  // Every column of every cell, by run, kernel and clock.
  [[nodiscard]] std::vector<std::vector<SqlValue>> cells() const {
    return ResultStore::open_read_only(db())
        .query(
            "SELECT run_id, unit_id, clock_id, time_s, energy_j, effective_core_mhz, power_limited "
            "FROM v_cells ORDER BY run_id, unit_id, clock_id")
        .rows;
  }

 private:
  TemporaryFolder folder_;
};

// As many are stored as there are kernels that differ at any clock, whichever run they are of.
TEST_F(SharedCells, AreSharedByKernelsThatAreAlike) {
  add_run();
  const auto once = cells();
  const std::int64_t stored = number("SELECT count(*) FROM cells");
  std::set<std::string> distinct;
  for (std::size_t k = 0; k < 46; ++k) {
    std::string text;
    for (std::size_t c = 0; c < 6; ++c) {
      const auto& cell = once.at(k * 6 + c);
      for (const std::size_t column : {std::size_t{3}, std::size_t{4}})
        text += fmt::format("{} ", std::get<double>(cell[column]));
    }
    distinct.insert(text);
  }
  EXPECT_EQ(stored, static_cast<std::int64_t>(6 * distinct.size()));
  add_run();
  EXPECT_EQ(number("SELECT count(*) FROM cells"), stored);
  add_run(250.0);
  EXPECT_GT(number("SELECT count(*) FROM cells"), stored);
  EXPECT_EQ(cells().size(), 3 * once.size());
}

TEST_F(SharedCells, GoWithTheLastRunThatHasThem) {
  add_run();
  add_run();
  const auto both = cells();
  SqlConnection store = open_result_database(db());
  store.execute("DELETE FROM runs WHERE run_id = 1");
  const auto left = cells();
  ASSERT_EQ(left.size(), both.size() / 2);
  for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], both[left.size() + i]);
  store.execute("DELETE FROM runs");
  EXPECT_EQ(number("SELECT (SELECT count(*) FROM cells) + (SELECT count(*) FROM cell_rows)"), 0);
}

}  // namespace
}  // namespace rubato
