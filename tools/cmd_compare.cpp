// rubato compare: the same questions in two runs.

#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "explorer/store.hpp"
#include "tools/command.hpp"
#include "tools/output.hpp"

namespace rubato {

Action setup_compare(CLI::App& app) {
  struct Options {
    std::string db;
    std::int64_t a = 0, b = 0;
    double tolerance_pct = 0.01;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("RUN_A", o->a, "Run to compare against")->required();
  app.add_option("RUN_B", o->b, "Run to judge")->required();
  app.add_option("--db", o->db, "Result database")->required();
  app.add_option("--tolerance", o->tolerance_pct,
                 "Difference of time or energy that counts as equal, %")
      ->capture_default_str();
  add_format_options(app, o->format);
  app.footer(
      "\nExit status 1 if a plan of run B differs from run A by more than the tolerance.\n"
      "Example:\n  rubato compare --db results.db 1 2");
  return [o](const RunContext&) {
    const ResultStore store = ResultStore::open_read_only(o->db);
    require_run(store, o->a);
    require_run(store, o->b);
    const QueryResult found = store.query(fmt::format(
        "SELECT granularity, aggregation, goal, slack_frac, time_a_s, time_b_s, 100.0 * (time_b_s "
        "/ time_a_s - 1) AS "
        "time_difference_pct, energy_a_j, energy_b_j, 100.0 * (energy_b_j / energy_a_j - 1) AS "
        "energy_difference_pct, "
        "energy_change_a_pct, energy_change_b_pct FROM v_compare WHERE run_a = {} AND run_b = {}",
        o->a, o->b));
    print(as_table(found).render(o->format));
    for (const auto& row : found.rows) {
      for (const std::size_t column : {std::size_t{6}, std::size_t{9}}) {
        const auto* difference = std::get_if<double>(&row[column]);
        if (difference != nullptr && std::abs(*difference) > o->tolerance_pct)
          return ExitStatus::no_plan;
      }
    }
    return ExitStatus::done;
  };
}

}  // namespace rubato
