#include "explorer/results/run_writer.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "common/version.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

namespace {

// Inserts several rows with one statement: they share what it takes to begin and to end it. A
// statement has 64, 8 or 1 rows, so that few prepared statements are kept.
// @param bind_row  binds the values of a row, from a parameter of the statement on
template <class BindRow>
void insert_rows(const SqlConnection& connection, std::string_view insert_into, int columns,
                 std::size_t rows, const BindRow& bind_row) {
  std::string row = "(?";
  for (int c = 1; c < columns; ++c) row += ", ?";
  row += ')';
  std::size_t next = 0;
  for (const std::size_t at_once : {std::size_t{64}, std::size_t{8}, std::size_t{1}}) {
    if (rows - next < at_once) continue;
    std::string sql = fmt::format("{} VALUES {}", insert_into, row);
    for (std::size_t i = 1; i < at_once; ++i) sql += ", " + row;
    SqlStatement insert = SqlStatement::kept(connection, sql);
    while (rows - next >= at_once) {
      int position = 1;
      for (const std::size_t end = next + at_once; next < end; ++next, position += columns)
        bind_row(insert, position, next);
      insert.run_bound();
    }
  }
}

// Cells have numbers in a row, which are quick to write.
std::int64_t row_of_cells(const SqlConnection& connection, const StoredCells& cells) {
  SqlStatement known =
      SqlStatement::kept(connection, "SELECT first_cell FROM cell_rows WHERE cells_hash = ?");
  if (known.first(cells.hash)) return whole(known.value(0));
  SqlStatement::kept(connection,
                     "INSERT INTO cell_rows SELECT coalesce((SELECT first_cell + clocks FROM "
                     "cell_rows ORDER BY first_cell DESC LIMIT 1), 1), ?, ?")
      .run(cells.at.size(), cells.hash);
  const std::int64_t first_cell = connection.last_insert_id();
  std::vector<std::size_t> there;
  for (std::size_t c = 0; c < cells.at.size(); ++c) {
    if (cells.at[c].time_s > 0.0) there.push_back(c);
  }
  insert_rows(connection, "INSERT INTO cells", 5, there.size(),
              [&](SqlStatement& insert, int position, std::size_t i) {
                const OperatingPoint& cell = cells.at[there[i]];
                insert.bind_from(position, first_cell + static_cast<std::int64_t>(there[i]),
                                 cell.time_s, cell.energy_j, cell.core_mhz, cell.power_limited);
              });
  return first_cell;
}

void write_caveats(const SqlConnection& connection, std::int64_t run_id, const SqlValue& plan_id,
                   const std::vector<Mark>& caveats) {
  for (const Mark& mark : caveats) {
    SqlStatement::kept(connection, "INSERT OR IGNORE INTO caveats VALUES (?, ?, ?, ?)")
        .run(run_id, plan_id, name_of(mark.kind), mark.reason);
  }
}

void write_inputs(const SqlConnection& connection, std::int64_t run_id, const RunRows& run) {
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    const StoredInput& input = run.inputs[i];
    SqlStatement::kept(connection, "INSERT OR IGNORE INTO inputs VALUES (?, ?, ?, ?)")
        .run(input.hash, input.kind, input.name, sql_value(input.text));
    SqlStatement::kept(connection, "INSERT OR IGNORE INTO run_inputs VALUES (?, ?, ?)")
        .run(run_id, input.hash, i);
    if (input.kind != "gpu_spec") continue;
    for (const auto& [name, value] : run.fit_errors) {
      SqlStatement::kept(connection, "INSERT OR IGNORE INTO model_errors VALUES (?, ?, ?)")
          .run(input.hash, name, value);
    }
  }
}

void write_clocks(const SqlConnection& connection, std::int64_t run_id,
                  const std::vector<StoredClock>& clocks) {
  insert_rows(connection, "INSERT INTO clocks", 9, clocks.size(),
              [&](SqlStatement& insert, int position, std::size_t c) {
                const StoredClock& clock = clocks[c];
                insert.bind_from(position, run_id, c, clock.label, clock.mem_mhz, clock.core_mhz,
                                 clock.power_limit_w, clock.is_default, clock.time_s,
                                 clock.energy_j);
              });
}

void write_units(const SqlConnection& connection, std::int64_t run_id, const RunRows& run) {
  std::vector<std::int64_t> first_cells;
  for (const StoredCells& cells : run.cells) first_cells.push_back(row_of_cells(connection, cells));
  for (std::size_t u = 0; u < run.units.size(); ++u) {
    const StoredUnit& unit = run.units[u];
    Columns columns{{"run_id", run_id},
                    {"unit_id", sql_value(u)},
                    {"gpu_id", sql_value(unit.gpu)},
                    {"first_cell", unit.cells ? SqlValue(first_cells[*unit.cells]) : SqlValue()}};
    columns.insert(columns.end(), unit.columns.begin(), unit.columns.end());
    insert_row(connection, "units", columns);
  }
}

