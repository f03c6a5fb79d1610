#include "explorer/experiments/sweep_store.hpp"

#include <fmt/format.h>

#include "explorer/results/capture_rows.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"

namespace rubato {

namespace {

// The plan of a unit of this program.
std::optional<std::int64_t> stored_plan(const SqlConnection& connection, const Unit& unit) {
  SqlStatement find =
      SqlStatement::kept(connection,
                         "SELECT p.plan_id FROM plans p JOIN runs r ON r.run_id = p.run_id WHERE "
                         "p.question_hash = ? AND r.program_version = ?");
  if (!find.first(unit.question_id, program_with_revision())) return std::nullopt;
  return whole(find.value(0));
}

}  // namespace

RunRows setting_rows(const Setting& setting, const ExplorationInput& input,
                     const Exploration& found) {
  RunRows rows = trace_rows(input, found);
  const auto add = [&](std::string_view name, SqlValue value) {
    rows.columns.emplace_back(name, std::move(value));
  };
  add("seed", sql_value(setting.seed));
  if (const auto& shape = setting.traced()->shape) {
    add("model", shape->model);
    add("batch", sql_value(shape->batch));
    add("sequence", sql_value(shape->sequence));
    add("tensor_parallel", sql_value(shape->tensor_parallel));
    add("data_parallel", sql_value(shape->data_parallel));
    add("stages", sql_value(shape->pipeline_parallel));
    add("microbatches", sql_value(shape->microbatches));
  }
  if (const PipelineSplit* pipeline = setting.pipeline()) {
    add("schedule", std::string(name_of(pipeline->schedule)));
    for (StoredClock& clock : rows.clocks) {  // of a microbatch, not of the run
      clock.time_s.reset();
      clock.energy_j.reset();
    }
  }
  return rows;
}

RunRows setting_rows(const Setting& setting, const GraphExploration& found,
                     const std::string& command) {
  const CapturedWork& work = *setting.captured();
  RunRows rows = capture_rows({.files = {work.run->name},
                               .captured_clock = work.clock_label,
                               .clock_source = work.clock_source,
                               .command = command,
                               .grid = setting.clocks,
                               .hash = work.run->hash},
                              found);
  rows.columns.emplace_back("seed", sql_value(setting.seed));
  return rows;
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
    if (const auto plan_id = stored_plan(connection_, unit)) add_memberships(plan, unit, *plan_id);
  }
  transaction.commit();
}

bool SweepStore::is_finished(const Unit& unit) const {
  return stored_plan(reader_, unit).has_value();
}

bool SweepStore::has_run(const Setting& setting) const {
  return SqlStatement::kept(reader_, "SELECT 1 FROM runs WHERE run_hash = ?").first(setting.id);
}

bool SweepStore::has_front(const Setting& setting) const {
  return SqlStatement::kept(
             reader_, "SELECT 1 FROM runs JOIN fronts USING (run_id) WHERE run_hash = ? LIMIT 1")
      .first(setting.id);
}

std::vector<bool> SweepStore::finished(const SweepPlan& plan) const {
  std::vector<bool> flags;
  flags.reserve(plan.units.size());
  for (const Unit& unit : plan.units) flags.push_back(stored_plan(connection_, unit).has_value());
  return flags;
}

void SweepStore::add_memberships(const SweepPlan& plan, const Unit& unit, std::int64_t plan_id) {
  SqlStatement insert =
      SqlStatement::kept(connection_, "INSERT OR IGNORE INTO experiment_plans VALUES (?, ?, ?)");
  for (const std::string& scenario : unit.scenarios)
    insert.run(plan.experiment.id, scenario, plan_id);
}

std::int64_t SweepStore::run_of(const Setting& setting, const AnsweredUnits& answered,
                                const std::string& command) {
  SqlStatement find = SqlStatement::kept(connection_, "SELECT run_id FROM runs WHERE run_hash = ?");
  if (find.first(setting.id)) return whole(find.value(0));
  return write_run(connection_, answered.run.value(),
                   {command, setting.options_json, OfExperiment{setting.id}});
}

std::vector<bool> SweepStore::add(const SweepPlan& plan, const AnsweredUnits& answered,
                                  const std::string& command) {
  SqlTransaction transaction(connection_);
  std::vector<bool> stored;
  std::optional<std::int64_t> changed;  // all are of one run
  for (std::size_t i = 0; i < answered.units.size(); ++i) {
    const Unit& unit = *answered.units[i];
    std::optional<std::int64_t> plan_id = stored_plan(connection_, unit);
    stored.push_back(!plan_id);
    if (!plan_id) {
      changed = run_of(plan.settings[unit.setting], answered, command);
      plan_id = write_plan(connection_, *changed, answered.plans[i],
                           PlanRecord{unit.question_id, answered.wall_time_s, unit.estimated_s});
    }
    add_memberships(plan, unit, *plan_id);
  }
  if (changed) {
    write_fronts(connection_, *changed, answered.fronts);
    choose_stored_answers(connection_, *changed);
  }
  transaction.commit();
  return stored;
}

double SweepStore::estimate_scale() const {
  SqlStatement ratio =
      SqlStatement::kept(connection_, "SELECT sum(wall_time_s) / sum(estimated_s) FROM plans");
  return ratio.first() && std::holds_alternative<double>(ratio.value(0))
             ? value_as<double>(ratio.value(0))
             : 1.0;
}

}  // namespace rubato
