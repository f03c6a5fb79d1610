// rubato compare: the same questions in two runs, two databases or two program versions.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "common/numbers.hpp"
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

struct CompareOptions {
  std::string db, a, b;
  std::vector<std::string> words;
  double tolerance_pct = 0.01;
  std::optional<double> time_tolerance_pct, energy_tolerance_pct;
  bool worse_only = false;
  OutputFormat format = OutputFormat::table;
};

// Rows of A and B side by side, and the questions that only one of them answers.
struct Pairs {
  QueryResult rows;  ///< ends in the columns time_a_s, time_b_s, energy_a_j, energy_b_j
  std::int64_t only_a = 0, only_b = 0;
};

std::int64_t number(const QueryResult& result) {
  return value_as<std::int64_t>(result.rows.front().front());
}

// Says so where A and B answer the same questions about other energies.
void note_host_power(const ResultStore& store, std::int64_t a, std::int64_t b) {
  const double a_w = stored_host_power_w(store, a), b_w = stored_host_power_w(store, b);
  if (a_w == b_w) return;
  tell(
      "note: of the rest of the node A counts {} W per GPU, B {} W: their energies do not "
      "compare\n",
      format_number(a_w), format_number(b_w));
}

void note_prices(const QueryResult& rows) {
  constexpr std::size_t goal = 2;
  const bool priced = std::ranges::any_of(
      rows.rows, [](const auto& row) { return value_as<std::string>(row[goal]) == "least_cost"; });
  if (priced) tell("note: least_cost plans answer the prices of their own run\n");
}

Pairs pairs_of_runs(const ResultStore& store, const StoredRun& a, const StoredRun& b) {
  if (a.kind != b.kind) {
    throw UsageError(fmt::format("run {} is of a {}, run {} of a {}", a.id, a.kind, b.id, b.kind),
                     {.in = {}, .hint = "compare runs of one kind"});
  }
  note_host_power(store, a.id, b.id);
  const auto only = [&](std::int64_t here, std::int64_t there) {
    return number(store.query(
        "SELECT count(*) FROM v_plans p WHERE run_id = ?1 AND NOT EXISTS (SELECT 1 FROM v_plans q "
        "WHERE q.run_id = ?2 AND q.granularity = p.granularity AND q.aggregation = p.aggregation "
        "AND q.want = p.want)",
        {here, there}));
  };
  QueryResult both = store.query(
      "SELECT granularity, aggregation, goal, slack_pct, trim(substr(' A', 1, 2 * is_answer_a) || "
      "substr(' B', 1, 2 * is_answer_b)) AS answer_of, time_a_s, time_b_s, energy_a_j, energy_b_j "
      "FROM v_compare WHERE run_a = ? AND run_b = ?",
      {a.id, b.id});
  note_prices(both);
  return {std::move(both), only(a.id, b.id), only(b.id, a.id)};
}

// Questions of experiments, whose hash says that they are the same.
constexpr std::string_view questions_sql =
    "SELECT question_hash, work, gpu, power_limit_w, granularity, aggregation, goal, slack_pct, "
    "time_s, energy_j FROM v_plans WHERE question_hash NOT NULL AND (?1 IS NULL OR program_version "
    "= ?1) ORDER BY question_hash, program_version";

// A merge of sorted lists: two files cannot be joined by a connection that may not attach.
Pairs pairs_of_questions(const QueryResult& first, const QueryResult& second) {
  constexpr std::size_t time = 8, energy = 9;
  Pairs pairs;
  pairs.rows.columns.assign(first.columns.begin(), first.columns.begin() + time);
  for (const char* column : {"time_a_s", "time_b_s", "energy_a_j", "energy_b_j"})
    pairs.rows.columns.emplace_back(column);
  std::size_t i = 0, j = 0;
  while (i < first.rows.size() || j < second.rows.size()) {
    const bool end_a = i == first.rows.size(), end_b = j == second.rows.size();
    if (end_b || (!end_a && first.rows[i][0] < second.rows[j][0])) {
      ++pairs.only_a;
      ++i;
    } else if (end_a || second.rows[j][0] < first.rows[i][0]) {
      ++pairs.only_b;
      ++j;
    } else {
      const auto &x = first.rows[i++], &y = second.rows[j++];
      auto& row = pairs.rows.rows.emplace_back(x.begin(), x.begin() + time);
      row.insert(row.end(), {x[time], y[time], x[energy], y[energy]});
    }
  }
  return pairs;
}

