// rubato trace scale: a training step over degrees of parallelism: what is computed, hidden and
// waited for, and what a plan saves.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "explorer/graph/parallel_plan.hpp"
#include "models/network/cluster.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/captures/trace.hpp"
#include "tools/options/disturbance.hpp"
#include "tools/options/parallel.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

namespace {

struct ScaleOptions {
  ModelShapeOptions model;
  ParallelOptions parallel;
  std::vector<std::uint64_t> tp{1}, dp{1};
  std::vector<unsigned> pp{1};
  DisturbanceOptions disturbance;
  std::vector<double> slacks_pct{0.0, 1.0, 5.0};
  std::string clocks = "coarse";
  bool without_plans = false;
  OutputFormat format = OutputFormat::table;
};

OutputTable table_of(const ScaleOptions& o) {
  std::vector<Column> columns{{"tp"}, {"pp"}, {"dp"}, {"gpus", "GPUs"}, {"step_ms", "step ms", 1}};
  if (disturbance_of(o.disturbance).none()) {
    for (const char* name : {"compute", "hidden", "exposed", "bubble"})
      columns.push_back({fmt::format("{}_pct", name), fmt::format("{} %", name), 1});
  }
  columns.push_back({"energy_kj", "energy kJ", 1});
  if (!o.without_plans) {
    for (const double slack_pct : o.slacks_pct)
      columns.push_back({fmt::format("energy_change_pct_slack_{}", format_number(slack_pct)),
                         fmt::format("slack {} %", format_number(slack_pct)), 2});
  }
  return OutputTable(columns);
}

std::vector<Cell> row_of(const ScaleOptions& o, const ParallelStepInput& input,
                         const RunContext& context) {
  ParallelPlanner planner(input, o.clocks, disturbance_of(o.disturbance));
  const ParallelStepTimes& t = planner.step().times;
  const bool disturbed = !disturbance_of(o.disturbance).none();
  const double replicas =
      static_cast<double>(input.gpus()) / static_cast<double>(input.pipeline.stages);
  std::vector<Cell> row{static_cast<std::int64_t>(input.shape.tensor_parallel),
                        static_cast<std::int64_t>(input.pipeline.stages),
                        static_cast<std::int64_t>(input.shape.data_parallel),
                        static_cast<std::int64_t>(input.gpus()),
                        ms_per_s * (disturbed ? planner.baseline().span_s : t.step_s)};
  if (!disturbed) {  // shares of the generated step, which no rank is late in
    for (const double time_s : {t.compute_s(), t.hidden_s(), t.exposed_s(), t.bubble_s()})
      row.emplace_back(percent * time_s / t.step_s);
  }
  row.emplace_back(1e-3 * planner.baseline().total_energy_j * replicas);
  if (o.without_plans) return row;
  std::vector<double> slacks_frac;
  for (const double slack_pct : o.slacks_pct) slacks_frac.push_back(slack_pct / percent);
  for (const ParallelPlan& plan : planner.plan(slacks_frac, context))
    row.emplace_back(percent * plan.energy_frac);
  return row;
}

std::string notes_of(const ScaleOptions& o, std::size_t left_out, const ClusterSpec& cluster) {
  const std::string shares =
      disturbance_of(o.disturbance).none()
          ? "Of the step at default clocks, means over a GPU of each stage: kernels, communication "
            "beside kernels (hidden) and without any (exposed), neither (bubble: waiting for other "
            "stages or the host)."
          : "Of the disturbed step; what of it is hidden and exposed is told of undisturbed ones.";
  std::string text = fmt::format(
      "\n{} {} microbatches of {} sequences in each replica; GPUs that do the same are "
      "simulated once, collectives at the size of their group.\nAll times are modelled: nothing "
      "of it was measured.",
      shares, o.parallel.microbatches, o.model.batch.value_or(1));
  if (!o.without_plans)
    text +=
        " Slack: change of energy with a clock for each pass of each stage, changes of clock "
        "free.";
  if (left_out > 0)
    text += fmt::format(" Left out: {} combinations of more GPUs than {} has ({}).", left_out,
                        cluster.name, cluster.gpus());
  return text + '\n';
}

ExitStatus run_scale(const ScaleOptions& o, const RunContext& context) {
  for (const double slack_pct : o.slacks_pct) {
    if (!(slack_pct >= 0.0))
      throw UsageError(fmt::format("--slack is {}; expected a number >= 0", slack_pct));
  }
  const ModelShape model = load_model_shape(o.model.model);
  OutputTable table = table_of(o);
  std::size_t left_out = 0, done = 0;
  ClusterSpec cluster;
  for (const std::uint64_t tp : o.tp) {
    for (const unsigned pp : o.pp) {
      for (const std::uint64_t dp : o.dp) {
        TrainingStep shape = shape_of(o.model, model);
        shape.tensor_parallel = tp;
        shape.data_parallel = dp;
        const ParallelStepInput input = parallel_input(o.parallel, shape, pp);
        cluster = cluster_of(input.spec);
        const bool only = o.tp.size() * o.pp.size() * o.dp.size() == 1;
        if (!only && input.gpus() > cluster.gpus()) {
          ++left_out;
          continue;
        }
        if (context.stop_requested()) break;
        table.add_row(row_of(o, input, context));
        ++done;
      }
    }
  }
  print(table.render(o.format));
  if (o.format == OutputFormat::table) print(notes_of(o, left_out, cluster));
  return done > 0 ? ExitStatus::done : ExitStatus::no_plan;
}

}  // namespace

void setup_trace_scale(CommandLine& app, Action& action) {
  auto o = std::make_shared<ScaleOptions>();
  auto* scale = app.add_subcommand(
      "scale", "A training step over degrees of parallelism: what is hidden, exposed and saved");
  o->model.batch = 1;
  o->parallel.microbatches = 16;
  add_model_shape_options(*scale, o->model);
  scale->add_option("--tp", o->tp, "Tensor-parallel degrees (several with commas)")->delimiter(',');
  scale->add_option("--pp", o->pp, "Pipeline stages (several with commas)")->delimiter(',');
  scale->add_option("--dp", o->dp, "Data-parallel replicas (several with commas)")->delimiter(',');
  scale->add_option("--slack", o->slacks_pct, "Time allowed beyond the default clocks, %")
      ->delimiter(',')
      ->capture_default_str();
  scale->add_option("--clocks", o->clocks, "Grid of clocks, see rubato explore")
      ->capture_default_str();
  scale->add_flag("--no-plans", o->without_plans, "Times only");
  add_disturbance_options(*scale, o->disturbance);
  add_parallel_options(*scale, o->parallel);
  add_format_options(*scale, o->format);
  scale->footer(
      "\nExample:\n  rubato trace scale gpt3-13b --tp 1,2,4,8 --pp 1,4 --dp 16 --seq 2048 "
      "--optimizer --zero 1 --cluster dgx-a100");
  scale->final_callback(
      [&action, o] { action = [o](const RunContext& context) { return run_scale(*o, context); }; });
}

}  // namespace rubato
