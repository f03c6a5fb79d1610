#include "tools/commands/plans/trace_tables.hpp"

#include <algorithm>
#include <array>
#include <variant>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/version.hpp"
#include "tools/terminal/screen.hpp"

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

// What the times of kernels rest on, as shares of the default time in percent.
std::array<double, coefficient_sources> coverage_pct(const Exploration& found) {
  std::array<double, coefficient_sources> share_pct{};
  for (std::size_t k = 0; k < found.coefficient_sources.size(); ++k)
    share_pct[static_cast<std::size_t>(found.coefficient_sources[k])] +=
        percent * found.baseline.by_kernel[k].time_s / found.baseline.total.time_s;
  return share_pct;
}

std::optional<Prices> prices_of(const Exploration& found) {
  for (const PlanResult& plan : found.plans) {
    if (const auto* cost = std::get_if<LeastCost>(&plan.question.goal)) return cost->prices;
  }
  return std::nullopt;
}

OutputTable run_table(std::string_view trace, const ExplorationInput& input,
                      const Exploration& found) {
  OutputTable table({{"program_version"},
                     {"trace"},
                     {"gpu"},
                     {"power_limit_w"},
                     {"host_power_w"},
                     {"price_per_kwh"},
                     {"price_per_gpu_hour"},
                     {"pue"},
                     {"clocks"},
                     {"default_clock"},
                     {"default_time_s"},
                     {"default_energy_j"},
                     {"measured_pct"},
                     {"anchored_pct"},
                     {"scaled_pct"},
                     {"derived_pct"},
                     {"guessed_pct"}});
  const std::optional<Prices> prices = prices_of(found);
  const auto price = [&](double Prices::*value) {
    return prices ? Cell((*prices).*value) : Cell();
  };
  const std::array<double, coefficient_sources> share_pct = coverage_pct(found);
  const auto share = [&](CoefficientSource source) {
    return share_pct[static_cast<std::size_t>(source)];
  };
  table.add_row({std::string(program_version()), std::string(trace), input.spec.name,
                 input.power_limit_w.value_or(input.spec.power_limit.limit_w), input.host_power_w,
                 price(&Prices::per_kwh), price(&Prices::per_gpu_hour), price(&Prices::pue),
                 static_cast<std::int64_t>(found.grid.size()),
                 found.grid.label(found.grid.default_clock()), found.baseline.total.time_s,
                 found.baseline.total.energy_j, share(CoefficientSource::measured),
                 share(CoefficientSource::anchored), share(CoefficientSource::scaled),
                 share(CoefficientSource::derived), share(CoefficientSource::guessed)});
  return table;
}

OutputTable slack_steps_table(std::span<const SlackStep> steps, const Totals& baseline,
                              const std::optional<Prices>& prices) {
  OutputTable table({{"granularity"},
                     {"slack_pct"},
                     {"time_change_pct"},
                     {"energy_change_pct"},
                     {"cost_change_pct"}});
  for (const SlackStep& step : steps) {
    std::vector<Cell> row{std::string(name_of(step.granularity)), percent * step.slack_frac};
    if (step.least) {
      const Cost& least = *step.least;
      row.insert(row.end(), {change_pct(least.time_s, baseline.time_s),
                             change_pct(least.energy_j, baseline.energy_j)});
      if (prices)
        row.emplace_back(change_pct(prices->of(least.time_s, least.energy_j),
                                    prices->of(baseline.time_s, baseline.energy_j)));
    }
    row.resize(5);
    table.add_row(std::move(row));
  }
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