Pairs pairs_of_versions(const ResultStore& store, const std::string& a, const std::string& b) {
  for (const std::string& version : {a, b}) {
    if (store
            .query("SELECT 1 FROM v_plans WHERE question_hash NOT NULL AND program_version = ? "
                   "LIMIT 1",
                   {version})
            .rows.empty()) {
      std::string known;
      for (const auto& row : store
                                 .query("SELECT DISTINCT program_version FROM v_plans WHERE "
                                        "question_hash NOT NULL ORDER BY 1")
                                 .rows)
        known +=
            (known.empty() ? "'" : ", '") + printable(value_as<std::string>(row.front())) + "'";
      throw UsageError(
          fmt::format("'{}' is neither a run nor a program version with units", printable(version)),
          {.in = {}, .hint = known.empty() ? "the database has no sweeps" : "versions: " + known});
    }
  }
  return pairs_of_questions(store.query(questions_sql, {a}), store.query(questions_sql, {b}));
}

Pairs pairs_of(const CompareOptions& o) {
  if (o.db.empty()) {
    return pairs_of_questions(read_results(o.a).query(questions_sql, {SqlValue()}),
                              read_results(o.b).query(questions_sql, {SqlValue()}));
  }
  const ResultStore store = read_results(o.db);
  if (parse_count(o.a) && parse_count(o.b))
    return pairs_of_runs(store, find_stored_run(store, o.a), find_stored_run(store, o.b));
  return pairs_of_versions(store, o.a, o.b);
}

// b over a - 1 in percent; nothing if either has no plan.
std::optional<double> difference_pct(const SqlValue& a, const SqlValue& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x == nullptr || y == nullptr) return std::nullopt;
  return 100.0 * (*y / *x - 1.0);
}

class Judge {
 public:
  explicit Judge(const CompareOptions& o)
      : time_pct_(o.time_tolerance_pct.value_or(o.tolerance_pct)),
        energy_pct_(o.energy_tolerance_pct.value_or(o.tolerance_pct)),
        worse_only_(o.worse_only) {}

  // A plan on one side only is a difference; on neither side it is none.
  [[nodiscard]] bool differs(const std::vector<SqlValue>& row) const {
    const std::size_t n = row.size();
    const bool plan_a = std::holds_alternative<double>(row[n - 4]);
    const bool plan_b = std::holds_alternative<double>(row[n - 3]);
    if (plan_a != plan_b) return plan_a || !worse_only_;
    return plan_a && (beyond(*difference_pct(row[n - 4], row[n - 3]), time_pct_) ||
                      beyond(*difference_pct(row[n - 2], row[n - 1]), energy_pct_));
  }

 private:
  [[nodiscard]] bool beyond(double pct, double tolerance_pct) const {
    return worse_only_ ? pct > tolerance_pct : std::abs(pct) > tolerance_pct;
  }

  double time_pct_, energy_pct_;
  bool worse_only_;
};

// Both values of a quantity: "1814 -> 1542".
std::string both_text(const SqlValue& a, const SqlValue& b) {
  const auto one = [](const SqlValue& value) {
    constexpr double five_digits = 1e4;
    const auto* number = std::get_if<double>(&value);
    if (number == nullptr) return std::string("no plan");
    return *number < five_digits ? fmt::format("{:.4g}", *number) : fmt::format("{:.0f}", *number);
  };
  return fmt::format("{} -> {}", one(a), one(b));
}

