#pragma once
// Result databases as programs before schema 13 left them.

#include <filesystem>
#include <string>
#include <vector>

#include "common/sqlite.hpp"

namespace rubato {

/// Takes back what schema 13 added: columns, a verdict and the number.
inline void back_to_schema_12(const std::filesystem::path& db) {
  SqlConnection old(db, SqlConnection::Mode::create);
  std::vector<std::string> views;
  SqlStatement view(old, "SELECT name FROM sqlite_schema WHERE type = 'view'");
  while (view.next()) views.push_back(std::get<std::string>(view.value(0)));
  for (const std::string& name : views) old.execute("DROP VIEW " + name);
  old.execute_on_schema(
      "ALTER TABLE pipeline_options DROP COLUMN power_limit_w;"
      "ALTER TABLE pipeline_passes DROP COLUMN power_limit_w;"
      "ALTER TABLE graph_plans DROP COLUMN comm_sms;"
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ', "
      "''undecided''', '') WHERE name = 'verifications'; PRAGMA writable_schema = RESET;"
      "PRAGMA user_version = 12;");
}

}  // namespace rubato
