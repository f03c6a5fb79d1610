#include "explorer/results/trace_rows.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "explorer/results/answers.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

// Shares of the default time by what is known of the kernels.
void add_shares(Columns& columns, const Exploration& found) {
  std::array<CompensatedSum, coefficient_sources> of_source;
  CompensatedSum all_s;
  for (std::size_t k = 0; k < found.coefficient_sources.size(); ++k) {
    const double time_s = found.baseline.by_kernel[k].time_s;
    all_s.add(time_s);
    of_source[static_cast<std::size_t>(found.coefficient_sources[k])].add(time_s);
  }
  constexpr std::array<std::string_view, coefficient_sources> names{
      "measured_pct", "anchored_pct", "scaled_pct", "derived_pct", "guessed_pct"};
  for (std::size_t i = 0; i < names.size(); ++i)
    columns.emplace_back(names[i], percent * of_source[i].value() / all_s.value());
  columns.emplace_back("fixed_pct", 0.0);
  columns.emplace_back("guessed_split_pct", 0.0);
}

void add_trace_clocks(RunRows& rows, const ExplorationInput& input, const Exploration& found) {
  const std::size_t count = found.grid.size();
  const std::vector<std::uint64_t> launches = launch_counts(input.trace);
  for (std::size_t c = 0; c < count; ++c) {
    const auto id = id_at<ClockId>(c);
    StoredClock& clock = rows.clocks.emplace_back();
    clock.label = found.grid.label(id);
    clock.mem_mhz = input.spec.mem_states[index(found.grid[id].mem)].mem_mhz;
    clock.core_mhz = found.grid[id].core_mhz;
    clock.power_limit_w = found.grid[id].power_limit_w;
    clock.is_default = id == found.grid.default_clock();
    if (found.cells.empty()) continue;
    CompensatedSum time_s, energy_j;
    for (std::size_t k = 0; k < launches.size(); ++k) {
      const OperatingPoint& cell = found.cells[k * count + c];
      time_s.add(static_cast<double>(launches[k]) * cell.time_s);
      energy_j.add(static_cast<double>(launches[k]) * cell.energy_j);
    }
    clock.time_s = time_s.value();
    clock.energy_j = energy_j.value() + input.host_power_w * time_s.value();
  }
}

void add_kernels(RunRows& rows, const ExplorationInput& input, const Exploration& found) {
  const std::size_t clocks = found.grid.size();
  const std::vector<std::uint64_t> launches = launch_counts(input.trace);
  for (std::size_t k = 0; k < input.trace.kernels.size(); ++k) {
    const Kernel& kernel = input.trace.kernels[k];
    const Totals& totals = found.baseline.by_kernel[k];
    StoredUnit& unit = rows.units.emplace_back();
    unit.columns = {{"pass", std::string(name_of(kernel.pass))},
                    {"name", kernel.name},
                    {"label", kernel.label},
                    {"class", std::string(name_of(kernel.kind))},
                    {"dtype", std::string(name_of(kernel.dtype))},
                    {"launches", sql_value(launches[k])},
                    {"flops", sql_value(kernel.flops)},
                    {"dram_bytes", sql_value(kernel.dram_bytes)},
                    {"source", std::string(name_of(found.coefficient_sources[k]))},
                    {"default_time_s", totals.time_s},
                    {"default_energy_j", totals.energy_j}};
    if (found.cells.empty()) continue;
    const auto first = found.cells.begin() + static_cast<std::ptrdiff_t>(k * clocks);
    unit.cells = rows.cells.size();
    rows.cells.push_back(stored_cells({first, first + static_cast<std::ptrdiff_t>(clocks)}));
  }
}

// Stretches of one pass and clock; a repeated block is listed once.
class Stretches {
 public:
  Stretches(const ExplorationInput& input, const Exploration& found, const Plan& plan)
      : input_(input), found_(found), plan_(plan), sites_(sites(input.trace, plan)) {}

  [[nodiscard]] std::vector<SegmentRow> list() {
    std::optional<std::size_t> block;
    for (std::size_t i = 0; i < sites_.size(); ++i) {
      const std::size_t now = sites_[i].segment;
      if (block && now != *block) end_block();
      add(i, !block || now != *block);
      block = now;
    }
    return std::move(list_);
  }

