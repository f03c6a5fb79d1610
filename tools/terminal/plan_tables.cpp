#include "tools/terminal/plan_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/version.hpp"

namespace rubato {

namespace {

Cell cell_of(const SqlValue& value) {
  return std::visit([](const auto& one) { return Cell(one); }, value);
}

Cell value_of(const Columns& columns, std::string_view name) {
  const auto found = std::ranges::find(columns, name, &Columns::value_type::first);
  return found == columns.end() ? Cell() : cell_of(found->second);
}

double number_of(const Columns& columns, std::string_view name) {
  const Cell value = value_of(columns, name);
  const auto* count = std::get_if<std::int64_t>(&value);
  return count != nullptr ? static_cast<double>(*count) : std::get<double>(value);
}

std::vector<Cell> key_of(const PlanRows& plan) {
  const std::string granularity(name_of(plan.contender.granularity));
  return {granularity, granularity, plan.contender.aggregation, value_of(plan.columns, "goal"),
          value_of(plan.columns, "slack_pct")};
}

std::vector<Cell> gpu_cells(const StoredGpu& gpu) {
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? Cell(*value) : Cell();
  };
  return {gpu.label, number(gpu.rank), number(gpu.device), number(gpu.stage)};
}

/// Rows that begin with their plan and GPU. A terminal shows of these what differs.
class RowsOfPlans {
 public:
  RowsOfPlans(const PlannedRun& of, std::vector<Column> more) : run_(of.run), table_({}) {
    std::set<std::vector<Cell>> keys;
    for (const PlanRows& plan : of.plans) keys.insert(key_of(plan));
    const auto same = [&](std::size_t place) {
      return std::ranges::all_of(
          keys, [&](const auto& key) { return key[place] == (*keys.begin())[place]; });
    };
    std::vector<Column> columns{
        {.key = "granularity", .for_programs = true},
        {.key = "plan", .for_people = true},
        {.key = "aggregation", .for_programs = same(2)},
        {.key = "goal", .for_programs = same(3)},
        {.key = "slack_pct",
         .title = "slack %",
         .decimals = 1,
         .for_programs = same(4),
         .room = Room::needed},
        {.key = "gpu_label", .title = "GPU", .for_programs = of.run.gpus.size() < 2},
        {.key = "rank", .for_programs = true},
        {.key = "device", .for_programs = true},
        {.key = "stage", .for_programs = true}};
    std::ranges::move(more, std::back_inserter(columns));
    table_ = OutputTable(std::move(columns));
  }

  void add(const PlanRows& plan, std::size_t gpu, std::vector<Cell> more) {
    std::vector<Cell> row = key_of(plan);
    std::ranges::move(gpu_cells(run_.gpus[gpu]), std::back_inserter(row));
    std::ranges::move(more, std::back_inserter(row));
    table_.add_row(std::move(row));
  }

  OutputTable take() { return std::move(table_); }

 private:
  const RunRows& run_;
  OutputTable table_;
};

/// Launches, with what they take at the default clocks.
struct Sum {
  std::uint64_t launches = 0;
  double time_s = 0.0, energy_j = 0.0, default_time_s = 0.0, default_energy_j = 0.0;
  std::set<std::size_t> clocks = {};

  void add(const PlanUnitRow& row, const StoredUnit& unit) {
    const double part = static_cast<double>(row.launches) / number_of(unit.columns, "launches");
    launches += row.launches;
    time_s += row.time_s;
    energy_j += row.energy_j;
    default_time_s += part * number_of(unit.columns, "default_time_s");
    default_energy_j += part * number_of(unit.columns, "default_energy_j");
    clocks.insert(row.clock);
  }

  [[nodiscard]] std::vector<Cell> cells(const RunRows& run) const {
    return {clocks.size() == 1 ? run.clocks[*clocks.begin()].label
                               : fmt::format("{} clocks", clocks.size()),
            static_cast<std::int64_t>(launches),
            time_s,
            energy_j,
            change_pct(time_s, default_time_s),
            change_pct(energy_j, default_energy_j)};
  }
};

std::vector<Column> sum_columns(std::vector<Column> first) {
  const std::vector<Column> sums{{"clock", "clock mem/core"},
                                 {"launches", "", 3, false, Room::detail},
                                 {"time_s", "time s", 4, false, Room::spare},
                                 {"energy_j", "energy J", 1, false, Room::spare},
                                 {"time_change_pct", "time %", 2, false, Room::needed},
                                 {"energy_change_pct", "energy %", 2, false, Room::needed}};
  std::ranges::copy(sums, std::back_inserter(first));
  return first;
}

bool have(const PlannedRun& of, const auto& has) {
  return std::ranges::any_of(
      of.plans, [&](const PlanRows& plan) { return std::ranges::any_of(plan.segments, has); });
}

}  // namespace

