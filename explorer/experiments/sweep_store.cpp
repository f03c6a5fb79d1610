#include "explorer/experiments/sweep_store.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "common/version.hpp"
#include "explorer/results/graph_store.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/run_writer.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/stored_answers.hpp"

namespace rubato {

namespace {

void append(std::string& text, const SimResult& sim) {
  text +=
      fmt::format("{} {} {} {}\n", format_number(sim.total.time_s),
                  format_number(sim.total.energy_j), sim.total.launches, sim.total.clock_switches);
}

// Numbers are written so that they read back to the bit: equal hashes mean equal reported numbers.
std::string result_hash(const PlanResult& result) {
  std::string text =
      fmt::format("{} {} {} {}\n", name_of(result.status), format_number(result.objective),
                  format_number(result.lower_bound), result.nodes);
  append(text, result.sim);
  for (const ClockId clock : result.plan.clock_of_site) text += fmt::format("{} ", index(clock));
  return content_hash(text);
}

std::string profile_hash(const Exploration& found) {
  std::string bytes;
  append(bytes, found.baseline);
  bytes += bits_of(found.cells);
  return content_hash(bytes);
}

std::string profile_hash(const GraphExploration& found) {
  std::string text;
  for (const UniformRun& run : found.planner->uniform())
    text += fmt::format("{} {}\n", format_number(run.span_s), format_number(run.energy_j));
  return content_hash(text);
}

std::string result_hash(const GraphPlanOutcome& outcome) {
  const GraphPlanResult& result = outcome.result;
  std::string text = fmt::format("{}\n", name_of(result.status));
  if (result.found()) {
    text +=
        fmt::format("{} {} {}\n", format_number(result.run.span_s),
                    format_number(result.run.total_energy_j), format_number(result.lower_bound_j));
  }
  if (const auto& counted = outcome.counted) {
    text += fmt::format("{} {} {}\n", format_number(counted->change.time_frac),
                        format_number(counted->change.energy_frac), counted->clock_changes);
  }
  for (const ClockId clock : result.plan.clock_of_activity)
    text += fmt::format("{} ", index(clock));
  return content_hash(text);
}

double share_of_default_time(const Exploration& found, CoefficientSource source) {
  CompensatedSum time_s, all_s;
  for (std::size_t k = 0; k < found.coefficient_sources.size(); ++k) {
    all_s.add(found.baseline.by_kernel[k].time_s);
    if (found.coefficient_sources[k] == source) time_s.add(found.baseline.by_kernel[k].time_s);
  }
  return time_s.value() / all_s.value();
}

bool holds(const SqlConnection& connection, const Unit& unit) {
  return SqlStatement::kept(connection, "SELECT 1 FROM units WHERE unit_id = ?").first(unit.id);
}

SqlValue count_value(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

ResultHashes result_hashes(const Exploration& found) {
  ResultHashes hashes{profile_hash(found), {}};
  for (const PlanResult& result : found.plans) hashes.plans.push_back(result_hash(result));
  return hashes;
}

ResultHashes result_hashes(const GraphExploration& found) {
  ResultHashes hashes{profile_hash(found), {}};
  for (const GraphPlanOutcome& outcome : found.plans) hashes.plans.push_back(result_hash(outcome));
  return hashes;
}

SweepStore::SweepStore(const std::filesystem::path& path)
    : connection_(open_result_database(path)), reader_(path, SqlConnection::Mode::read_only) {
  // A crash loses nothing; a power cut may lose the last units, which are then run again.
  connection_.wait_for_disk_at_checkpoints();
  connection_.trust_references();
}

void SweepStore::begin(const SweepPlan& plan) {
  SqlTransaction transaction(connection_);
  const Experiment& experiment = plan.experiment;
  SqlStatement::kept(connection_, "INSERT OR IGNORE INTO experiments VALUES (?, ?, ?, ?, ?)")
      .run(experiment.id, experiment.name, experiment.text, plan.units.size(), now_utc());
  for (const Unit& unit : plan.units) {
    if (holds(connection_, unit)) add_memberships(plan, unit);
  }
  transaction.commit();
}

bool SweepStore::is_finished(const Unit& unit) const { return holds(reader_, unit); }

std::vector<bool> SweepStore::finished(const SweepPlan& plan) const {
  std::vector<bool> flags;
  flags.reserve(plan.units.size());
  for (const Unit& unit : plan.units) flags.push_back(holds(connection_, unit));
  return flags;
}

void SweepStore::add_memberships(const SweepPlan& plan, const Unit& unit) {
  SqlStatement insert =
      SqlStatement::kept(connection_, "INSERT OR IGNORE INTO experiment_units VALUES (?, ?, ?)");
  for (const std::string& scenario : unit.scenarios)
    insert.run(plan.experiment.id, scenario, unit.id);
}

std::int64_t SweepStore::run_of(const SweepPlan& plan, const Unit& unit,
                                const ExplorationInput& input, const Exploration& found,
                                const ResultHashes& hashes, const std::string& command) {
  const Setting& setting = plan.settings[unit.setting];
  SqlStatement find =
      SqlStatement::kept(connection_, "SELECT run_id FROM settings WHERE setting_id = ?");
  if (find.first(setting.id)) return value_as<std::int64_t>(find.value(0));
  RunWriter writer(connection_, input, found);
  const std::int64_t run_id = writer.write_setting({command, setting.options_json});
  SqlValue model, batch, sequence, tensor_parallel, data_parallel, pipeline_parallel, microbatches,
      schedule;
  if (const auto& shape = setting.traced()->shape) {
    model = shape->model;
    batch = count_value(shape->batch);
    sequence = count_value(shape->sequence);
    tensor_parallel = count_value(shape->tensor_parallel);
    data_parallel = count_value(shape->data_parallel);
    pipeline_parallel = count_value(shape->pipeline_parallel);
    microbatches = count_value(shape->microbatches);
  }
  if (const PipelineSplit* pipeline = setting.pipeline())
    schedule = std::string(name_of(pipeline->schedule));
  SqlStatement::kept(
      connection_,
      "INSERT INTO settings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(setting.id, run_id, model, batch, sequence, tensor_parallel, data_parallel,
           pipeline_parallel, microbatches, schedule, count_value(setting.seed),
           share_of_default_time(found, CoefficientSource::measured),
           share_of_default_time(found, CoefficientSource::derived),
           share_of_default_time(found, CoefficientSource::guessed), hashes.profile,
           share_of_default_time(found, CoefficientSource::anchored),
           share_of_default_time(found, CoefficientSource::scaled));
  add_model_errors(*setting.spec, content_hash(to_json(*setting.spec)));
  return run_id;
}

std::vector<bool> SweepStore::add(const SweepPlan& plan, std::span<const Unit* const> units,
                                  const ExplorationInput& input, const Exploration& found,
                                  const ResultHashes& hashes, const std::string& command) {
  const double wall_time_s = found.wall_time_s / static_cast<double>(units.size());
  SqlTransaction transaction(connection_);
  RunWriter writer(connection_, input, found);
  std::vector<bool> stored;
  std::optional<std::int64_t> changed;  // all are of one run
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Unit& unit = *units[i];
    stored.push_back(!holds(connection_, unit));
    if (stored.back()) {
      const std::int64_t run_id = run_of(plan, unit, input, found, hashes, command);
      writer.continue_run(run_id);
      const std::int64_t plan_id = writer.write_plan(found.plans[i]);
      add_unit(unit,
               {.run_id = run_id, .plan_id = plan_id, .graph_run_id = {}, .graph_plan_id = {}},
               hashes.plans[i], wall_time_s);
      changed = run_id;
    }
    add_memberships(plan, unit);
  }
  if (changed) {
    writer.write_fronts();
    store_answers(connection_, RunKind::trace, *changed);
  }
  transaction.commit();
  return stored;
}

std::int64_t SweepStore::captured_run_of(const Setting& setting, const GraphExploration& found,
                                         const std::string& profile_hash,
                                         const std::string& command) {
  SqlStatement find = SqlStatement::kept(
      connection_, "SELECT graph_run_id FROM graph_settings WHERE setting_id = ?");
  if (find.first(setting.id)) return value_as<std::int64_t>(find.value(0));
  const CapturedWork& work = *setting.captured();
  const std::int64_t run_id = store_graph_setting(
      connection_, {work.run->files, work.clock_label, work.clock_source, command}, found);
  const std::string spec_hash =
      store_input(connection_, "gpu_spec", setting.spec->name, to_json(*setting.spec));
  const SwitchCost& core = setting.switching.core;
  SqlStatement::kept(connection_,
                     "INSERT INTO graph_settings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(setting.id, run_id, work.run->name, work.run->hash, spec_hash, setting.spec->calibrated,
           setting.clocks, core.stall_s, core.lead_s, setting.switching.dwell_s, core.energy_j,
           count_value(setting.seed), profile_hash);
  add_model_errors(*setting.spec, spec_hash);
  return run_id;
}

bool SweepStore::has_front(const Setting& setting) const {
  SqlStatement find(reader_,
                    "SELECT 1 FROM graph_settings JOIN graph_front USING (graph_run_id) WHERE "
                    "setting_id = ? LIMIT 1");
  return find.first(setting.id);
}

bool SweepStore::add(const SweepPlan& plan, const Unit& unit, const GraphExploration& found,
                     std::span<const GraphFrontPoint> front, const ResultHashes& hashes,
                     const std::string& command) {
  SqlTransaction transaction(connection_);
  const bool fresh = !holds(connection_, unit);
  if (fresh) {
    const std::int64_t run_id =
        captured_run_of(plan.settings[unit.setting], found, hashes.profile, command);
    const std::int64_t plan_id = store_graph_plan(connection_, run_id, found, found.plans.front());
    store_graph_front(connection_, run_id, front);
    store_answers(connection_, RunKind::capture, run_id);
    add_unit(unit, {.run_id = {}, .plan_id = {}, .graph_run_id = run_id, .graph_plan_id = plan_id},
             hashes.plans.front(), found.wall_time_s);
  }
  add_memberships(plan, unit);
  transaction.commit();
  return fresh;
}

void SweepStore::add_unit(const Unit& unit, const StoredPlan& plan, const std::string& result_hash,
                          double wall_time_s) {
  const auto if_any = [](const std::optional<std::int64_t>& id) {
    return id ? SqlValue(*id) : SqlValue();
  };
  SqlStatement::kept(connection_, "INSERT INTO units VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .run(unit.id, unit.question_id, if_any(plan.run_id), if_any(plan.plan_id),
           fmt::format("{} {}", program_version(), source_revision()), result_hash, wall_time_s,
           unit.estimated_s, now_utc(), host_name(), if_any(plan.graph_run_id),
           if_any(plan.graph_plan_id));
}

// @param spec_hash  key of the spec in the table inputs
void SweepStore::add_model_errors(const GpuSpec& spec, const std::string& spec_hash) {
  SqlStatement error =
      SqlStatement::kept(connection_, "INSERT OR IGNORE INTO model_errors VALUES (?, ?, ?)");
  for (const auto& [name, value] : spec.fit_errors) error.run(spec_hash, name, value);
}

double SweepStore::estimate_scale() const {
  SqlStatement ratio =
      SqlStatement::kept(connection_, "SELECT sum(wall_time_s) / sum(estimated_s) FROM units");
  return ratio.first() && std::holds_alternative<double>(ratio.value(0))
             ? value_as<double>(ratio.value(0))
             : 1.0;
}

}  // namespace rubato