 private:
  void add(std::size_t i, bool begins_block) {
    const std::size_t kernel = index(sites_[i].kernel), clock = index(plan_.clock_of_site[i]);
    const Pass pass = input_.trace.kernels[kernel].pass;
    if (pass != pass_) seen_.clear();
    one_pass_ = begins_block || (one_pass_ && pass == pass_);
    if (begins_block || pass != pass_ || clock != list_.back().clock) {
      const Segment& of = plan_.segments_of(input_.trace)[sites_[i].segment];
      SegmentRow& begun = list_.emplace_back();
      begun.clock = clock;
      begun.block = of.name;
      begun.repeats = repeats_ = of.repeat;
      begun.pass = name_of(pass);
      begun.first_unit = kernel;
      begun.first_index = seen_[kernel];
    }
    pass_ = pass;
    SegmentRow& now = list_.back();
    const OperatingPoint& cell = found_.cells[kernel * found_.grid.size() + clock];
    ++now.launches;
    now.time_s += cell.time_s;
    now.energy_j += cell.energy_j;
    ++seen_[kernel];
    ++in_block_[kernel];
  }

  // What the other repeats launch comes before the next block of the pass.
  void end_block() {
    if (one_pass_) {
      for (const auto& [kernel, count] : in_block_) seen_[kernel] += (repeats_ - 1) * count;
    }
    in_block_.clear();
  }

  const ExplorationInput& input_;
  const Exploration& found_;
  const Plan& plan_;
  std::vector<Site> sites_;
  std::vector<SegmentRow> list_;
  std::map<std::size_t, std::uint64_t> seen_, in_block_;  // launches by kernel
  std::uint64_t repeats_ = 1;
  Pass pass_ = Pass::unknown;
  bool one_pass_ = true;
};

// A kernel of several clocks takes at each its part of what the simulator says of it.
std::vector<PlanUnitRow> kernels_by_clock(const ExplorationInput& input, const Exploration& found,
                                          const PlanResult& plan) {
  std::map<std::pair<std::size_t, std::size_t>, PlanUnitRow> by_clock;
  std::vector<PlanUnitRow> all(input.trace.kernels.size());
  const std::vector<Site> launches = sites(input.trace, plan.plan);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const std::size_t kernel = index(launches[i].kernel), clock = index(plan.plan.clock_of_site[i]);
    const std::uint64_t repeat = plan.plan.segments_of(input.trace)[launches[i].segment].repeat;
    const OperatingPoint& cell = found.cells[kernel * found.grid.size() + clock];
    PlanUnitRow& one = by_clock[{kernel, clock}];
    for (PlanUnitRow* sum : {&one, &all[kernel]}) {
      sum->launches += repeat;
      sum->time_s += static_cast<double>(repeat) * cell.time_s;
      sum->energy_j += static_cast<double>(repeat) * cell.energy_j;
    }
    one.unit = kernel;
    one.clock = clock;
  }
  std::vector<PlanUnitRow> list;
  for (const auto& [key, one] : by_clock) {
    PlanUnitRow& unit = list.emplace_back(one);
    const Totals& simulated = plan.sim.by_kernel[unit.unit];
    const PlanUnitRow& whole_kernel = all[unit.unit];
    const bool alone = unit.launches == whole_kernel.launches;
    unit.time_s = alone ? simulated.time_s : simulated.time_s * unit.time_s / whole_kernel.time_s;
    unit.energy_j =
        alone ? simulated.energy_j : simulated.energy_j * unit.energy_j / whole_kernel.energy_j;
  }
  return list;
}

bool wants_energy(const Goal& goal) {
  return std::holds_alternative<LeastWaste>(goal) || std::holds_alternative<LeastEnergy>(goal);
}

void add_found(Columns& columns, const Exploration& found, const PlanResult& plan) {
  const Totals &base = found.baseline.total, &planned = plan.sim.total;
  const Totals& applied = plan.counted ? *plan.counted : planned;
  StoredChanges changes{.defaults = {base.time_s, base.energy_j},
                        .planned = {planned.time_s, planned.energy_j},
                        .applied = {applied.time_s, applied.energy_j}};
  if (plan.interval) {
    changes.time = stored_interval(plan.interval->time);
    changes.energy = stored_interval(plan.interval->energy);
  }
  add_changes(columns, changes);
  columns.emplace_back("objective", plan.objective);
  columns.emplace_back("lower_bound", plan.lower_bound);
  columns.emplace_back("gap_pct", percent * plan.gap_frac);
  double applied_gap_frac = plan.gap_frac;
  if (plan.counted && wants_energy(plan.question.goal))
    applied_gap_frac = std::max(0.0, 1.0 - plan.lower_bound / applied.energy_j);
  columns.emplace_back("applied_gap_pct", percent * applied_gap_frac);
  columns.emplace_back("late_launches", sql_value(plan.sim.late_launches));
}

}  // namespace

