#include "explorer/results/stage_rows.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "explorer/results/answers.hpp"

namespace rubato {

namespace {

// What is not a choice is 0 in options and NULL in tables.
std::optional<double> if_chosen(double value) {
  return value > 0.0 ? std::optional(value) : std::nullopt;
}

/// The clocks that some pass may run at, in order.
class ClockIds {
 public:
  explicit ClockIds(const PipelineWork& work) : work_(work) {
    for (const PassType& type : work.types) {
      std::map<Key, std::uint32_t> seen;  // options may differ in the clocks of kernels only
      for (const ClockOption& option : type.options) {
        Key key = key_of(option);
        std::get<3>(key) = seen[key]++;
        ids_.emplace(key, 0);
      }
    }
    std::size_t next = 0;
    for (auto& [key, id] : ids_) id = next++;
    for (const PassType& type : work.types) {
      std::map<Key, std::uint32_t> seen;
      std::vector<std::size_t>& of_type = clock_of_.emplace_back();
      for (const ClockOption& option : type.options) {
        Key key = key_of(option);
        std::get<3>(key) = seen[key]++;
        of_type.push_back(ids_.at(key));
      }
    }
  }

  [[nodiscard]] std::size_t of(PassTypeId type, OptionId option) const {
    return clock_of_[index(type)][index(option)];
  }

  [[nodiscard]] std::vector<StoredClock> list() const {
    std::vector<StoredClock> list;
    for (const auto& [key, id] : ids_) {
      const auto& [mem_mhz, core_mhz, limit_w, another] = key;
      list.push_back({.label = label(key),
                      .mem_mhz = if_chosen(mem_mhz),
                      .core_mhz = core_mhz,
                      .power_limit_w = if_chosen(limit_w)});
    }
    for (const std::vector<std::size_t>& of_type : clock_of_)
      list[of_type.front()].is_default = true;
    return list;
  }

  [[nodiscard]] std::size_t size() const { return ids_.size(); }

  /// Every pass at one clock; nothing where some pass does not have it.
  [[nodiscard]] std::optional<PipelinePlan> everywhere(std::size_t clock) const {
    PipelinePlan plan;
    for (const PassTypeId type : work_.type_of_pass) {
      const auto& of_type = clock_of_[index(type)];
      const auto option = std::ranges::find(of_type, clock);
      if (option == of_type.end()) return std::nullopt;
      plan.option_of_pass.push_back(
          id_at<OptionId>(static_cast<std::size_t>(option - of_type.begin())));
    }
    return plan;
  }

 private:
  using Key = std::tuple<double, double, double, std::uint32_t>;
  static Key key_of(const ClockOption& option) {
    return {option.mem_mhz, option.core_mhz, option.power_limit_w, 0};
  }
  static std::string label(const Key& key) {
    const auto& [mem_mhz, core_mhz, limit_w, another] = key;
    std::string text = mem_mhz > 0.0 ? fmt::format("{:g}/", mem_mhz) : "";
    text += fmt::format("{:g}", core_mhz);
    if (limit_w > 0.0) text += fmt::format(" {:g}W", limit_w);
    return text;
  }

