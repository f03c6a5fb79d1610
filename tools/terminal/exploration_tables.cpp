#include "tools/terminal/exploration_tables.hpp"

#include <algorithm>
#include <set>
#include <variant>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

Cell slack_cell(const Goal& goal) {
  const auto* waste = std::get_if<LeastWaste>(&goal);
  return waste == nullptr ? Cell() : Cell(percent * waste->slack_frac);
}

std::vector<Cell> plan_key(const Question& question) {
  const std::string granularity(name_of(question.granularity));
  return {granularity, granularity, std::string(name_of(question.aggregation)),
          name_of(question.goal), slack_cell(question.goal)};
}

std::vector<Cell> key_of_defaults() {
  return {std::string("iteration"), std::string("default"), std::string("-"),
          std::string("default"), Cell()};
}

// Columns that say which plan a row belongs to, and `more` behind them. A terminal shows only those
// in which plans differ.
OutputTable keyed_table(const Exploration& found, std::vector<Column> more) {
  const auto all_same = [&](const auto& name) {
    return std::ranges::all_of(found.plans, [&](const PlanResult& plan) {
      return name(plan.question) == name(found.plans.front().question);
    });
  };
  std::vector<Column> columns{
      {.key = "granularity", .for_programs = true},
      {.key = "plan", .for_people = true},
      {.key = "aggregation",
       .for_programs = all_same([](const Question& q) { return q.aggregation; })},
      {.key = "goal", .for_programs = all_same([](const Question& q) { return name_of(q.goal); })},
      {.key = "slack_pct",
       .title = "slack %",
       .decimals = 1,
       .for_programs = all_same([](const Question& q) { return slack_cell(q.goal); }),
       .room = Room::needed}};
  columns.insert(columns.end(), more.begin(), more.end());
  return OutputTable(std::move(columns));
}

void add_totals(std::vector<Cell>& row, const Totals& totals, const Totals& base) {
  row.insert(row.end(), {totals.time_s, totals.energy_j, change_pct(totals.time_s, base.time_s),
                         change_pct(totals.energy_j, base.energy_j)});
}

// The clock of each kernel, or how many it has.
std::vector<std::string> clocks_of_kernels(const Trace& trace, const ClockGrid& grid,
                                           const Plan& plan) {
  std::vector<std::vector<ClockId>> clocks(trace.kernels.size());
  const std::vector<Site> launches = sites(trace, plan);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    std::vector<ClockId>& known = clocks[index(launches[i].kernel)];
    if (std::ranges::find(known, plan.clock_of_site[i]) == known.end())
      known.push_back(plan.clock_of_site[i]);
  }
  std::vector<std::string> names;
  for (const std::vector<ClockId>& known : clocks) {
    if (known.empty()) {
      names.emplace_back("-");
    } else {
      names.push_back(known.size() == 1 ? grid.label(known.front())
                                        : fmt::format("{} clocks", known.size()));
    }
  }
  return names;
}

const std::vector<Column> totals_columns{{"time_s", "time s", 4, false, Room::spare},
                                         {"energy_j", "energy J", 1, false, Room::spare},
                                         {"time_change_pct", "time %", 2, false, Room::needed},
                                         {"energy_change_pct", "energy %", 2, false, Room::needed}};

}  // namespace

double switches_per_s(const Totals& total) {
  return static_cast<double>(total.clock_switches) / total.time_s;
}

