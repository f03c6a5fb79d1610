// rubato query: read a result database with SQL.

#include <iostream>
#include <iterator>
#include <memory>

#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

Action setup_query(CommandLine& app) {
  struct Options {
    std::string db, sql;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("--db", o->db, "Result database")->required();
  app.add_option("SQL", o->sql, "One SELECT statement; - reads it from standard input")->required();
  add_format_options(app, o->format);
  app.footer(
      "\nRead-only. Tables and views are described in docs/schema.md.\n"
      "Example:\n  rubato query --db results.db \"SELECT * FROM v_answer\"");
  return [o](const RunContext&) {
    const ResultStore store = read_results(o->db);
    const std::string sql =
        o->sql == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : o->sql;
    print(as_table(store.query_any(sql)), o->format, true);
    return ExitStatus::done;
  };
}

}  // namespace rubato
