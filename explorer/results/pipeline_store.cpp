#include "explorer/results/pipeline_store.hpp"

#include <optional>

#include "common/version.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/stored_answers.hpp"

namespace rubato {

namespace {

// What is not a choice is 0 in options and NULL in tables.
std::optional<double> if_chosen(double value) {
  return value > 0.0 ? std::optional(value) : std::nullopt;
}

class PipelineWriter {
 public:
  PipelineWriter(SqlConnection& connection, const PipelinePlanner& planner,
                 const PipelineRecord& record)
      : connection_(connection), planner_(planner), work_(planner.work()), record_(record) {}

  std::int64_t write(std::span<const PipelineResult> plans) {
    write_run();
    write_options();
    write_front();
    write_baseline();
    for (const PipelineResult& plan : plans) write_plan(plan);
    store_answers(connection_, RunKind::pipeline, run_id_);
    return run_id_;
  }

 private:
  void write_run() {
    const PipelineShape& shape = work_.schedule.shape;
    SqlStatement(connection_,
                 "INSERT INTO pipeline_runs VALUES "
                 "(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, NULL)")
        .run(now_utc(), record_.command, program_version(), source_revision(), build_info(),
             host_name(), record_.profile, name_of(shape.kind), shape.stages, shape.microbatches,
             shape.chunks, shape.transfer_s, work_.blocked_power_w, record_.switch_cost.stall_s,
             record_.switch_cost.energy_j, record_.tensor_parallel, record_.data_parallel,
             planner_.least_time_s(), planner_.cheapest_time_s());
    run_id_ = connection_.last_insert_id();
  }

  void write_options() {
    SqlStatement insert(connection_,
                        "INSERT INTO pipeline_options VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (std::size_t t = 0; t < work_.types.size(); ++t) {
      const PassType& type = work_.types[t];
      for (std::size_t o = 0; o < type.options.size(); ++o) {
        const ClockOption& option = type.options[o];
        insert.run(run_id_, t, o, type.stage, name_of(type.kind), option.core_mhz,
                   if_chosen(option.mem_mhz), option.time_s, option.energy_j,
                   if_chosen(option.power_limit_w));
      }
    }
  }

  void write_front() {
    SqlStatement insert(connection_, "INSERT INTO pipeline_front VALUES (?, ?, ?, ?, ?, ?)");
    const auto& vertices = planner_.frontier().vertices;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const FrontierVertex& v = vertices[i];
      const double waiting_j = planner_.waiting_power_w() * v.time_s;
      insert.run(run_id_, i, v.time_s, v.cost_j + waiting_j, v.lower_bound_j + waiting_j,
                 v.price_w);
    }
  }

  std::int64_t insert_plan(std::string_view goal, std::string_view status,
                           const std::optional<double>& deadline_s) {
    SqlStatement(connection_,
                 "INSERT INTO pipeline_plans (pipeline_run_id, goal, status, deadline_s) "
                 "VALUES (?, ?, ?, ?)")
        .run(run_id_, goal, status, deadline_s);
    return connection_.last_insert_id();
  }

  void write_baseline() {
    const std::int64_t plan_id = insert_plan("baseline", "feasible", std::nullopt);
    const PipelineRun& run = planner_.baseline();
    write_totals(plan_id, run, run.energy_j, std::nullopt, std::nullopt);
    write_passes(plan_id, highest_clocks(work_), run);
  }

  void write_plan(const PipelineResult& result) {
    const std::int64_t plan_id = insert_plan(result.prices                        ? "least_cost"
                                             : result.after_end == AfterEnd::wait ? "straggler"
                                                                                  : "deadline",
                                             name_of(result.status), result.deadline_s);
    store_contender(connection_, RunKind::pipeline, plan_id, contender_of(planner_, result));
    if (result.plan.option_of_pass.empty()) return;
    write_totals(plan_id, result.run, result.energy_j, result.lower_bound_j, result.gap_frac);
    if (result.interval) write_interval(plan_id, *result.interval);
    write_passes(plan_id, result.plan, result.run);
  }

  void write_totals(std::int64_t plan_id, const PipelineRun& run, double energy_j,
                    const std::optional<double>& lower_bound_j,
                    const std::optional<double>& gap_frac) {
    SqlStatement(connection_,
                 "UPDATE pipeline_plans SET time_s = ?, energy_j = ?, lower_bound_j = ?, "
                 "gap_frac = ?, pass_energy_j = ?, blocked_energy_j = ?, switch_energy_j = ?, "
                 "clock_switches = ? WHERE pipeline_plan_id = ?")
        .run(run.time_s, energy_j, lower_bound_j, gap_frac, run.pass_energy_j, run.blocked_energy_j,
             run.switch_energy_j, static_cast<std::int64_t>(run.clock_switches), plan_id);
  }

  void write_interval(std::int64_t plan_id, const SavingInterval& interval) {
    const auto& [time, energy] = interval;
    SqlStatement(connection_,
                 "UPDATE pipeline_plans SET time_change_low_pct = ?, time_change_high_pct = ?, "
                 "time_change_expected_pct = ?, energy_change_low_pct = ?, "
                 "energy_change_high_pct = ?, energy_change_expected_pct = ? "
                 "WHERE pipeline_plan_id = ?")
        .run(time.low_pct, time.high_pct, time.median_pct, energy.low_pct, energy.high_pct,
             energy.median_pct, plan_id);
  }

  void write_passes(std::int64_t plan_id, const PipelinePlan& plan, const PipelineRun& run) {
    SqlStatement insert(
        connection_,
        "INSERT INTO pipeline_passes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (std::size_t i = 0; i < run.passes.size(); ++i) {
      const PipelinePass& pass = work_.schedule.passes[i];
      const TimedPass& timed = run.passes[i];
      const ClockOption& option =
          work_.type_of(id_at<PassId>(i)).options[index(plan.option_of_pass[i])];
      insert.run(plan_id, i, pass.stage, pass.chunk, pass.microbatch, name_of(pass.kind),
                 index(work_.type_of_pass[i]), index(plan.option_of_pass[i]), timed.core_mhz,
                 timed.start_s, timed.end_s, timed.energy_j, timed.critical, timed.switched,
                 if_chosen(option.power_limit_w));
    }
  }

  SqlConnection& connection_;
  const PipelinePlanner& planner_;
  const PipelineWork& work_;
  const PipelineRecord& record_;
  std::int64_t run_id_ = 0;
};

}  // namespace

std::int64_t add_pipeline(const std::filesystem::path& database, const PipelinePlanner& planner,
                          std::span<const PipelineResult> plans, const PipelineRecord& record) {
  SqlConnection connection = open_result_database(database);
  SqlTransaction transaction(connection);
  const std::int64_t run_id = PipelineWriter(connection, planner, record).write(plans);
  transaction.commit();
  return run_id;
}

}  // namespace rubato