  const PipelineWork& work_;
  std::map<Key, std::size_t> ids_;
  std::vector<std::vector<std::size_t>> clock_of_;  // shape [types x options]
};

void add_pass_types(RunRows& rows, const PipelinePlanner& planner, const ClockIds& clocks) {
  const PipelineWork& work = planner.work();
  struct Sum {
    std::uint64_t launches = 0;
    std::uint32_t chunk = 0;
    double time_s = 0.0, energy_j = 0.0;
  };
  std::vector<Sum> sums(work.types.size());
  for (std::size_t i = 0; i < work.type_of_pass.size(); ++i) {
    Sum& sum = sums[index(work.type_of_pass[i])];
    const TimedPass& timed = planner.baseline().passes[i];
    ++sum.launches;
    sum.chunk = work.schedule.passes[i].chunk;
    sum.time_s += timed.end_s - timed.start_s;
    sum.energy_j += timed.energy_j;
  }
  for (std::size_t t = 0; t < work.types.size(); ++t) {
    const PassType& type = work.types[t];
    const std::string kind(name_of(type.kind));
    std::vector<OperatingPoint> at(clocks.size());
    for (std::size_t o = 0; o < type.options.size(); ++o) {
      const ClockOption& option = type.options[o];
      at[clocks.of(id_at<PassTypeId>(t), id_at<OptionId>(o))] = {
          .time_s = option.time_s, .energy_j = option.energy_j, .core_mhz = option.core_mhz};
    }
    rows.units.push_back({.gpu = type.stage,
                          .columns = {{"chunk", std::int64_t{sums[t].chunk}},
                                      {"pass", kind},
                                      {"name", kind},
                                      {"class", std::string("pass")},
                                      {"launches", sql_value(sums[t].launches)},
                                      {"default_time_s", sums[t].time_s},
                                      {"default_energy_j", sums[t].energy_j}},
                          .cells = rows.cells.size()});
    rows.cells.push_back(stored_cells(std::move(at)));
  }
}

void add_single_clocks(RunRows& rows, const PipelineWork& work, const ClockIds& clocks) {
  PipelineSimulator simulator(work);
  for (std::size_t c = 0; c < clocks.size(); ++c) {
    const std::optional<PipelinePlan> plan = clocks.everywhere(c);
    if (!plan) continue;
    const PipelineRun run = simulator.run(*plan);
    rows.clocks[c].time_s = run.time_s;
    rows.clocks[c].energy_j = run.energy_j;
  }
}

void add_frontier(RunRows& rows, const PipelinePlanner& planner) {
  std::vector<FrontierVertex> vertices = planner.frontier().vertices;
  std::ranges::reverse(vertices);  // they are by price, the slowest first
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const FrontierVertex& vertex = vertices[i];
    const double waiting_j = planner.waiting_power_w() * vertex.time_s;
    rows.fronts.push_back({.granularity = "pass",
                           .point = static_cast<std::int64_t>(i),
                           .time_s = vertex.time_s,
                           .energy_j = vertex.cost_j + waiting_j,
                           .bound_j = vertex.lower_bound_j + waiting_j,
                           .price_w = vertex.price_w});
  }
}

void add_passes(PlanRows& rows, const PipelineWork& work, const PipelineResult& plan,
                const ClockIds& clocks) {
  std::map<std::pair<std::size_t, std::size_t>, PlanUnitRow> units;
  for (std::size_t i = 0; i < plan.run.passes.size(); ++i) {
    const PipelinePass& pass = work.schedule.passes[i];
    const TimedPass& timed = plan.run.passes[i];
    const PassTypeId type = work.type_of_pass[i];
    const std::size_t clock = clocks.of(type, plan.plan.option_of_pass[i]);
    const double time_s = timed.end_s - timed.start_s;
    rows.segments.push_back({.gpu = pass.stage,
                             .clock = clock,
                             .pass = std::string(name_of(pass.kind)),
                             .microbatch = pass.microbatch,
                             .first_unit = index(type),
                             .first_index = pass.microbatch,
                             .launches = 1,
                             .start_s = timed.start_s,
                             .time_s = time_s,
                             .energy_j = timed.energy_j,
                             .critical = timed.critical});
    PlanUnitRow& unit = units[{index(type), clock}];
    unit.unit = index(type);
    unit.clock = clock;
    ++unit.launches;
    unit.time_s += time_s;
    unit.energy_j += timed.energy_j;
  }
  for (const auto& [key, unit] : units) rows.units.push_back(unit);
}

}  // namespace