void write_parts(const SqlConnection& connection, std::int64_t plan_id, const PlanRows& plan) {
  insert_rows(connection, "INSERT INTO plan_units", 6, plan.units.size(),
              [&](SqlStatement& insert, int position, std::size_t i) {
                const PlanUnitRow& unit = plan.units[i];
                insert.bind_from(position, plan_id, unit.unit, unit.clock,
                                 static_cast<std::int64_t>(unit.launches), unit.time_s,
                                 unit.energy_j);
              });
  insert_rows(connection, "INSERT INTO plan_segments", 15, plan.segments.size(),
              [&](SqlStatement& insert, int position, std::size_t i) {
                const SegmentRow& one = plan.segments[i];
                insert.bind_from(position, plan_id, i, one.gpu, one.clock, sql_value(one.block),
                                 sql_value(one.repeats), one.pass, sql_value(one.microbatch),
                                 one.first_unit, sql_value(one.first_index),
                                 sql_value(one.launches), one.start_s, one.time_s, one.energy_j,
                                 one.critical ? SqlValue(std::int64_t{*one.critical}) : SqlValue());
              });
}

}  // namespace

std::int64_t insert_row(const SqlConnection& connection, std::string_view table,
                        const Columns& columns) {
  std::string names, marks;
  for (const auto& column : columns) {
    names += (names.empty() ? "" : ", ") + std::string(column.first);
    marks += marks.empty() ? "?" : ", ?";
  }
  SqlStatement insert = SqlStatement::kept(
      connection, fmt::format("INSERT INTO {} ({}) VALUES ({})", table, names, marks));
  int position = 0;
  for (const auto& column : columns) insert.bind_from(++position, column.second);
  insert.run_bound();
  return connection.last_insert_id();
}

std::int64_t write_run(const SqlConnection& connection, const RunRows& run,
                       const RunRecord& record) {
  const std::string now = now_utc(), host = host_name();
  const std::string version = program_with_revision();
  Columns columns = run.columns;
  const auto add = [&](std::string_view name, SqlValue value) {
    columns.emplace_back(name, std::move(value));
  };
  add("run_hash",
      record.experiment
          ? record.experiment->run_hash
          : content_hash(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", now, host, version, record.command,
                                     record.options_json.value_or(""), run.result_hash)));
  add("result_hash", run.result_hash);
  add("asked", std::int64_t{!record.experiment});
  add("created_utc", now);
  add("command", record.command);
  add("options_json", sql_value(record.options_json));
  add("program_version", version);
  add("build_info", std::string(build_info()));
  add("host", host);
  const std::int64_t run_id = insert_row(connection, "runs", columns);
  write_inputs(connection, run_id, run);
  for (std::size_t g = 0; g < run.gpus.size(); ++g) {
    const StoredGpu& gpu = run.gpus[g];
    SqlStatement::kept(connection, "INSERT INTO gpus VALUES (?, ?, ?, ?, ?, ?, ?)")
        .run(run_id, g, gpu.label, sql_value(gpu.rank), sql_value(gpu.device), sql_value(gpu.stage),
             gpu.replicas);
  }
  write_clocks(connection, run_id, run.clocks);
  write_units(connection, run_id, run);
  for (std::size_t i = 0; i < run.collectives.size(); ++i) {
    Columns row{{"run_id", run_id}, {"collective_id", sql_value(i)}};
    row.insert(row.end(), run.collectives[i].begin(), run.collectives[i].end());
    insert_row(connection, "collectives", row);
  }
  write_caveats(connection, run_id, {}, run.caveats);
  return run_id;
}

// In the order of the table's key: each row is appended, and needs no room made for it.
void write_fronts(const SqlConnection& connection, std::int64_t run_id,
                  std::span<const StoredFrontPoint> fronts) {
  std::set<std::string> fresh;
  for (const StoredFrontPoint& point : fronts) fresh.insert(point.granularity);
  std::erase_if(fresh, [&](const std::string& granularity) {
    return SqlStatement::kept(connection,
                              "SELECT 1 FROM fronts WHERE run_id = ? AND granularity = ?")
        .first(run_id, granularity);
  });
  std::vector<const StoredFrontPoint*> points;
  for (const StoredFrontPoint& point : fronts) {
    if (fresh.contains(point.granularity)) points.push_back(&point);
  }
  std::ranges::stable_sort(points, {}, [](const auto* point) { return point->granularity; });
  insert_rows(connection, "INSERT OR IGNORE INTO fronts", 7, points.size(),
              [&](SqlStatement& insert, int position, std::size_t i) {
                const StoredFrontPoint& point = *points[i];
                insert.bind_from(position, run_id, point.granularity, point.point, point.time_s,
                                 point.energy_j, point.bound_j, point.price_w);
              });
}