namespace {

// Whether the expected saving of some plan is less than the estimate, by the digits shown.
bool some_is_optimistic(const Exploration& found) {
  constexpr double shown_pct = 0.005;
  return std::ranges::any_of(found.plans, [&](const PlanResult& plan) {
    return plan.found() && plan.interval &&
           plan.interval->energy.median_pct >
               change_pct(plan.sim.total.energy_j, found.baseline.total.energy_j) + shown_pct;
  });
}

bool is_counted(const PlanResult& plan) { return plan.counted.has_value(); }

// Changes of a plan with changes of clock counted, or nothing.
std::vector<Cell> counted_cells(const PlanResult& plan, const Totals& base) {
  if (!plan.counted) return {Cell(), Cell()};
  return {change_pct(plan.counted->time_s, base.time_s),
          change_pct(plan.counted->energy_j, base.energy_j)};
}

// The table of plans without rows, with those columns that a terminal needs for these plans.
bool has_some_odds(const Exploration& found) {
  return std::ranges::any_of(found.plans,
                             [](const PlanResult& plan) { return plan.odds_in_time.has_value(); });
}

OutputTable empty_plans_table(const Exploration& found, Counted counted) {
  const bool none_counted = std::ranges::none_of(found.plans, is_counted);
  const bool no_marks =
      found.baseline_marks.empty() &&
      std::ranges::all_of(found.plans, [](const PlanResult& plan) { return plan.marks.empty(); });
  // Of plans that were found the gap says whether they are proven best.
  const bool all_found = std::ranges::all_of(found.plans, [](const PlanResult& plan) {
    const std::string status = status_text(plan.status, plan.marks);
    return plan.found() &&
           (status == name_of(SolveStatus::optimal) || status == name_of(SolveStatus::feasible));
  });
  std::vector<Column> columns{{.key = "status", .for_programs = all_found, .room = Room::needed}};
  columns.insert(columns.end(), totals_columns.begin(), totals_columns.end());
  const bool apart = counted == Counted::apart;
  const Room expected = some_is_optimistic(found) ? Room::needed : Room::detail;
  columns.insert(columns.end(),
                 {{"time_change_low_pct", "low", 2, true},
                  {"time_change_high_pct", "high", 2, true},
                  {"time_change_expected_pct", "expected", 2, true},
                  {.key = "energy_change_low_pct", .for_programs = true},
                  {.key = "energy_change_high_pct", .for_programs = true},
                  {.key = "energy_range", .title = "90 %", .for_people = true, .whole = true},
                  {"odds_in_time_pct", "odds %", 0, !has_some_odds(found)},
                  {"energy_change_expected_pct", "expected", 2, false, expected},
                  {.key = "cost", .for_programs = true},
                  {"cost_change_pct", "cost %", 2, !asked_prices(found)},
                  {"average_power_w", "mean W", 1, true},
                  {.key = "clock_switches", .for_programs = true},
                  {"clock_switches_per_s", "changes/s", 0, apart, Room::detail},
                  {"counted_time_change_pct", "counted: time %", 2, apart || none_counted},
                  {"counted_energy_change_pct", "energy %", 2, apart || none_counted},
                  {"gap_pct", "gap %", 3, false, Room::detail},
                  {.key = "solve_time_s", .for_programs = true},
                  {.key = "clocks", .room = Room::needed},
                  {.key = "notes", .for_programs = no_marks, .room = Room::needed}});
  return keyed_table(found, std::move(columns));
}

}  // namespace

std::string clocks_text(const ClockGrid& grid, std::span<const ClockId> clocks) {
  const std::set<ClockId> different(clocks.begin(), clocks.end());
  return different.size() == 1 ? grid.label(*different.begin())
                               : fmt::format("{} clocks", different.size());
}

std::optional<Prices> asked_prices(const Exploration& found) {
  for (const PlanResult& plan : found.plans) {
    if (const auto* cost = std::get_if<LeastCost>(&plan.question.goal)) return cost->prices;
  }
  return std::nullopt;
}

std::string status_text(SolveStatus status, std::span<const Mark> marks) {
  const bool out_of_reach =
      std::ranges::find(marks, MarkKind::limit_not_reached, &Mark::kind) != marks.end();
  return std::string(out_of_reach ? name_of(MarkKind::limit_not_reached) : name_of(status));
}

