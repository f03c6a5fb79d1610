#include "explorer/results/run_writer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/version.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/stored_answers.hpp"
#include "traces/files/trace_json.hpp"

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

// The clock of all launches of each kernel, shape [kernels]; nothing where they have several.
std::vector<std::optional<ClockId>> clock_of_kernels(const Trace& trace, const Plan& plan) {
  std::vector<std::optional<ClockId>> clocks(trace.kernels.size());
  std::vector<bool> seen(trace.kernels.size());
  const std::vector<Site> launches = sites(trace, plan);
  for (std::size_t i = 0; i < plan.clock_of_site.size(); ++i) {
    const std::size_t kernel = index(launches[i].kernel);
    if (!seen[kernel])
      clocks[kernel] = plan.clock_of_site[i];
    else if (clocks[kernel] != plan.clock_of_site[i])
      clocks[kernel].reset();
    seen[kernel] = true;
  }
  return clocks;
}

}  // namespace

std::string bits_of(std::span<const OperatingPoint> cells) {
  std::string bytes;
  bytes.reserve(cells.size() * 4 * sizeof(std::uint64_t));
  for (const OperatingPoint& cell : cells) {
    std::array<std::uint64_t, 4> bits{std::bit_cast<std::uint64_t>(cell.time_s),
                                      std::bit_cast<std::uint64_t>(cell.energy_j),
                                      std::bit_cast<std::uint64_t>(cell.core_mhz),
                                      std::bit_cast<std::uint64_t>(cell.power_limited ? 1.0 : 0.0)};
    if constexpr (std::endian::native == std::endian::big) {
      for (std::uint64_t& number : bits) number = __builtin_bswap64(number);
    }
    const auto raw = std::bit_cast<std::array<char, sizeof bits>>(bits);
    bytes.append(raw.data(), raw.size());
  }
  return bytes;
}

std::int64_t RunWriter::write(const RunRecord& record) {
  constexpr bool asked = true;
  write_setting(record, asked);
  for (const PlanResult& result : found_.plans) write_plan(result);
  store_answers(connection_, RunKind::trace, run_id_);
  write_fronts();
  return run_id_;
}

std::int64_t RunWriter::write_setting(const RunRecord& record, bool asked) {
  write_run(record, asked);
  write_clocks();
  write_kernels();
  write_baseline();
  return run_id_;
}

std::string store_input(const SqlConnection& connection, std::string_view kind,
                        const std::string& name, const std::string& text) {
  std::string hash = content_hash(text);
  SqlStatement::kept(connection, "INSERT OR IGNORE INTO inputs VALUES (?, ?, ?, ?)")
      .run(hash, kind, name, text);
  return hash;
}

void RunWriter::write_run(const RunRecord& record, bool asked) {
  const std::string trace_hash =
      store_input(connection_, "trace", input_.trace.name, to_json(input_.trace));
  const std::string spec_hash =
      store_input(connection_, "gpu_spec", input_.spec.name, to_json(input_.spec));
  const SwitchModel& switching = input_.switching;
  const auto of_mem = [&](double SwitchCost::*value) {
    return switching.mem ? std::optional((*switching.mem).*value) : std::nullopt;
  };
  SqlStatement::kept(
      connection_,
      "INSERT INTO runs VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, NULL)")
      .run(now_utc(), record.command, record.options_json, program_version(), source_revision(),
           build_info(), host_name(), found_.wall_time_s, trace_hash, input_.trace.name, spec_hash,
           input_.spec.name, input_.spec.calibrated,
           input_.power_limit_w.value_or(input_.spec.power_limit.limit_w),
           grid_name(input_.spec, input_.grid), switching.core.stall_s, switching.core.energy_j,
           found_.interrupted, switching.core.lead_s, switching.dwell_s,
           of_mem(&SwitchCost::lead_s), of_mem(&SwitchCost::stall_s), of_mem(&SwitchCost::energy_j),
           asked);
  run_id_ = connection_.last_insert_id();
}

void RunWriter::write_clocks() {
  insert_rows(connection_, "INSERT INTO clocks", 7, found_.grid.size(),
              [&](SqlStatement& insert, int position, std::size_t c) {
                const auto id = id_at<ClockId>(c);
                const MemState& mem = input_.spec.mem_states[index(found_.grid[id].mem)];
                insert.bind_from(position, run_id_, c, found_.grid.label(id), mem.name, mem.mem_mhz,
                                 found_.grid[id].core_mhz, id == found_.grid.default_clock());
              });
}

