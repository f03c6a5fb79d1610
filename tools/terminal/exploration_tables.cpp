#include "tools/terminal/exploration_tables.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace rubato {

namespace {

std::vector<Cell> plan_key(const Question& question) {
  return {std::string(name_of(question.granularity)), std::string(name_of(question.aggregation)),
          name_of(question.goal)};
}

// Columns that say which plan a row belongs to, before `more`.
OutputTable keyed_table(std::vector<Column> more) {
  std::vector<Column> columns{{"granularity"}, {"aggregation"}, {"goal"}};
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

const std::vector<Column> totals_columns{{"time_s", "time s", 4},
                                         {"energy_j", "energy J", 1},
                                         {"time_change_pct", "time %", 2},
                                         {"energy_change_pct", "energy %", 2}};

}  // namespace

double change_pct(double value, double reference) { return 100.0 * (value / reference - 1.0); }

OutputTable plans_table(const Exploration& found) {
  std::vector<Column> columns{{"status"}};
  columns.insert(columns.end(), totals_columns.begin(), totals_columns.end());
  columns.insert(columns.end(), {{"time_change_low_pct", "low", 2},
                                 {"time_change_high_pct", "high", 2},
                                 {"energy_change_low_pct", "low", 2},
                                 {"energy_change_high_pct", "high", 2},
                                 {"average_power_w", "mean W", 1},
                                 {"clock_switches", "switches"},
                                 {"gap_pct", "gap %", 4},
                                 {"solve_time_ms", "solved in ms", 2}});
  OutputTable table = keyed_table(std::move(columns));
  const Totals& base = found.baseline.total;
  std::vector<Cell> first{std::string("iteration"), std::string("-"), std::string("default"),
                          std::string("-")};
  add_totals(first, base, base);
  first.insert(first.end(), 4, std::monostate{});
  first.insert(first.end(),
               {base.average_power_w(), std::int64_t{0}, std::monostate{}, std::monostate{}});
  table.add_row(std::move(first));
  for (const PlanResult& plan : found.plans) {
    std::vector<Cell> row = plan_key(plan.question);
    row.emplace_back(std::string(name_of(plan.status)));
    if (plan.plan.clock_of_site.empty()) {
      row.resize(16);
    } else {
      add_totals(row, plan.sim.total, base);
      const SavingInterval interval = plan.interval.value_or(SavingInterval{});
      row.insert(row.end(), {interval.time.low_pct, interval.time.high_pct, interval.energy.low_pct,
                             interval.energy.high_pct, plan.sim.total.average_power_w(),
                             static_cast<std::int64_t>(plan.sim.total.clock_switches),
                             100.0 * plan.gap_frac, 1e3 * plan.solve_time_s});
    }
    table.add_row(std::move(row));
  }
  return table;
}

OutputTable passes_table(const Exploration& found) {
  std::vector<Column> columns{{"pass"}};
  columns.insert(columns.end(), totals_columns.begin(), totals_columns.end());
  OutputTable table = keyed_table(std::move(columns));
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
  OutputTable table = keyed_table(std::move(columns));
  for (const PlanResult& plan : found.plans) {
    if (plan.plan.clock_of_site.empty()) continue;
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

// Of one segment of a plan.
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
  OutputTable table({{"goal"},
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
      table.add_row({name_of(plan.question.goal), s.first, s.last,
                     static_cast<std::int64_t>(s.repeats), static_cast<std::int64_t>(s.launches),
                     found.grid.label(s.clock), s.time_s, s.energy_j});
    }
  }
  return table;
}

std::string exploration_notes(const ExplorationInput& input, const Exploration& found) {
  std::array<double, 4> time_s{};
  double dropped_s = 0.0;
  std::size_t dropped = 0;
  for (std::size_t k = 0; k < found.coefficient_sources.size(); ++k) {
    const double kernel_s = found.baseline.by_kernel[k].time_s;
    time_s[static_cast<std::size_t>(found.coefficient_sources[k])] += kernel_s;
    if (!found.work_dropped[k]) continue;
    ++dropped;
    dropped_s += kernel_s;
  }
  const auto pct = [&](double part_s) { return 100.0 * part_s / found.baseline.total.time_s; };
  const auto share = [&](CoefficientSource source) {
    return pct(time_s[static_cast<std::size_t>(source)]);
  };
  std::string text = fmt::format(
      "Change is against {} on {} ({:.0f} W). Coverage by time: {:.1f} % of kernels measured, "
      "{:.1f} % anchored (captured time, modelled split), {:.1f} % derived from FLOPs and bytes, "
      "{:.1f} % guessed.\n",
      found.grid.label(found.grid.default_clock()), input.spec.title,
      input.power_limit_w.value_or(input.spec.power_limit.limit_w),
      share(CoefficientSource::measured), share(CoefficientSource::anchored),
      share(CoefficientSource::derived), share(CoefficientSource::guessed));
  if (dropped > 0) {
    text += fmt::format(
        "Work of {} kernels ({:.1f} % of the time) is not used: it would need more than the GPU's "
        "peak.\n",
        dropped, pct(dropped_s));
  }
  text += input.measured ? "Low and high: 90 % interval of the change when the plan is measured "
                           "again: choosing favours lucky measurements.\n"
                         : "Low and high: 90 % interval of the change, from models that fit as "
                           "well and the error on points held out.\n";
  if (found.interrupted) text += "Interrupted: the remaining questions were not answered.\n";
  return text;
}

}  // namespace rubato
