// rubato query: read a result database with SQL.

#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

Action setup_query(CommandLine& app) {
  struct Options {
    std::string db;
    std::vector<std::string> words;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("SQL DATABASE SQL", o->words,
                 "The result database, unless --db says it, and one SELECT statement; - reads that "
                 "from standard input")
      ->required();
  app.add_option("--db", o->db, "Result database");
  add_format_options(app, o->format);
  app.footer("Read-only. Tables and views are described in docs/schema.md.");
  return [o](const RunContext&) {
    take_database(o->words, o->db, 1);
    const ResultStore store = read_results(o->db);
    const std::string& word = o->words.front();
    const std::string sql =
        word == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : word;
    print(as_table(store.query_any(sql)), o->format, true);
    return ExitStatus::done;
  };
}

}  // namespace rubato