OutputTable plans_table(const Exploration& found, Counted where) {
  OutputTable table = empty_plans_table(found, where);
  constexpr std::size_t columns = 29;
  const Totals& base = found.baseline.total;
  const std::optional<Prices> prices = asked_prices(found);
  const auto add_cost = [&](std::vector<Cell>& row, const Totals& total) {
    if (!prices) return row.resize(row.size() + 2);
    const double cost = prices->of(total.time_s, total.energy_j);
    row.insert(row.end(), {cost, change_pct(cost, prices->of(base.time_s, base.energy_j))});
  };
  std::vector<Cell> first = key_of_defaults();
  first.emplace_back(std::string("-"));
  add_totals(first, base, base);
  first.insert(first.end(), 8, std::monostate{});
  add_cost(first, base);
  first.insert(first.end(), {base.average_power_w(), std::int64_t{0}, 0.0});
  first.resize(columns - 2);
  first.emplace_back(found.grid.label(found.grid.default_clock()));
  first.emplace_back(kinds_text(found.baseline_marks));
  table.add_row(std::move(first));
  for (const PlanResult& plan : found.plans) {
    std::vector<Cell> row = plan_key(plan.question);
    row.emplace_back(status_text(plan.status, plan.marks));
    if (!plan.found()) {
      row.resize(columns);
    } else {
      const Totals& total = plan.sim.total;
      add_totals(row, total, base);
      const SavingInterval interval = plan.interval.value_or(SavingInterval{});
      row.insert(row.end(),
                 {interval.time.low_pct, interval.time.high_pct, interval.time.median_pct,
                  interval.energy.low_pct, interval.energy.high_pct,
                  range_cell(interval.energy.low_pct, interval.energy.high_pct),
                  odds_cell(plan.odds_in_time), interval.energy.median_pct});
      add_cost(row, total);
      row.insert(row.end(),
                 {total.average_power_w(), static_cast<std::int64_t>(total.clock_switches),
                  switches_per_s(total)});
      const std::vector<Cell> counted = counted_cells(plan, base);
      row.insert(row.end(), counted.begin(), counted.end());
      row.insert(row.end(),
                 {100.0 * plan.gap_frac, plan.solve_time_s,
                  clocks_text(found.grid, plan.plan.clock_of_site), kinds_text(plan.marks)});
    }
    table.add_row(std::move(row));
  }
  return table;
}

OutputTable counted_table(const Exploration& found) {
  OutputTable table = keyed_table(found, {{"clock_switches_per_s", "changes/s", 0},
                                          {"counted_time_change_pct", "counted: time %", 2},
                                          {"counted_energy_change_pct", "energy %", 2}});
  for (const PlanResult& plan : found.plans) {
    if (!is_counted(plan)) continue;
    std::vector<Cell> row = plan_key(plan.question);
    row.emplace_back(switches_per_s(plan.sim.total));
    const std::vector<Cell> counted = counted_cells(plan, found.baseline.total);
    row.insert(row.end(), counted.begin(), counted.end());
    table.add_row(std::move(row));
  }
  return table;
}

OutputTable notes_table(const Exploration& found) {
  OutputTable table = keyed_table(found, {{"note"}, {"reason"}});
  const auto add = [&](const std::vector<Cell>& key, const std::vector<Mark>& marks) {
    for (const Mark& mark : marks) {
      std::vector<Cell> row = key;
      row.insert(row.end(), {std::string(name_of(mark.kind)), mark.reason});
      table.add_row(std::move(row));
    }
  };
  add(key_of_defaults(), found.baseline_marks);
  for (const PlanResult& plan : found.plans) add(plan_key(plan.question), plan.marks);
  return table;
}

OutputTable passes_table(const Exploration& found) {
  std::vector<Column> columns{{"pass"}};
  columns.insert(columns.end(), totals_columns.begin(), totals_columns.end());
  OutputTable table = keyed_table(found, std::move(columns));
  for (const PlanResult& plan : found.plans) {
    for (std::size_t p = 0; p < plan.sim.by_pass.size(); ++p) {
      if (plan.sim.by_pass[p].launches == 0) continue;
      std::vector<Cell> row = plan_key(plan.question);
      row.emplace_back(std::string(name_of(static_cast<Pass>(p))));
      add_totals(row, plan.sim.by_pass[p], found.baseline.by_pass[p]);
      table.add_row(std::move(row));
    }
  }
  return table;
}