OutputTable run_table(const RunRows& run) {
  std::vector<Column> columns{{"program_version"}, {"clocks"}, {"default_clock"}};
  const auto usual = std::ranges::find(run.clocks, true, &StoredClock::is_default);
  std::vector<Cell> row{std::string(program_version()),
                        static_cast<std::int64_t>(run.clocks.size()),
                        usual == run.clocks.end() ? Cell() : Cell(usual->label)};
  for (const auto& [name, value] : run.columns) {
    if (name == "wall_time_s" || name == "interrupted") continue;
    columns.push_back({std::string(name)});
    row.push_back(cell_of(value));
  }
  OutputTable table(std::move(columns));
  table.add_row(std::move(row));
  return table;
}

OutputTable passes_table(const PlannedRun& of) {
  RowsOfPlans rows(of, sum_columns({{"pass"}}));
  for (const PlanRows& plan : of.plans) {
    std::map<std::size_t, std::vector<std::pair<std::string, Sum>>> passes;  // by GPU
    for (const PlanUnitRow& row : plan.units) {
      const StoredUnit& unit = of.run.units[row.unit];
      const auto pass = std::get<std::string>(value_of(unit.columns, "pass"));
      auto& of_gpu = passes[unit.gpu];
      auto sum = std::ranges::find(of_gpu, pass, &std::pair<std::string, Sum>::first);
      if (sum == of_gpu.end()) sum = of_gpu.insert(sum, {pass, {}});
      sum->second.add(row, unit);
    }
    for (const auto& [gpu, of_gpu] : passes) {
      for (const auto& [pass, sum] : of_gpu) {
        std::vector<Cell> cells{pass};
        std::ranges::move(sum.cells(of.run), std::back_inserter(cells));
        rows.add(plan, gpu, std::move(cells));
      }
    }
  }
  return rows.take();
}

OutputTable kernels_table(const PlannedRun& of) {
  RowsOfPlans rows(of, sum_columns({{"pass"}, {"kernel"}, {.key = "label", .for_programs = true}}));
  for (const PlanRows& plan : of.plans) {
    for (const PlanUnitRow& row : plan.units) {
      const StoredUnit& unit = of.run.units[row.unit];
      Sum sum;
      sum.add(row, unit);
      std::vector<Cell> cells{value_of(unit.columns, "pass"), value_of(unit.columns, "name"),
                              value_of(unit.columns, "label")};
      std::ranges::move(sum.cells(of.run), std::back_inserter(cells));
      rows.add(plan, unit.gpu, std::move(cells));
    }
  }
  return rows.take();
}

OutputTable segments_table(const PlannedRun& of) {
  const bool by_microbatch = have(of, [](const SegmentRow&s) { return s.microbatch.has_value(); }),
             by_limit = std::ranges::any_of(
                 of.run.clocks, [](const StoredClock&c) { return c.power_limit_w.has_value(); });
  RowsOfPlans rows(
      of,
      {{"pass"},
       {.key = "microbatch", .for_programs = !by_microbatch},
       {.key = "first_kernel", .title = "from", .for_programs = by_microbatch},
       {.key = "first_index", .for_programs = true},
       {.key = "launches", .for_programs = by_microbatch},
       {.key = "repeats", .for_programs = !have(of, [](const auto& s) { return s.repeats > 1; })},
       {"clock", "clock mem/core"},
       {.key = "core_mhz", .for_programs = true},
       {.key = "mem_mhz", .for_programs = true},
       {.key = "power_limit_w", .title = "limit W", .decimals = 0, .for_programs = !by_limit},
       {.key = "start_s",
        .title = "start s",
        .decimals = 4,
        .for_programs = !have(of, [](const auto& s) { return s.start_s.has_value(); })},
       {"time_s", "time s", 4},
       {"energy_j", "energy J", 2},
       {"power_w", "W", 1},
       {.key = "critical",
        .for_programs = !have(of, [](const auto& s) { return s.critical.has_value(); })}});
  const auto known = [](const auto& value) { return cell_of(sql_value(value)); };
  for (const PlanRows& plan : of.plans) {
    for (const SegmentRow& s : plan.segments) {
      const StoredClock& clock = of.run.clocks[s.clock];
      rows.add(plan, s.gpu,
               {s.pass, known(s.microbatch), value_of(of.run.units[s.first_unit].columns, "name"),
                static_cast<std::int64_t>(s.first_index), static_cast<std::int64_t>(s.launches),
                static_cast<std::int64_t>(s.repeats), clock.label, known(clock.core_mhz),
                known(clock.mem_mhz), known(clock.power_limit_w), known(s.start_s), s.time_s,
                s.energy_j, s.energy_j / s.time_s, s.critical ? Cell(*s.critical) : Cell()});
    }
  }
  return rows.take();
}

}  // namespace rubato
