#include "tools/commands/plans/captured_tables.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "common/version.hpp"
#include "tools/terminal/exploration_tables.hpp"

namespace rubato {

// Only launches that take a clock count.
std::string plan_clocks_text(const GraphExploration& found, const GraphPlanResult& result) {
  std::vector<ClockId> clocks;
  for (const PlanClock& row : plan_clocks(*found.model, result)) clocks.push_back(row.clock);
  return clocks_text(found.planner->grid(), clocks);
}

std::optional<Prices> asked_prices(const GraphExploration& found) {
  for (const GraphPlanOutcome& outcome : found.plans) {
    if (const auto prices = outcome.prices()) return prices;
  }
  return std::nullopt;
}

std::string goal_name(const GraphPlanOutcome& outcome) { return name_of(outcome.asked_goal()); }

namespace {

// Whether a plan was played with what changes of clock take: then columns say what two marks do.
bool any_counted(const GraphExploration& found) {
  return std::ranges::any_of(
      found.plans, [](const GraphPlanOutcome& outcome) { return outcome.counted.has_value(); });
}

OutputTable empty_plans_table(const GraphExploration& found, bool has_notes) {
  const bool prices = asked_prices(found).has_value(), played = any_counted(found);
  const bool goals = std::ranges::any_of(
      found.plans, [](const GraphPlanOutcome& outcome) { return outcome.goal.has_value(); });
  std::vector<Column> columns{
      {"granularity"},
      {.key = "goal", .for_programs = !goals},
      {"slack_pct", "slack %", 1},
      {.key = "status", .for_programs = true},
      {.key = "time_s", .for_programs = true},
      {"time_change_pct", "time %", 2},
      {.key = "time_change_low_pct", .for_programs = true},
      {.key = "time_change_high_pct", .for_programs = true},
      {.key = "energy_j", .for_programs = true},
      {"energy_change_pct", "energy %", 2},
      {.key = "energy_change_low_pct", .for_programs = true},
      {.key = "energy_change_high_pct", .for_programs = true},
      {.key = "energy_range", .title = "90 %", .for_people = true, .whole = true},
      {"odds_in_time_pct", "odds %", 0},
      {.key = "cost", .for_programs = true},
      {"cost_change_pct", "cost %", 2, !prices},
      {"bound_change_pct", "bound %", 2, false, Room::spare},
      {"gap_pct", "gap %", 2, false, Room::detail},
      {.key = "clocks", .room = Room::needed},
      {.key = "comm_sms",
       .title = "comm SMs",
       .decimals = 0,
       .for_programs = found.comm_sms.empty()},
      {"changes_per_s", "changes/s", 0, played, Room::spare}};
  if (played) {
    columns.insert(
        columns.end(),
        {{.key = "changes", .decimals = 0, .room = Room::spare, .for_people = true},
         {.key = "late", .decimals = 0, .room = Room::spare, .for_people = true},
         {.key = "played_energy", .title = "played %", .decimals = 2, .for_people = true},
         {.key = "played_time", .title = "time %", .decimals = 2, .for_people = true},
         {.key = "deadline", .room = Room::needed, .for_people = true}});
  }
  columns.push_back({.key = "notes", .for_programs = true});
  if (has_notes)
    columns.push_back({.key = "more", .title = "notes", .room = Room::needed, .for_people = true});
  return OutputTable(std::move(columns));
}

// Notes of a plan that no column of the table says.
std::string notes_beside(const GraphPlanOutcome& outcome) {
  std::vector<Mark> marks = outcome.marks;
  if (outcome.counted) std::erase_if(marks, is_said_by_playing);
  return kinds_text(marks);
}

void add_played(std::vector<Cell>& row, const GraphPlanOutcome& outcome) {
  if (!outcome.counted) {
    row.insert(row.end(), 5, Cell());
    return;
  }
  const CountedChanges& counted = *outcome.counted;
  row.insert(row.end(), {static_cast<std::int64_t>(counted.clock_changes),
                         static_cast<std::int64_t>(counted.late_launches),
                         percent * counted.change.energy_frac, percent * counted.change.time_frac,
                         std::string(deadline_text(outcome))});
}

}  // namespace

bool is_said_by_playing(const Mark& mark) {
  return mark.kind == MarkKind::changes_ignored || mark.kind == MarkKind::slack_missed;
}

std::string_view deadline_text(const GraphPlanOutcome& outcome) {
  if (outcome.goal) return "-";
  return outcome.counted->in_time ? "kept" : "missed";
}

OutputTable captured_plans_table(const GraphExploration& found) {
  const std::optional<Prices> prices = asked_prices(found);
  const double gpus = static_cast<double>(found.run->graph.gpus().size());
  const auto cost_of = [&](const GraphRun& run) {
    return prices->of(run.span_s, run.total_energy_j, gpus);
  };
  const bool has_notes = std::ranges::any_of(
      found.plans, [&](const GraphPlanOutcome& outcome) { return !notes_beside(outcome).empty(); });
  OutputTable table = empty_plans_table(found, has_notes);
  const GraphRun& baseline = found.planner->baseline();
  const double default_j = baseline.total_energy_j;
  for (const GraphPlanOutcome& outcome : found.plans) {
    const GraphPlanResult& r = outcome.result;
    const auto cell = [&](double value) { return r.found() ? Cell(value) : Cell(); };
    const bool has_gap =
        r.lower_bound_j > 0.0 || (outcome.goal && r.status != SolveStatus::time_limit);
    std::vector<Cell> row{
        std::string(name_of(r.question.grain)),
        goal_name(outcome),
        percent * r.question.slack_frac,
        status_text(r.status, outcome.marks),
        cell(r.run.span_s),
        cell(percent * outcome.change.time_frac),
        cell(percent * outcome.interval.low.time_frac),
        cell(percent * outcome.interval.high.time_frac),
        cell(r.run.total_energy_j),
        cell(percent * outcome.change.energy_frac),
        cell(percent * outcome.interval.low.energy_frac),
        cell(percent * outcome.interval.high.energy_frac),
        r.found() ? range_cell(percent * outcome.interval.low.energy_frac,
                               percent * outcome.interval.high.energy_frac)
                  : Cell(),
        odds_cell(outcome.odds_in_time),
        prices && r.found() ? Cell(cost_of(r.run)) : Cell(),
        prices && r.found() ? Cell(change_pct(cost_of(r.run), cost_of(baseline))) : Cell(),
        r.lower_bound_j > 0.0 ? cell(change_pct(r.lower_bound_j, default_j)) : Cell(),
        has_gap ? cell(percent * r.gap_frac) : Cell(),
        r.found() ? Cell(plan_clocks_text(found, r)) : Cell(),
        outcome.comm_sms ? Cell(*outcome.comm_sms) : Cell(),
        r.found() ? Cell(changes_per_s(r)) : Cell()};
    if (any_counted(found)) add_played(row, outcome);
    row.emplace_back(kinds_text(outcome.marks));
    if (has_notes) row.emplace_back(notes_beside(outcome));
    table.add_row(std::move(row));
  }
  return table;
}

OutputTable captured_kernels_table(const GraphExploration& found) {
  OutputTable table({{"granularity"},
                     {.key = "goal", .for_programs = true},
                     {"slack_pct", "slack %", 1},
                     {"rank"},
                     {"device"},
                     {"pass"},
                     {"kernel"},
                     {"clock"},
                     {"launches"},
                     {.key = "time_s", .for_programs = true},
                     {.key = "time_ms", .title = "time ms", .for_people = true},
                     {"energy_j", "energy J"}});
  const ExecutionGraph& graph = found.run->graph;
  for (const GraphPlanOutcome& outcome : found.plans) {
    if (!outcome.result.found()) continue;
    for (const PlanClock& row : plan_clocks(*found.model, outcome.result)) {
      const GraphGpu& gpu = graph.gpus()[index(row.gpu)];
      table.add_row({std::string(name_of(outcome.result.question.grain)), goal_name(outcome),
                     percent * outcome.result.question.slack_frac,
                     static_cast<std::int64_t>(gpu.rank), static_cast<std::int64_t>(gpu.device),
                     std::string(name_of(row.pass)), graph.kernels()[index(row.kernel)].name,
                     found.planner->grid().label(row.clock),
                     static_cast<std::int64_t>(row.launches), row.time_s, ms_per_s * row.time_s,
                     row.energy_j});
    }
  }
  return table;
}

namespace {

constexpr double us_per_ns = 1e-3;
constexpr std::size_t most_collectives = 8;  // that a person is shown

}  // namespace

OutputTable collectives_table(const GraphExploration& found, bool for_people) {
  OutputTable table({{"collective"},
                     {"kind"},
                     {"ranks"},
                     {"last_rank", "last rank"},
                     {"start_skew_us", "skew us", 0},
                     {"transfer_us", "transfer us", 0},
                     {"end_spread_us", "ends apart us", 0}});
  std::vector<const JoinedCollective*> rows;
  for (const JoinedCollective& one : found.run->ranks.collectives) rows.push_back(&one);
  if (for_people) {
    std::ranges::stable_sort(rows, std::greater{}, &JoinedCollective::start_skew_ns);
    rows.resize(std::min(rows.size(), most_collectives));
  }
  for (const JoinedCollective* one : rows) {
    table.add_row({one->name, std::string(name_of(one->kind)),
                   static_cast<std::int64_t>(one->members.size()),
                   static_cast<std::int64_t>(last_rank(*found.run, *one)),
                   us_per_ns * static_cast<double>(one->start_skew_ns()),
                   us_per_ns * static_cast<double>(one->transfer_ns()),
                   us_per_ns * static_cast<double>(one->end_spread_ns())});
  }
  return table;
}

std::string late_ranks_note(const GraphExploration& found) {
  struct Late {
    std::uint32_t rank = 0;
    std::size_t collectives = 0;
    std::int64_t waited_ns = 0;
  };
  const std::vector<JoinedCollective>& all = found.run->ranks.collectives;
  if (all.empty()) return "";
  std::map<std::uint32_t, Late> by_rank;
  for (const JoinedCollective& one : all) {
    const std::uint32_t rank = last_rank(*found.run, one);
    Late& late = by_rank[rank];
    late.rank = rank;
    ++late.collectives;
    late.waited_ns += one.start_skew_ns();
  }
  std::vector<Late> rows;
  for (const auto& [rank, late] : by_rank) rows.push_back(late);
  std::ranges::stable_sort(rows, std::greater{}, &Late::waited_ns);
  std::string text = fmt::format("{} collectives", all.size());
  if (all.size() > most_collectives)
    text += fmt::format(", the {} with the longest waits above (--json: all)", most_collectives);
  text += ". Who came last:";
  for (const Late& late : rows) {
    text += fmt::format("{} rank {} in {} (the first one there waited {:.3g} ms{})",
                        &late == &rows.front() ? "" : ",", late.rank, late.collectives,
                        1e-6 * static_cast<double>(late.waited_ns),
                        late.collectives > 1 ? " in all" : "");
  }
  return text + ".\n";
}

namespace {

OutputTable table_of_run() {
  return OutputTable({{"program_version"},
                      {"trace"},
                      {"gpu"},
                      {"captured_clock"},
                      {"captured_clock_source"},
                      {"power_limit_w"},
                      {"host_power_w"},
                      {"price_per_kwh"},
                      {"price_per_gpu_hour"},
                      {"pue"},
                      {"ranks"},
                      {"gpus"},
                      {"activities"},
                      {"arcs_read"},
                      {"arcs_inferred"},
                      {"captured_s"},
                      {"reproduced_s"},
                      {"default_s"},
                      {"default_j"},
                      {"measured_pct"},
                      {"anchored_pct"},
                      {"guessed_split_pct"},
                      {"fixed_pct"}});
}

}  // namespace

OutputTable captured_run_table(const GraphRequest& request, const GraphExploration& found) {
  OutputTable table = table_of_run();
  const std::optional<Prices> prices = asked_prices(found);
  const auto price = [&](double Prices::*value) {
    return prices ? Cell((*prices).*value) : Cell();
  };
  const ExecutionGraph& graph = found.run->graph;
  const ArcCounts arcs = graph.count_arcs();
  std::int64_t read = 0, inferred = 0;
  for (std::size_t kind = 0; kind < arc_kinds; ++kind) {
    read += static_cast<std::int64_t>(arcs.read[kind]);
    inferred += static_cast<std::int64_t>(arcs.inferred[kind]);
  }
  const GraphCoverage& c = found.coverage;
  const double total_s = std::max(c.total_s(), 1e-12);
  const GraphRun& baseline = found.planner->baseline();
  table.add_row({std::string(program_version()),
                 request.files.front(),
                 found.model->spec().name,
                 request.captured_clock,
                 std::string(name_of(request.clock_source)),
                 found.model->power_limit_w(),
                 found.model->host_power_w(),
                 price(&Prices::per_kwh),
                 price(&Prices::per_gpu_hour),
                 price(&Prices::pue),
                 static_cast<std::int64_t>(found.run->rank_of_capture.size()),
                 static_cast<std::int64_t>(graph.gpus().size()),
                 static_cast<std::int64_t>(graph.size()),
                 read,
                 inferred,
                 found.captured_span_s,
                 found.reproduced_span_s,
                 baseline.span_s,
                 baseline.total_energy_j,
                 percent * c.measured_s / total_s,
                 percent * c.anchored_s / total_s,
                 percent * c.guessed_split_s / total_s,
                 percent * c.fixed_s / total_s});
  return table;
}

OutputTable comm_sms_table(const GraphExploration& found) {
  OutputTable table({{"comm_sms", "comm SMs", 0},
                     {"default_time_change_pct", "time %", 2},
                     {"default_energy_change_pct", "energy %", 2},
                     {"plans"}});
  if (found.comm_sms.empty()) return table;
  const GraphRun& baseline = found.planner->baseline();
  const auto add = [&](const std::optional<double>& comm_sms, const GraphPlanner& planner) {
    const auto chosen = std::ranges::count_if(found.plans, [&](const GraphPlanOutcome& outcome) {
      return outcome.result.found() && outcome.comm_sms == comm_sms;
    });
    const ClockId clock = planner.grid().default_clock();
    const auto defaults = std::ranges::find(planner.uniform(), clock, &UniformRun::clock);
    table.add_row({comm_sms ? Cell(*comm_sms) : Cell(),
                   change_pct(defaults->span_s, baseline.span_s),
                   change_pct(defaults->energy_j, baseline.total_energy_j),
                   static_cast<std::int64_t>(chosen)});
  };
  add(std::nullopt, *found.planner);
  for (const CommSmsChoice& choice : found.comm_sms) add(choice.comm_sms, *choice.planner);
  return table;
}

std::string comm_sms_text(const GraphPlanOutcome& outcome) {
  return outcome.comm_sms ? fmt::format(", collectives beside compute on {} SMs", *outcome.comm_sms)
                          : "";
}

std::string comm_sms_note(const GraphExploration& found) {
  if (found.comm_sms.empty()) return "";
  std::string text = "Collectives beside compute, with their captured SMs:";
  constexpr std::size_t most = 6;
  for (std::size_t i = 0; i < std::min(most, found.overlapping.size()); ++i) {
    const OverlappingCollective& one = found.overlapping[i];
    text += fmt::format("{} {} ({})", i > 0 ? "," : "",
                        printable(found.run->graph.kernels()[index(one.kernel)].name),
                        one.captured_sms);
  }
  if (found.overlapping.size() > most)
    text += fmt::format(" and {} more", found.overlapping.size() - most);
  return text + fmt::format(
                    ". Table comm_sms: the default clocks with them on so many SMs, and how many "
                    "plans take that. NCCL_MIN_CTAS and NCCL_MAX_CTAS set it. What SMs change is "
                    "known of {}; elsewhere it is a guess.\n",
                    CollectiveSharing::measured_in);
}

}  // namespace rubato