std::int64_t write_plan(const SqlConnection& connection, std::int64_t run_id, const PlanRows& plan,
                        const std::optional<PlanRecord>& record) {
  Columns columns = plan.columns;
  const auto add = [&](std::string_view name, SqlValue value) {
    columns.emplace_back(name, std::move(value));
  };
  const Contender& one = plan.contender;
  const auto flag = [](bool value) { return SqlValue(std::int64_t{value}); };
  add("run_id", run_id);
  add("want", one.want);
  add("odds_pct", percent * one.odds_frac);
  add("odds_in_time_pct", one.odds_in_time ? SqlValue(percent * *one.odds_in_time) : SqlValue());
  add("granularity", std::string(name_of(one.granularity)));
  add("aggregation", one.aggregation);
  add("comm_sms", sql_value(one.comm_sms));
  add("clocks", one.clocks);
  add("clock_changes", one.clock_changes);
  add("default_in_time", flag(one.default_holds));
  add("in_time", flag(one.holds));
  add("objective_frac", one.objective_frac);
  add("applicable", flag(one.verdict.applicable));
  add("not_applicable_because",
      one.verdict.because.empty() ? SqlValue() : SqlValue(one.verdict.because));
  add("fitted", flag(one.fitted));
  add("is_answer", flag(false));
  add("keeps_default", flag(false));
  add("finished_utc", now_utc());
  add("result_hash", plan.result_hash);
  if (record) {
    add("question_hash", record->question_hash);
    add("wall_time_s", record->wall_time_s);
    add("estimated_s", record->estimated_s);
  }
  const std::int64_t plan_id = insert_row(connection, "plans", columns);
  write_parts(connection, plan_id, plan);
  write_caveats(connection, run_id, plan_id, plan.caveats);
  return plan_id;
}

void choose_stored_answers(const SqlConnection& connection, std::int64_t run_id) {
  std::vector<Contender> plans;
  std::vector<std::int64_t> ids;
  SqlStatement rows = SqlStatement::kept(connection, contenders_sql);
  for (bool row = rows.first(run_id); row; row = rows.next()) {
    std::vector<SqlValue> values;
    for (int c = 0; c < rows.columns(); ++c) values.push_back(rows.value(c));
    ids.push_back(whole(values.front()));
    plans.push_back(stored_contender(values));
  }
  const std::vector<PlanAnswer> answers = choose_answers(plans);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const PlanAnswer& answer = *std::ranges::find(answers, plans[i].want, &PlanAnswer::want);
    SqlStatement::kept(connection,
                       "UPDATE plans SET is_answer = ?1, keeps_default = ?2 WHERE plan_id = ?3 AND "
                       "(is_answer <> ?1 OR keeps_default <> ?2)")
        .run(answer.plan == i, answer.keeps_default, ids[i]);
  }
  const PlanAnswer* known_by = headline(plans, answers);
  SqlStatement::kept(connection, "UPDATE runs SET headline_want = ? WHERE run_id = ? AND asked")
      .run(known_by == nullptr ? SqlValue() : SqlValue(known_by->want), run_id);
}

void store_screen(const std::filesystem::path& database, std::int64_t run_id,
                  std::span<const std::pair<std::string_view, std::string>> lines) {
  SqlConnection connection = open_result_database(database);
  SqlTransaction transaction(connection, References::known_to_hold);
  for (std::size_t i = 0; i < lines.size(); ++i)
    insert_row(connection, "screens",
               {{"run_id", run_id},
                {"position", static_cast<std::int64_t>(i)},
                {"label", std::string(lines[i].first)},
                {"text", lines[i].second}});
  transaction.commit();
}

std::int64_t store_run(const std::filesystem::path& database, const RunRows& run,
                       std::span<const PlanRows> plans, const RunRecord& record) {
  SqlConnection connection = open_result_database(database);
  SqlTransaction transaction(connection, References::known_to_hold);
  const std::int64_t run_id = write_run(connection, run, record);
  for (const PlanRows& plan : plans) write_plan(connection, run_id, plan);
  choose_stored_answers(connection, run_id);
  write_fronts(connection, run_id, run.fronts);
  transaction.commit();
  return run_id;
}

}  // namespace rubato
