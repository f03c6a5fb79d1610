// rubato top: the best units of a database or an experiment.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/suggest.hpp"
#include "common/text.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

struct Order {
  std::string_view name, expression;
};

constexpr std::array orders{Order{"energy", "energy_change_pct"}, Order{"time", "time_change_pct"},
                            Order{"edp", "energy_j * time_s / (default_energy_j * default_time_s)"},
                            Order{"joules", "energy_j - default_energy_j"}};

std::string_view order_by(const std::string& name) {
  std::vector<std::string> known;
  for (const Order& order : orders) {
    if (order.name == name) return order.expression;
    known.emplace_back(order.name);
  }
  throw UsageError(fmt::format("--by '{}' is not known{}", name, did_you_mean(name, known)));
}

// The columns that the answer reads.
constexpr std::size_t run_column = 0, energy_column = 1, time_column = 2, granularity_column = 3;

std::string unit_text(const std::vector<SqlValue>& row, std::string_view notes) {
  const auto pct = [](const SqlValue& value) { return change_words(real(value)); };
  return fmt::format("run {}, per {}: energy {}, time {}{}", whole(row[run_column]),
                     text(row[granularity_column]), pct(row[energy_column]), pct(row[time_column]),
                     notes.empty() ? "" : fmt::format(" [{}]", notes));
}

std::string notes_of(const std::vector<SqlValue>& row) {
  const auto* notes = std::get_if<std::string>(&row.back());
  return notes == nullptr ? std::string() : *notes;
}

// The best answer of a setting, and how many better plans cannot be set or are late.
std::string top_answer(const QueryResult& kept, std::string_view by, std::int64_t better) {
  std::string answer;
  if (kept.rows.empty()) {
    answer = "None is the answer of its run: keep the default clocks (rubato show says why).\n";
  } else {
    const std::vector<SqlValue>& best = kept.rows.front();
    answer = fmt::format("Best answer by {}: {}.", by, unit_text(best, notes_of(best)));
  }
  if (better > 0)
    answer +=
        fmt::format("\n{} late or cannot be set: --late lists {}.",
                    better == 1 ? "1 better plan is" : fmt::format("{} better plans are", better),
                    better == 1 ? "it" : "them");
  return answer;
}

constexpr std::string_view settable = "in_time IS NOT 0 AND applicable IS NOT 0";

// Plans that come before one but are late or cannot be set.
std::int64_t better_than(const ResultStore& store, const UnitOrder& order, std::int64_t plan_id) {
  const QueryResult found = store.query(
      fmt::format("SELECT count(*) FROM v_plans WHERE energy_j IS NOT NULL AND NOT ({0}) AND {1} "
                  "AND {2} < (SELECT {2} FROM v_plans WHERE plan_id = ?3)",
                  settable, unit_condition, order.expression),
      {order.experiment_id, order.most_time_pct ? SqlValue(*order.most_time_pct) : SqlValue(),
       plan_id});
  return whole(found.rows.front().front());
}

// The first `count` units, or `plan_id` alone. Columns without room are left out from the right.
// @param late  also those that are late with their changes of clock, or cannot be set
QueryResult units(const ResultStore& store, const UnitOrder& order, std::uint64_t count, bool late,
                  const SqlValue& plan_id = {}) {
  return store.query(
      fmt::format("SELECT run_id, energy_change_pct, time_change_pct, granularity, slack_pct, work "
                  "AS trace, gpu, energy_change_low_pct, energy_change_high_pct, measured_pct, "
                  "power_limit_w, switch_latency_us, switch_stall_us, goal, aggregation, caveats "
                  "AS notes FROM v_plans WHERE energy_j IS NOT NULL AND {} "
                  "AND {} AND (?4 IS NULL OR plan_id = ?4) "
                  "ORDER BY is_answer DESC, {}, question_hash, plan_id LIMIT ?3",
                  late ? "1" : settable, unit_condition, order.expression),
      {order.experiment_id, order.most_time_pct ? SqlValue(*order.most_time_pct) : SqlValue(),
       static_cast<std::int64_t>(count), plan_id});
}

}  // namespace

Action setup_top(CommandLine& app) {
  struct Options {
    std::string db, experiment, by = "energy";
    std::vector<std::string> words;
    bool late = false;
    std::uint64_t count = 10;
    std::optional<double> most_time_pct;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("WORDS DATABASE", o->words, "Result database");
  app.add_option("--db", o->db, "Result database");
  app.add_option("--experiment", o->experiment,
                 "Experiment by name or id, or 'latest' [all units of the database]");
  app.add_option("--by", o->by, "energy, time, edp (each as a change), or joules saved")
      ->capture_default_str();
  app.add_option("-n,--count", o->count, "How many")->in_range(1, 1'000'000)->capture_default_str();
  app.add_option("--max-time", o->most_time_pct,
                 "Only units whose time changes by at most this, %");
  app.add_flag("--late", o->late, "Also plans that are late with their switches, or cannot be set");
  add_format_options(app, o->format);
  app.footer(
      "Answers of runs come first. Changes are against the default clocks of the same setting, "
      "with the cost of switches. "
      "Low and high: 90 % interval. Measured: share of the time in kernels that were measured on "
      "the GPU. Plans that are late once switches are counted are left out (--late). Notes are "
      "marks: rubato help terms explains them, rubato show RUN gives the reasons.");
  return [o](const RunContext&) {
    take_database(o->words, o->db, 0);
    check_result_database(o->db);
    const ResultStore store = read_results(o->db);
    const std::string id = o->experiment.empty() ? "" : experiment_id(store, o->experiment);
    const UnitOrder order{id, order_by(o->by), o->most_time_pct};
    const QueryResult found = units(store, order, o->count, o->late);
    if (o->format == OutputFormat::table && !found.rows.empty()) {
      const std::optional<std::int64_t> best = best_unit(store, order);
      print_notes(answer_text(
          id.empty() ? fmt::format("Units of {}", printable(o->db))
                     : fmt::format("Units of experiment '{}'", printable(o->experiment)),
          top_answer(best ? units(store, order, 1, true, *best) : QueryResult{}, o->by,
                     best ? better_than(store, order, *best) : 0)));
    }
    print(as_table(found, Titles::words), o->format);
    if (!found.rows.empty()) return ExitStatus::done;
    tell(
        "note: no unit of an experiment ends in time{}; plans of single runs: rubato query --db {} "
        "'SELECT * FROM v_answer'\n",
        o->most_time_pct ? " and within --max-time" : "", printable(o->db));
    return ExitStatus::no_plan;
  };
}

}  // namespace rubato