OutputTable kernels_table(const Trace& trace, const Exploration& found) {
  std::vector<Column> columns{{"kernel"}, {"label"}, {"clock", "clock mem/core"}};
  columns.insert(columns.end(), totals_columns.begin(), totals_columns.end());
  OutputTable table = keyed_table(found, std::move(columns));
  for (const PlanResult& plan : found.plans) {
    if (!plan.found()) continue;
    const std::vector<std::string> clocks = clocks_of_kernels(trace, found.grid, plan.plan);
    for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
      std::vector<Cell> row = plan_key(plan.question);
      row.insert(row.end(), {trace.kernels[k].name, trace.kernels[k].label, clocks[k]});
      add_totals(row, plan.sim.by_kernel[k], found.baseline.by_kernel[k]);
      table.add_row(std::move(row));
    }
  }
  return table;
}

namespace {

// Launches in a row that share a clock.
struct Stretch {
  std::string first, last;  ///< kernels
  ClockId clock;
  std::uint64_t repeats = 1;   ///< of a part of a block; whole blocks in a row are one stretch
  std::uint64_t launches = 0;  ///< of an iteration
  double time_s = 0.0, energy_j = 0.0;
};

void append(Stretch& stretch, const Stretch& next) {
  stretch.last = next.last;
  stretch.launches += next.launches;
  stretch.time_s += next.time_s;
  stretch.energy_j += next.energy_j;
}

// The stretches of one segment of the trace.
std::vector<Stretch> stretches(const Trace& trace, const Exploration& found, const Segment& segment,
                               std::span<const ClockId> clocks) {
  std::vector<Stretch> list;
  for (std::size_t i = 0; i < segment.launches.size(); ++i) {
    const std::size_t kernel = index(segment.launches[i]);
    const std::string& name = trace.kernels[kernel].name;
    const OperatingPoint& point = found.cells[kernel * found.grid.size() + index(clocks[i])];
    const Stretch launch{.first = name,
                         .last = name,
                         .clock = clocks[i],
                         .repeats = segment.repeat,
                         .launches = segment.repeat,
                         .time_s = segment.repeat * point.time_s,
                         .energy_j = segment.repeat * point.energy_j};
    if (i > 0 && list.back().clock == launch.clock) {
      append(list.back(), launch);
    } else {
      list.push_back(launch);
    }
  }
  if (list.size() == 1) list.front().repeats = 1;
  return list;
}

std::vector<Stretch> stretches(const Trace& trace, const Exploration& found, const Plan& plan) {
  std::vector<Stretch> list;
  std::size_t site = 0;
  for (const Segment& segment : plan.segments_of(trace)) {
    const std::span<const ClockId> clocks(plan.clock_of_site.data() + site,
                                          segment.launches.size());
    site += segment.launches.size();
    for (const Stretch& next : stretches(trace, found, segment, clocks)) {
      const bool goes_on = !list.empty() && list.back().clock == next.clock &&
                           list.back().repeats == 1 && next.repeats == 1;
      if (goes_on) {
        append(list.back(), next);
      } else {
        list.push_back(next);
      }
    }
  }
  return list;
}

}  // namespace

OutputTable segments_table(const Trace& trace, const Exploration& found) {
  const bool one_slack = std::ranges::all_of(found.plans, [&](const PlanResult& plan) {
    return slack_cell(plan.question.goal) == slack_cell(found.plans.front().question.goal);
  });
  OutputTable table({{"goal"},
                     {"slack_pct", "slack %", 1, one_slack},
                     {"first_kernel", "from"},
                     {"last_kernel", "to"},
                     {"repeats"},
                     {"launches"},
                     {"clock", "clock mem/core"},
                     {"time_s", "time s", 4},
                     {"energy_j", "energy J", 1}});
  for (const PlanResult& plan : found.plans) {
    if (plan.question.granularity != Granularity::automatic || !plan.found()) continue;
    for (const Stretch& s : stretches(trace, found, plan.plan)) {
      table.add_row({name_of(plan.question.goal), slack_cell(plan.question.goal), s.first, s.last,
                     static_cast<std::int64_t>(s.repeats), static_cast<std::int64_t>(s.launches),
                     found.grid.label(s.clock), s.time_s, s.energy_j});
    }
  }
  return table;
}

}  // namespace rubato