// What was asked, then both values of energy and time with their change.
QueryResult for_people(const QueryResult& rows) {
  constexpr std::ptrdiff_t numbers = 7;  // time, time, energy, energy, two differences, differs
  QueryResult people;
  const auto asked = [](const auto& cells) {
    return std::vector(cells.begin(), cells.end() - numbers);
  };
  people.columns = asked(rows.columns);
  for (const char* column : {"energy_j", "energy_pct", "time_s", "time_pct"})
    people.columns.emplace_back(column);
  for (const auto& row : rows.rows) {
    const auto at = row.end() - numbers;
    auto& shown = people.rows.emplace_back(asked(row));
    shown.insert(shown.end(), {both_text(at[2], at[3]), at[5], both_text(at[0], at[1]), at[4]});
  }
  return people;
}

// "7.9 to 16.3 % less": of several changes.
std::string range_text(double least_pct, double most_pct) {
  const auto digits = [](double pct) { return fmt::format("{:.1f}", std::abs(pct)); };
  const bool less = most_pct <= 0.0;
  if (digits(least_pct) == digits(most_pct) && (least_pct > 0.0) == (most_pct > 0.0))
    return digits(most_pct) == "0.0" ? "as much"
                                     : digits(most_pct) + (less ? " % less" : " % more");
  if (less) return fmt::format("{} to {} % less", digits(most_pct), digits(least_pct));
  if (least_pct >= 0.0) return fmt::format("{} to {} % more", digits(least_pct), digits(most_pct));
  return fmt::format("{} % less to {} % more", digits(least_pct), digits(most_pct));
}

// What two runs differ in, as they were asked.
std::string changed_text(const ResultStore& store, std::string_view a, std::string_view b) {
  const QueryResult both = store.query(
      "SELECT work, gpu AS GPU, power_limit_w AS 'power limit W', clock_grid AS clocks, "
      "host_power_w AS 'host power W', batch, sequence, tensor_parallel AS 'tensor parallel', "
      "stages, microbatches, schedule, captured_clock AS 'captured clock', 1e3 * (switch_lead_s + "
      "switch_stall_s) AS 'switch latency ms', program_version AS version FROM v_runs WHERE run_id "
      "IN (?1, ?2) ORDER BY run_id = ?2",
      {static_cast<std::int64_t>(parse_count(a).value_or(0)),
       static_cast<std::int64_t>(parse_count(b).value_or(0))});
  if (both.rows.size() < 2) return "";
  const auto shown = [](const SqlValue& value) {
    if (const auto* number = std::get_if<double>(&value)) return format_number(*number);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return fmt::to_string(*whole);
    if (const auto* words = std::get_if<std::string>(&value)) return files_text(*words);
    return std::string("none");
  };
  std::string text;
  for (std::size_t c = 0; c < both.columns.size(); ++c) {
    const std::string of_a = shown(both.rows[0][c]), of_b = shown(both.rows[1][c]);
    if (of_a != of_b)
      text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", both.columns[c],
                          printable(of_a), printable(of_b));
  }
  return text.empty() ? "The question is the same." : "Changed in the question: " + text + ".";
}

// "Run 2 uses 7.9 to 16.3 % less energy than run 1, and 5.4 to 9.2 % more time."
std::string runs_text(const CompareOptions& o, const QueryResult& rows) {
  std::optional<double> low_j, high_j, low_s, high_s;
  for (const auto& row : rows.rows) {
    const auto* time_pct = std::get_if<double>(&row[row.size() - 3]);
    const auto* energy_pct = std::get_if<double>(&row[row.size() - 2]);
    if (time_pct == nullptr || energy_pct == nullptr) continue;
    low_j = std::min(low_j.value_or(*energy_pct), *energy_pct);
    high_j = std::max(high_j.value_or(*energy_pct), *energy_pct);
    low_s = std::min(low_s.value_or(*time_pct), *time_pct);
    high_s = std::max(high_s.value_or(*time_pct), *time_pct);
  }
  if (!low_j) return "No question has a plan in both.";
  return fmt::format(
      "Run {} uses {} energy {} run {}, and {} time.", o.b, range_text(*low_j, *high_j),
      range_text(*low_j, *high_j) == "as much" ? "as" : "than", o.a, range_text(*low_s, *high_s));
}

