#include "common/sqlite.hpp"

#include <cstdint>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

class KeptStatements : public testing::Test {
 protected:
  KeptStatements() { connection_.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)"); }

  TemporaryFolder folder_;
  SqlConnection connection_{folder_ / "kept.db", SqlConnection::Mode::create};
};

TEST_F(KeptStatements, BeginAnewEachTime) {
  for (const std::int64_t n : {1, 2, 3})
    SqlStatement::kept(connection_, "INSERT INTO numbers VALUES (?)").run(n);
  for (const std::int64_t least : {3, 2}) {
    // Left before its last row.
    SqlStatement find =
        SqlStatement::kept(connection_, "SELECT n FROM numbers WHERE n >= ? ORDER BY n");
    ASSERT_TRUE(find.first(least));
    EXPECT_EQ(std::get<std::int64_t>(find.value(0)), least);
  }
}

TEST_F(KeptStatements, TheSameTextMayBeUsedTwiceAtOnce) {
  connection_.execute("INSERT INTO numbers VALUES (1), (2)");
  const std::string sql = "SELECT n FROM numbers ORDER BY n";
  for (int round = 0; round < 2; ++round) {
    SqlStatement outer = SqlStatement::kept(connection_, sql);
    ASSERT_TRUE(outer.next());
    {
      SqlStatement inner = SqlStatement::kept(connection_, sql);
      ASSERT_TRUE(inner.next());
      EXPECT_EQ(std::get<std::int64_t>(inner.value(0)), 1);
    }
    ASSERT_TRUE(outer.next());
    EXPECT_EQ(std::get<std::int64_t>(outer.value(0)), 2);
  }
}

TEST_F(KeptStatements, BindingsAreForgotten) {
  SqlStatement::kept(connection_, "INSERT INTO numbers VALUES (coalesce(?, 7))")
      .run(std::int64_t{5});
  SqlStatement::kept(connection_, "INSERT INTO numbers VALUES (coalesce(?, 7))").run_bound();
  SqlStatement sum(connection_, "SELECT sum(n) FROM numbers");
  ASSERT_TRUE(sum.next());
  EXPECT_EQ(std::get<std::int64_t>(sum.value(0)), 12);
}

// What was compiled before a table changed is compiled again.
TEST_F(KeptStatements, FollowTheSchema) {
  SqlStatement::kept(connection_, "INSERT INTO numbers (n) VALUES (?)").run(std::int64_t{1});
  connection_.execute("ALTER TABLE numbers ADD COLUMN twice INTEGER DEFAULT 0");
  SqlStatement::kept(connection_, "INSERT INTO numbers (n) VALUES (?)").run(std::int64_t{2});
  SqlStatement count(connection_, "SELECT count(twice) FROM numbers");
  ASSERT_TRUE(count.next());
  EXPECT_EQ(std::get<std::int64_t>(count.value(0)), 2);
}

}  // namespace
}  // namespace rubato