std::vector<StoredFrontPoint> trace_fronts(const Exploration& found) {
  std::vector<StoredFrontPoint> list;
  for (const Front& front : found.fronts) {
    for (std::size_t i = 0; i < front.points.size(); ++i) {
      list.push_back({.granularity = std::string(name_of(front.granularity)),
                      .point = static_cast<std::int64_t>(i),
                      .time_s = front.points[i].time_s,
                      .energy_j = front.points[i].energy_j});
    }
  }
  return list;
}

RunRows trace_rows(const ExplorationInput& input, const Exploration& found) {
  const auto flag = [](bool value) { return SqlValue(std::int64_t{value}); };
  RunRows rows;
  rows.columns = {{"kind", std::string("trace")},
                  {"wall_time_s", found.wall_time_s},
                  {"interrupted", flag(found.interrupted)},
                  {"work", input.trace.name},
                  {"gpu", input.spec.name},
                  {"gpu_calibrated", flag(input.spec.calibrated)},
                  {"power_limit_w", input.power_limit_w.value_or(input.spec.power_limit.limit_w)},
                  {"host_power_w", input.host_power_w},
                  {"clock_grid", grid_name(input.spec, input.grid)},
                  {"gpus", std::int64_t{1}},
                  {"steps", std::int64_t{1}},
                  {"default_time_s", found.baseline.total.time_s},
                  {"default_energy_j", found.baseline.total.energy_j}};
  add_switching(rows.columns, input.switching);
  add_shares(rows.columns, found);
  const std::string trace = to_json(input.trace), spec = to_json(input.spec);
  rows.inputs = {{"trace", input.trace.name, content_hash(trace), trace},
                 {"gpu_spec", input.spec.name, content_hash(spec), spec}};
  rows.fit_errors.assign(input.spec.fit_errors.begin(), input.spec.fit_errors.end());
  rows.gpus = {{.label = "GPU"}};
  add_trace_clocks(rows, input, found);
  add_kernels(rows, input, found);
  rows.fronts = trace_fronts(found);
  rows.caveats = found.baseline_marks;
  rows.result_hash = hash_of(rows);
  return rows;
}

PlanRows trace_plan_rows(const ExplorationInput& input, const Exploration& found,
                         const PlanResult& plan) {
  PlanRows rows;
  rows.contender = contender_of(found, plan);
  add_goal(rows.columns, plan.question.goal);
  rows.columns.emplace_back("status", std::string(name_of(plan.status)));
  rows.columns.emplace_back("solve_time_s", plan.solve_time_s);
  if (const auto* waste = std::get_if<LeastWaste>(&plan.question.goal)) {
    rows.columns.emplace_back("deadline_s", (1.0 + waste->slack_frac + waste->tolerance_frac) *
                                                found.baseline.total.time_s);
  }
  if (plan.found()) {
    add_found(rows.columns, found, plan);
    rows.caveats = plan.marks;
    if (!plan.plan.clock_of_site.empty()) {
      if (rows.contender.clocks == 1)
        rows.columns.emplace_back("clock_id", sql_value(index(plan.plan.clock_of_site.front())));
      rows.units = kernels_by_clock(input, found, plan);
      rows.segments = Stretches(input, found, plan.plan).list();
    }
  }
  rows.result_hash = hash_of(rows);
  return rows;
}

std::vector<PlanRows> trace_plans_rows(const ExplorationInput& input, const Exploration& found) {
  std::vector<PlanRows> list;
  for (const PlanResult& plan : found.plans) list.push_back(trace_plan_rows(input, found, plan));
  return list;
}

std::int64_t store_trace(const std::filesystem::path& database, const ExplorationInput& input,
                         const Exploration& found, const RunRecord& record) {
  return store_run(database, trace_rows(input, found), trace_plans_rows(input, found), record);
}

}  // namespace rubato