ExitStatus run(const CompareOptions& o) {
  Pairs pairs = pairs_of(o);
  if (pairs.rows.rows.empty()) {
    throw DataError(
        fmt::format("A and B have no question in common: {} are only in A, {} only in B",
                    pairs.only_a, pairs.only_b),
        {.in = {},
         .hint = "compare runs that were asked the same (goal, slack, granularity), or "
                 "sweeps of one experiment"});
  }
  const Judge judge(o);
  std::size_t differing = 0;
  pairs.rows.columns.insert(pairs.rows.columns.end(),
                            {"time_difference_pct", "energy_difference_pct", "differs"});
  for (auto& row : pairs.rows.rows) {
    const bool differs = judge.differs(row);
    differing += differs ? 1 : 0;
    const std::size_t n = row.size();
    const auto value = [](const std::optional<double>& pct) {
      return pct ? SqlValue(*pct) : SqlValue();
    };
    const SqlValue time = value(difference_pct(row[n - 4], row[n - 3]));
    const SqlValue energy = value(difference_pct(row[n - 2], row[n - 1]));
    row.insert(row.end(), {time, energy, std::int64_t{differs ? 1 : 0}});
  }
  const std::string answer =
      fmt::format("{} questions in both, {} differ; {} only in A, {} only in B",
                  pairs.rows.rows.size(), differing, pairs.only_a, pairs.only_b);
  if (o.format == OutputFormat::table) {
    std::string said;
    if (!o.db.empty() && is_run(o.a) && is_run(o.b)) {
      said.append(runs_text(o, pairs.rows)).append("\n");
      said.append(changed_text(read_results(o.db), o.a, o.b)).append("\n");
    }
    print_notes(answer_text(fmt::format("A: {}, B: {}", printable(o.a), printable(o.b)),
                            said.append(answer + ".")));
    print(as_table(for_people(pairs.rows), Titles::words), o.format);
  } else {
    print(as_table(pairs.rows), o.format);
    tell("{}\n", answer);
  }
  return differing > 0 ? ExitStatus::no_plan : ExitStatus::done;
}

}  // namespace

Action setup_compare(CommandLine& app) {
  auto o = std::make_shared<CompareOptions>();
  app.add_option("WORDS DATABASE A B", o->words,
                 "A result database and two of its runs or program versions, the first to compare "
                 "with; or two databases")
      ->required();
  app.add_option("--db", o->db, "Result database of both");
  app.add_option("--tolerance", o->tolerance_pct,
                 "Difference of time or energy that counts as equal, %")
      ->capture_default_str();
  app.add_option("--time-tolerance", o->time_tolerance_pct, "The same for time only, %");
  app.add_option("--energy-tolerance", o->energy_tolerance_pct, "The same for energy only, %");
  app.add_flag("--worse-only", o->worse_only, "More time or energy counts, less does not");
  add_format_options(app, o->format);
  app.footer(
      "Exit status 1 if a plan of B differs from A by more than the tolerance, 3 if there is "
      "nothing to compare.");
  return [o, &app](const RunContext&) {
    const bool files =
        o->words.size() == 2 && !app.has("--db") && !is_run(o->words[0]) && !is_run(o->words[1]);
    if (files) o->db.clear();  // also that of the user's defaults
    if (!files) take_database(o->words, o->db, 2);
    if (o->words.size() < 2)
      throw UsageError("one to compare with is missing; expected two runs, versions or databases");
    o->a = o->words[0];
    o->b = o->words[1];
    return run(*o);
  };
}

}  // namespace rubato