void RunWriter::write_kernels() {
  const std::vector<std::int64_t> first_cells = write_cells();
  const std::vector<std::uint64_t> counts = launch_counts(input_.trace);
  insert_rows(connection_, "INSERT INTO kernels", 12, input_.trace.kernels.size(),
              [&](SqlStatement& insert, int position, std::size_t k) {
                const Kernel& kernel = input_.trace.kernels[k];
                insert.bind_from(position, run_id_, k, kernel.name, kernel.label,
                                 name_of(kernel.kind), name_of(kernel.pass), name_of(kernel.dtype),
                                 static_cast<std::int64_t>(counts[k]), kernel.flops,
                                 kernel.dram_bytes, name_of(found_.coefficient_sources[k]),
                                 first_cells.empty() ? SqlValue() : SqlValue(first_cells[k]));
              });
}

// Kernels whose cells are all alike share them, also with other runs.
// @return the first cell of each kernel, shape [kernels]; nothing where a run has no cells
std::vector<std::int64_t> RunWriter::write_cells() {
  const std::size_t clocks = found_.grid.size();
  std::vector<std::int64_t> first_cells;
  for (std::size_t first = 0; first < found_.cells.size(); first += clocks)
    first_cells.push_back(row_of(std::span(found_.cells).subspan(first, clocks)));
  return first_cells;
}

std::int64_t RunWriter::row_of(std::span<const OperatingPoint> cells) {
  const std::string hash = content_hash(bits_of(cells));
  SqlStatement known =
      SqlStatement::kept(connection_, "SELECT first_cell FROM cell_rows WHERE cells_hash = ?");
  if (known.first(hash)) return value_as<std::int64_t>(known.value(0));
  SqlStatement::kept(connection_,
                     "INSERT INTO cell_rows SELECT coalesce(max(cell_id), 0) + 1, ?, ? FROM cells")
      .run(cells.size(), hash);
  const std::int64_t first_cell = connection_.last_insert_id();
  insert_rows(connection_, "INSERT INTO cells", 5, cells.size(),
              [&](SqlStatement& insert, int position, std::size_t i) {
                const OperatingPoint& cell = cells[i];
                insert.bind_from(position, first_cell + static_cast<std::int64_t>(i), cell.time_s,
                                 cell.energy_j, cell.core_mhz, cell.power_limited);
              });
  return first_cell;
}

// The default clocks as a plan of their own, so that views can join to it.
void RunWriter::write_baseline() {
  SqlStatement::kept(
      connection_,
      "INSERT INTO plans (run_id, granularity, aggregation, goal, status, nodes, solve_time_s) "
      "VALUES (?, 'iteration', 'global', 'default', 'optimal', 0, 0)")
      .run(run_id_);
  const std::int64_t plan_id = connection_.last_insert_id();
  const Plan defaults = uniform_plan(input_.trace, found_.grid.default_clock());
  write_totals(plan_id, found_.baseline, defaults);
  write_entries(plan_id, defaults);
  write_marks(plan_id, found_.baseline_marks);
}

std::int64_t RunWriter::write_plan(const PlanResult& result) {
  const Question& question = result.question;
  const auto* waste = std::get_if<LeastWaste>(&question.goal);
  const auto* time = std::get_if<LeastTime>(&question.goal);
  const bool found = result.found();
  const auto if_found = [&](double value) { return found ? std::optional(value) : std::nullopt; };
  SqlStatement::kept(
      connection_,
      "INSERT INTO plans (run_id, granularity, aggregation, goal, slack_frac, tolerance_frac, "
      "max_energy_j, "
      "max_average_power_w, status, objective, lower_bound, gap_frac, nodes, solve_time_s) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(run_id_, name_of(question.granularity), name_of(question.aggregation),
           name_of(question.goal),
           waste != nullptr ? std::optional(waste->slack_frac) : std::nullopt,
           waste != nullptr ? std::optional(waste->tolerance_frac) : std::nullopt,
           time != nullptr ? time->max_energy_j : std::nullopt,
           time != nullptr ? time->max_average_power_w : std::nullopt, name_of(result.status),
           if_found(result.objective), if_found(result.lower_bound), if_found(result.gap_frac),
           static_cast<std::int64_t>(result.nodes), result.solve_time_s);
  const std::int64_t plan_id = connection_.last_insert_id();
  store_contender(connection_, RunKind::trace, plan_id, contender_of(found_, result));
  if (!found) return plan_id;
  write_totals(plan_id, result.sim, result.plan);
  if (result.interval) write_interval(plan_id, *result.interval);
  if (result.counted) {
    SqlStatement::kept(
        connection_, "UPDATE plans SET counted_time_s = ?, counted_energy_j = ? WHERE plan_id = ?")
        .run(result.counted->time_s, result.counted->energy_j, plan_id);
  }
  write_marks(plan_id, result.marks);
  write_entries(plan_id, result.plan);
  return plan_id;
}