RunRows stage_rows(const PipelinePlanner& planner, const PipelineRecord& record) {
  const PipelineWork& work = planner.work();
  const PipelineShape& shape = work.schedule.shape;
  RunRows rows;
  rows.columns = {{"kind", std::string("pipeline")},
                  {"interrupted", std::int64_t{0}},
                  {"work", record.profile},
                  {"clock_grid", sql_value(record.grid)},
                  {"host_power_w", work.host_power_w},
                  {"gpus", std::int64_t{shape.stages}},
                  {"steps", std::int64_t{1}},
                  {"default_time_s", planner.baseline().time_s},
                  {"default_energy_j", planner.baseline().energy_j},
                  {"tensor_parallel", std::int64_t{record.tensor_parallel}},
                  {"data_parallel", std::int64_t{record.data_parallel}},
                  {"stages", std::int64_t{shape.stages}},
                  {"microbatches", std::int64_t{shape.microbatches}},
                  {"chunks", std::int64_t{shape.chunks}},
                  {"schedule", std::string(name_of(shape.kind))},
                  {"transfer_s", shape.transfer_s},
                  {"blocked_power_w", work.blocked_power_w},
                  {"least_time_s", planner.least_time_s()},
                  {"cheapest_time_s", planner.cheapest_time_s()}};
  add_switching(rows.columns, record.switching);
  if (record.spec) {
    const std::string text = to_json(*record.spec);
    rows.columns.emplace_back("gpu", record.spec->name);
    rows.columns.emplace_back("gpu_calibrated", std::int64_t{record.spec->calibrated});
    rows.columns.emplace_back("power_limit_w", record.spec->power_limit.limit_w);
    rows.inputs = {{"gpu_spec", record.spec->name, content_hash(text), text}};
    rows.fit_errors.assign(record.spec->fit_errors.begin(), record.spec->fit_errors.end());
  }
  for (std::uint32_t stage = 0; stage < shape.stages; ++stage) {
    rows.gpus.push_back({.label = fmt::format("stage {}", stage),
                         .stage = stage,
                         .replicas = std::int64_t{record.tensor_parallel} * record.data_parallel});
  }
  const ClockIds clocks(work);
  rows.clocks = clocks.list();
  add_single_clocks(rows, work, clocks);
  add_pass_types(rows, planner, clocks);
  add_frontier(rows, planner);
  if (record.marks) rows.caveats = record.marks(highest_clocks(work));
  rows.result_hash = hash_of(rows);
  return rows;
}

std::vector<PlanRows> stage_plans_rows(const PipelinePlanner& planner,
                                       std::span<const PipelineResult> plans,
                                       const PipelineRecord& record) {
  const ClockIds clocks(planner.work());
  const PipelineRun& base = planner.baseline();
  std::vector<PlanRows> list;
  for (const PipelineResult& plan : plans) {
    PlanRows& rows = list.emplace_back();
    rows.contender = contender_of(planner, plan);
    const bool waits = plan.after_end == AfterEnd::wait;
    const Goal goal = asked_goal(planner, plan);
    add_goal(rows.columns, goal);
    if (waits) rows.columns.front().second = std::string("straggler");
    rows.columns.emplace_back("status", std::string(name_of(plan.status)));
    rows.columns.emplace_back("deadline_s", plan.deadline_s);
    if (plan.found()) {
      StoredChanges changes{.defaults = {base.time_s, base.energy_j},
                            .planned = {plan.run.time_s, plan.energy_j},
                            .applied = {plan.run.time_s, plan.energy_j}};
      if (waits)
        changes.defaults.energy_j += planner.waiting_power_w() * (plan.deadline_s - base.time_s);
      if (plan.interval) {
        changes.time = stored_interval(plan.interval->time);
        changes.energy = stored_interval(plan.interval->energy);
      }
      add_changes(rows.columns, changes);
      const double stages = planner.work().schedule.shape.stages;
      rows.columns.emplace_back("objective",
                                value_of_goal(goal, {plan.run.time_s, plan.energy_j}, stages));
      if (!plan.goal) rows.columns.emplace_back("lower_bound", plan.lower_bound_j);
      for (const std::string_view gap : {"gap_pct", "applied_gap_pct"})
        rows.columns.emplace_back(gap, percent * plan.gap_frac);
      add_passes(rows, planner.work(), plan, clocks);
      if (rows.contender.clocks == 1)
        rows.columns.emplace_back("clock_id", sql_value(rows.units.front().clock));
      if (record.marks) rows.caveats = record.marks(plan.plan);
    }
    rows.result_hash = hash_of(rows);
  }
  return list;
}

std::int64_t add_pipeline(const std::filesystem::path& database, const PipelinePlanner& planner,
                          std::span<const PipelineResult> plans, const PipelineRecord& record) {
  return store_run(database, stage_rows(planner, record), stage_plans_rows(planner, plans, record),
                   {.command = record.command});
}

}  // namespace rubato
