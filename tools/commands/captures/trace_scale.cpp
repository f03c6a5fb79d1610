// rubato trace scale: a training step over degrees of parallelism: what is computed, hidden and
// waited for, and what a plan saves.

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/graph/parallel_plan.hpp"
#include "models/network/cluster.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/captures/trace.hpp"
#include "tools/drawing/page.hpp"
#include "tools/drawing/scale.hpp"
#include "tools/options/disturbance.hpp"
#include "tools/options/parallel.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

namespace {

struct ScaleOptions {
  ModelShapeOptions model;
  ParallelOptions parallel;
  std::vector<std::string> tp{"1"}, pp{"1"}, dp{"1"};
  std::vector<std::string> disturb;
  GraphDisturbance disturbed;  ///< what it comes to
  std::vector<double> slacks_pct{0.0, 1.0, 5.0};
  std::string clocks = "coarse";
  std::string page;
  bool without_plans = false;
  OutputFormat format = OutputFormat::table;
};

OutputTable table_of(const ScaleOptions& o) {
  std::vector<Column> columns{{"tp"}, {"pp"}, {"dp"}, {"gpus", "GPUs"}, {"step_ms", "step ms", 1}};
  if (o.disturbed.none()) {
    for (const char* name : {"compute", "hidden", "exposed", "bubble"})
      columns.push_back({fmt::format("{}_pct", name), fmt::format("{} %", name), 1});
  }
  columns.push_back({"energy_kj", "energy kJ", 3});
  if (!o.without_plans) {
    for (const double slack_pct : o.slacks_pct)
      columns.push_back({fmt::format("energy_change_pct_slack_{}", format_number(slack_pct)),
                         fmt::format("slack {} %", format_number(slack_pct)), 2});
  }
  return OutputTable(columns);
}

// "4" or "1..16", which doubles: 1, 2, 4, 8, 16.
std::vector<std::uint64_t> degrees_of(const std::vector<std::string>& texts,
                                      std::string_view option) {
  constexpr std::string_view between = "..";
  std::vector<std::uint64_t> degrees;
  for (const std::string& text : texts) {
    const std::size_t dots = std::min(text.find(between), text.size());
    const auto from = parse_count(std::string_view(text).substr(0, dots));
    const auto to = dots == text.size()
                        ? from
                        : parse_count(std::string_view(text).substr(dots + between.size()));
    constexpr std::uint64_t most = 1'000'000;
    if (!from || !to || *from == 0 || *to < *from || *to > most) {
      throw UsageError(
          fmt::format("{} '{}'; expected numbers from 1 to {}, or 1..16 for 1, 2, 4, 8, 16", option,
                      printable(text), most));
    }
    for (std::uint64_t degree = *from; degree <= *to; degree *= 2) degrees.push_back(degree);
  }
  std::ranges::sort(degrees);
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  return degrees;
}

DrawnStep planned(const ScaleOptions& o, const ParallelStepInput& input,
                  const RunContext& context) {
  ParallelPlanner planner(input, o.clocks, o.disturbed);
  const ParallelStepTimes& t = planner.step().times;
  const bool as_generated = o.disturbed.none();
  const double replicas =
      static_cast<double>(input.gpus()) / static_cast<double>(input.pipeline.stages);
  DrawnStep step{.tensor = input.shape.tensor_parallel,
                 .stages = input.pipeline.stages,
                 .replicas = input.shape.data_parallel,
                 .gpus = input.gpus(),
                 .step_s = as_generated ? t.step_s : planner.baseline().span_s,
                 .energy_j = planner.baseline().total_energy_j * replicas,
                 .shares = {},
                 .energy_changes_pct = {}};
  if (as_generated) {  // shares of the generated step, which no rank is late in
    step.shares = {t.compute_s() / t.step_s, t.hidden_s() / t.step_s, t.exposed_s() / t.step_s,
                   t.bubble_s() / t.step_s};
  }
  if (o.without_plans) return step;
  std::vector<double> slacks_frac;
  for (const double slack_pct : o.slacks_pct) slacks_frac.push_back(slack_pct / percent);
  for (const ParallelPlan& plan : planner.plan(slacks_frac, context))
    step.energy_changes_pct.push_back(percent * plan.energy_frac);
  return step;
}

std::vector<Cell> row_of(const DrawnStep& step) {
  std::vector<Cell> row{static_cast<std::int64_t>(step.tensor),
                        static_cast<std::int64_t>(step.stages),
                        static_cast<std::int64_t>(step.replicas),
                        static_cast<std::int64_t>(step.gpus), ms_per_s * step.step_s};
  if (step.shares) {
    const StepShares& s = *step.shares;
    for (const double frac : {s.compute, s.hidden, s.exposed, s.bubble})
      row.emplace_back(percent * frac);
  }
  row.emplace_back(1e-3 * step.energy_j);
  for (const double change_pct : step.energy_changes_pct) row.emplace_back(change_pct);
  return row;
}

// Every combination of degrees that the cluster has GPUs for. A single one is always kept: making
// it then fails with what it needs.
struct Combinations {
  std::vector<ParallelStepInput> inputs;
  std::size_t left_out = 0;
  ClusterSpec cluster;
  bool cluster_guessed = false;
};

// What became of the combinations.
struct ScaleRuns {
  std::vector<DrawnStep> steps;
  std::size_t refused = 0, not_made = 0;
  std::string first_refusal;
  std::vector<std::string> cut_short;  // "TP 1, PP 2, DP 4", whose plans the interrupt ended early
};

std::string interruption_of(const ScaleRuns& runs) {
  std::string text;
  if (runs.not_made > 0)
    text += fmt::format(" Interrupted: {} combinations were not made.", runs.not_made);
  if (!runs.cut_short.empty())
    text += fmt::format(" Interrupted while planning, better plans may be there: {}.",
                        fmt::join(runs.cut_short, "; "));
  return text;
}

std::string microbatches_text(const ScaleOptions& o) {
  const std::uint64_t microbatches = o.parallel.microbatches, sequences = o.model.batch.value_or(1);
  return fmt::format("{} microbatch{} of {} sequence{}", microbatches,
                     microbatches == 1 ? "" : "es", sequences, sequences == 1 ? "" : "s");
}

std::string notes_of(const ScaleOptions& o, const Combinations& all, const ScaleRuns& runs) {
  const std::string shares =
      o.disturbed.none()
          ? "Of the step at default clocks, means over a GPU of each stage: kernels, communication "
            "beside kernels (hidden) and without any (exposed), neither (bubble: waiting for other "
            "stages or the host)."
          : "Of the disturbed step; what of it is hidden and exposed is told of undisturbed ones.";
  std::string text = fmt::format(
      "{} {} in each replica; GPUs that do the same are simulated once, collectives at the size of "
      "their group. All times are modelled: nothing of it was measured.",
      shares, microbatches_text(o));
  if (all.cluster_guessed)
    text += " Bandwidths between GPUs are guessed from the GPU's own; --cluster names a cluster.";
  if (!o.without_plans)
    text +=
        " Slack: change of energy with a clock for each pass of each stage, switches "
        "free.";
  if (all.left_out > 0)
    text += fmt::format(" Left out: {} combinations of more GPUs than {} has ({}).", all.left_out,
                        all.cluster.name, all.cluster.gpus());
  if (runs.refused > 0)
    text += fmt::format(" Left out as impossible: {}, the first because {}.", runs.refused,
                        runs.first_refusal);
  return text + interruption_of(runs);
}

Combinations combinations_of(const ScaleOptions& o) {
  const ModelShape model = load_model_shape(o.model.model);
  const std::vector<std::uint64_t> tensors = degrees_of(o.tp, "--tp"),
                                   stages = degrees_of(o.pp, "--pp"),
                                   replicas = degrees_of(o.dp, "--dp");
  const bool only = tensors.size() * stages.size() * replicas.size() == 1;
  const TrainingStep shape = shape_of(o.model, model);
  // Specs are read once.
  const ParallelStepInput first = parallel_input(o.parallel, shape, 1);
  Combinations all{.inputs = {},
                   .left_out = 0,
                   .cluster = cluster_of(first.spec),
                   .cluster_guessed = !first.spec.cluster};
  for (const std::uint64_t tensor : tensors) {
    for (const std::uint64_t stage : stages) {
      for (const std::uint64_t replica : replicas) {
        ParallelStepInput input = first;
        input.shape.tensor_parallel = tensor;
        input.shape.data_parallel = replica;
        input.pipeline.stages = static_cast<std::uint32_t>(stage);
        if (!only && input.gpus_asked() > static_cast<double>(all.cluster.gpus())) {
          ++all.left_out;
        } else {
          all.inputs.push_back(std::move(input));
        }
      }
    }
  }
  return all;
}

ScaleCaption caption_of(const ScaleOptions& o, const Combinations& all, const ScaleRuns& runs) {
  return {.model = fmt::format("{}, {} in each replica", o.model.model, microbatches_text(o)),
          .cluster = all.cluster_guessed ? fmt::format("{}, links guessed", o.parallel.gpu)
                                         : fmt::format("{}, {}", all.cluster.name, o.parallel.gpu),
          .slacks_pct = o.without_plans ? std::vector<double>{} : o.slacks_pct,
          .notes = notes_of(o, all, runs)};
}

std::string page_of(const ScaleOptions& o, const ScaleCaption& caption, const ScaleRuns& runs,
                    const OutputTable& table) {
  nlohmann::ordered_json energies = nlohmann::ordered_json::array(), charts = energies;
  for (const double slack_pct : caption.slacks_pct)
    energies.push_back(fmt::format("energy_change_pct_slack_{}", format_number(slack_pct)));
  const auto add = [&](const char* title, const nlohmann::ordered_json& columns) {
    charts.push_back({{"title", title},
                      {"x", "dp"},
                      {"y", columns},
                      {"line", true},
                      {"log", "x"},
                      {"panels", {"tp", "pp"}}});
  };
  if (!energies.empty()) add("Energy", energies);
  if (o.disturbed.none())
    add("Where the step goes", {"compute_pct", "hidden_pct", "exposed_pct", "bubble_pct"});
  return drawn_page(
      {"A training step over degrees of parallelism",
       fmt::format("{}; {}", caption.model, caption.cluster), scale_answer(caption, runs.steps),
       caption.notes},
      std::array{PagePart{.name = "steps",
                          .title = "Shares and savings",
                          .text = "Hidden: communication beside kernels; exposed: communication "
                                  "alone; bubble: neither. tp: tensor-parallel degree, pp: stages, "
                                  "dp: replicas.",
                          .table = &table,
                          .charts = charts.dump()}});
}

// Of many combinations one that cannot be made is left out. A single one is refused.
ScaleRuns made_runs(const ScaleOptions& o, const Combinations& all, const RunContext& context) {
  struct Made {
    std::optional<DrawnStep> step;
    std::exception_ptr refusal;
    std::string reason;
    bool cut_short = false;
  };
  std::vector<Made> found(all.inputs.size());
  std::mutex reporting;
  std::size_t done = 0;
  parallel_for(
      found.size(),
      [&](std::size_t i) {
        if (context.stop_requested()) return;
        try {
          found[i].step = planned(o, all.inputs[i], context);
          found[i].cut_short = !o.without_plans && context.stop_requested();
        } catch (const UsageError& error) {
          found[i].refusal = std::current_exception();
          found[i].reason = error.what();
        }
        const std::lock_guard lock(reporting);
        context.report({.done = ++done, .total = found.size(), .note = {}});
      },
      LoopTasks::singly);
  ScaleRuns runs;
  std::exception_ptr first;
  for (Made& made : found) {
    if (made.refusal) {
      if (runs.refused++ == 0) {
        first = made.refusal;
        runs.first_refusal = made.reason;
      }
    } else if (!made.step) {
      ++runs.not_made;
    } else {
      if (made.cut_short)
        runs.cut_short.push_back(fmt::format("TP {}, PP {}, DP {}", made.step->tensor,
                                             made.step->stages, made.step->replicas));
      runs.steps.push_back(*std::move(made.step));
    }
  }
  if (first && runs.refused == found.size()) std::rethrow_exception(first);
  return runs;
}

ExitStatus run_scale(const ScaleOptions& o, const RunContext& context) {
  for (const double slack_pct : o.slacks_pct) {
    if (!(slack_pct >= 0.0))
      throw UsageError(fmt::format("--slack is {}; expected a number >= 0", slack_pct));
  }
  const Combinations all = combinations_of(o);
  give_parts();
  const ScaleRuns runs = made_runs(o, all, context);
  tell_done(all.inputs.size() - runs.not_made - runs.cut_short.size(), all.inputs.size(),
            "combinations");
  if (runs.steps.empty() && runs.not_made > 0) return ExitStatus::interrupted;
  OutputTable table = table_of(o);
  for (const DrawnStep& step : runs.steps) table.add_row(row_of(step));
  const ScaleCaption caption = caption_of(o, all, runs);
  if (o.format == OutputFormat::table) {
    print_notes(
        answer_text(fmt::format("{}; {}", printable(caption.model), printable(caption.cluster)),
                    scale_answer(caption, runs.steps)));
  }
  print(table, o.format);
  if (o.format == OutputFormat::table) print_notes('\n' + caption.notes + '\n');
  if (runs.steps.empty()) return ExitStatus::no_plan;
  if (!o.page.empty()) write_output(o.page, page_of(o, caption, runs, table));
  return ExitStatus::done;
}

}  // namespace

Action setup_trace_scale(CommandLine& app) {
  auto o = std::make_shared<ScaleOptions>();
  o->model.batch = 1;
  o->parallel.microbatches = 16;
  add_model_shape_options(app, o->model);
  app.add_option("--tp", o->tp, "Tensor-parallel degrees: with commas, or 1..16, which doubles")
      ->delimiter(',');
  app.add_option("--pp", o->pp, "Pipeline stages, as --tp")->delimiter(',');
  app.add_option("--dp", o->dp, "Data-parallel replicas, as --tp")->delimiter(',');
  app.add_option("--slack", o->slacks_pct, "Time allowed beyond the default clocks, %")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--clocks", o->clocks, "Grid of clocks, see rubato explore")
      ->capture_default_str();
  app.add_flag("--no-plans", o->without_plans, "Times only");
  app.add_option("--page", o->page, "Write an HTML page with picture and table")
      ->ends_in({".html", ".htm"});
  add_disturb_option(app, o->disturb);
  add_parallel_options(app, o->parallel);
  add_format_options(app, o->format);
  return [o](const RunContext& context) {
    o->disturbed = disturbance_of(o->disturb);
    return run_scale(*o, context);
  };
}

}  // namespace rubato