void RunWriter::write_totals(std::int64_t plan_id, const SimResult& sim, const Plan& plan) {
  SqlStatement::kept(
      connection_,
      "UPDATE plans SET time_s = ?, energy_j = ?, launches = ?, clock_switches = ?, "
      "power_limited_launches = ?, switch_time_s = ?, switch_energy_j = ?, late_launches = ? "
      "WHERE plan_id = ?")
      .run(sim.total.time_s, sim.total.energy_j, sim.total.launches, sim.total.clock_switches,
           sim.total.power_limited_launches, sim.switching.time_s, sim.switching.energy_j,
           sim.late_launches, plan_id);
  SqlStatement pass =
      SqlStatement::kept(connection_, "INSERT INTO plan_passes VALUES (?, ?, ?, ?, ?)");
  for (std::size_t p = 0; p < sim.by_pass.size(); ++p) {
    const Totals& totals = sim.by_pass[p];
    if (totals.launches == 0) continue;
    pass.run(plan_id, name_of(static_cast<Pass>(p)), totals.time_s, totals.energy_j,
             totals.launches);
  }
  const std::vector<std::optional<ClockId>> clocks = clock_of_kernels(input_.trace, plan);
  insert_rows(connection_, "INSERT INTO plan_kernels", 8, sim.by_kernel.size(),
              [&](SqlStatement& insert, int position, std::size_t k) {
                const Totals& totals = sim.by_kernel[k];
                insert.bind_from(position, plan_id, run_id_, k, totals.time_s, totals.energy_j,
                                 totals.launches, totals.power_limited_launches,
                                 clocks[k] ? SqlValue(static_cast<std::int64_t>(index(*clocks[k])))
                                           : SqlValue());
              });
}

void RunWriter::write_interval(std::int64_t plan_id, const SavingInterval& interval) {
  SqlStatement::kept(
      connection_,
      "UPDATE plans SET time_change_low_pct = ?, time_change_high_pct = ?, "
      "energy_change_low_pct = ?, energy_change_high_pct = ?, time_change_expected_pct = "
      "?, energy_change_expected_pct = ? WHERE plan_id = ?")
      .run(interval.time.low_pct, interval.time.high_pct, interval.energy.low_pct,
           interval.energy.high_pct, interval.time.median_pct, interval.energy.median_pct, plan_id);
}

void RunWriter::write_marks(std::int64_t plan_id, const std::vector<Mark>& marks) {
  if (marks.empty()) return;
  SqlStatement insert = SqlStatement::kept(connection_, "INSERT INTO plan_marks VALUES (?, ?, ?)");
  for (const Mark& mark : marks) insert.run(plan_id, name_of(mark.kind), mark.reason);
}

void RunWriter::write_entries(std::int64_t plan_id, const Plan& plan) {
  const std::vector<Site> launches = sites(input_.trace, plan);
  insert_rows(connection_, "INSERT INTO plan_entries", 7, plan.clock_of_site.size(),
              [&](SqlStatement& insert, int position, std::size_t i) {
                const Segment& segment = plan.segments_of(input_.trace)[launches[i].segment];
                insert.bind_from(position, plan_id, i, segment.name, segment.repeat, run_id_,
                                 index(launches[i].kernel), index(plan.clock_of_site[i]));
              });
}

// In the order of the table's key: each row is appended, and needs no room made for it.
void RunWriter::write_fronts() {
  std::vector<const Front*> fronts;
  for (const Front& front : found_.fronts) fronts.push_back(&front);
  std::ranges::sort(fronts, {}, [](const Front* front) { return name_of(front->granularity); });
  for (const Front* front : fronts) write_front(*front);
}

void RunWriter::write_front(const Front& front) {
  const std::string_view granularity = name_of(front.granularity);
  SqlStatement known = SqlStatement::kept(
      connection_, "SELECT 1 FROM front_points WHERE run_id = ? AND granularity = ?");
  if (known.first(run_id_, granularity)) return;
  insert_rows(connection_, "INSERT INTO front_points", 5, front.points.size(),
              [&](SqlStatement& insert, int position, std::size_t i) {
                insert.bind_from(position, run_id_, granularity, i, front.points[i].time_s,
                                 front.points[i].energy_j);
              });
}

}  // namespace rubato
