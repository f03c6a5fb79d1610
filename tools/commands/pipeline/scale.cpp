// rubato pipeline scale: savings as replicas share a batch.

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "explorer/pipeline/lowtime.hpp"
#include "explorer/pipeline/straggler.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"

namespace rubato {

namespace {

struct ScaleOptions {
  PipelineInput input;
  std::uint32_t global_batch = 1536;
  std::vector<std::uint32_t> replicas{16, 32, 64, 128};
  std::vector<double> factors{1.0, 1.1, 1.2};
  OutputFormat format = OutputFormat::table;
};

// lowtime fails on profiles with few distinct times; then there is nothing to compare with.
// The step is half a millisecond of the profile as measured, whatever it is scaled by.
Cell lowtime_change(const PipelineInput& input, const PipelineWork& work, const PipelineRun& base) {
  try {
    const double unit_s = 5e-4 * input.profile_scale;
    return change_pct(emulate_lowtime(work, unit_s).run.energy_j, base.energy_j);
  } catch (const DataError&) {
    return std::monostate{};
  }
}

// The table's columns: one of energy for each straggler, with its interval where there is one.
std::vector<Column> scale_columns(const ScaleOptions& o) {
  std::vector<Column> columns{{"data_parallel", "replicas"},
                              {"microbatches"},
                              {"gpus", "GPUs"},
                              {"time_s", "time s", 3, false, Room::spare},
                              {"energy_kj", "energy kJ", 1, false, Room::spare},
                              {"lowtime_change_pct", "lowtime %", 2, false, Room::detail}};
  for (const double factor : o.factors) {
    columns.push_back({fmt::format("energy_change_pct_straggler_{:.4g}", factor),
                       factor == 1.0 ? "intrinsic %" : fmt::format("x {:.4g} %", factor), 2});
    for (const char* end : {"low", "high"})
      columns.push_back(
          {.key = fmt::format("{}_pct_straggler_{:.4g}", end, factor), .for_programs = true});
    columns.push_back(range_column(!o.input.model.empty()));
  }
  return columns;
}

// What a plan saves with one number of replicas, at one straggler's time.
struct ScaleSaving {
  std::uint64_t gpus = 0;
  double change_pct = 0.0;
  std::optional<Interval> interval;
};

// One line for each straggler: least to most.
// @param savings  for each straggler's factor, in the order of the replicas
std::string strong_scaling_answer(const ScaleOptions& o,
                                  const std::vector<std::vector<ScaleSaving>>& savings) {
  std::string answer;
  for (std::size_t i = 0; i < savings.size(); ++i) {
    const auto [most, least] =
        std::ranges::minmax_element(savings[i], {}, &ScaleSaving::change_pct);
    const auto say = [&](const ScaleSaving& one) {
      answer.append(change_words(one.change_pct, one.interval))
          .append(fmt::format(" ({} GPUs)", one.gpus));
    };
    if (i > 0) answer.append("\n");
    answer.append(o.factors[i] == 1.0 ? std::string("In the same time: energy ")
                                      : fmt::format("While a straggler takes {:.4g} times as long: "
                                                    "energy ",
                                                    o.factors[i]));
    say(*least);
    if (savings[i].size() > 1) {
      answer.append(" to ");
      say(*most);
    }
    answer.append(".");
  }
  return answer;
}

ExitStatus run_scale(const ScaleOptions& o, const RunContext& context) {
  OutputTable table(scale_columns(o));
  std::string note, question;
  std::vector<std::vector<ScaleSaving>> savings(o.factors.size());
  for (const std::uint32_t replicas : o.replicas) {
    if (replicas == 0 || o.global_batch % replicas != 0) {
      throw UsageError(
          fmt::format("{} replicas cannot share {} microbatches evenly", replicas, o.global_batch));
    }
    PipelineInput input = o.input;
    input.data_parallel = replicas;
    input.microbatches = o.global_batch / replicas;
    const LoadedPipeline loaded = load_pipeline(input);
    const PipelineWork& work = loaded.work;
    const PlannerOptions options = planner_options(input);
    const PipelinePlanner planner(work, options, context);
    const auto intervals = intervals_of(loaded, options.switching);
    question = fmt::format("{}, {} stages, {} microbatches over all replicas, {}",
                           name_of(work.schedule.shape.kind), work.schedule.shape.stages,
                           o.global_batch, profile_name(input));
    const PipelineRun& base = planner.baseline();
    const double gpus_per_stage = 1.0 * input.tensor_parallel * replicas;
    const auto gpus = static_cast<std::uint64_t>(gpus_per_stage * work.schedule.shape.stages);
    std::vector<Cell> row{std::int64_t{replicas},
                          std::int64_t{input.microbatches},
                          static_cast<std::int64_t>(gpus),
                          base.time_s,
                          1e-3 * base.energy_j * gpus_per_stage,
                          lowtime_change(input, work, base)};
    std::vector<double> times_s;
    for (const double factor : o.factors) times_s.push_back(factor * base.time_s);
    const std::vector<StragglerPoint> points = straggle(planner, times_s, context);
    std::vector<const PipelinePlan*> shown;
    for (const StragglerPoint& point : points) shown.push_back(&point.result.plan);
    note = interval_note(loaded, shown);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const StragglerPoint& point = points[i];
      const ScaleSaving saving{gpus, change_pct(point.result.energy_j, point.baseline_energy_j),
                               energy_interval(intervals, point.result.plan,
                                               {.against = nullptr,
                                                .until_vs_default = point.time_s / base.time_s,
                                                .switching = nullptr})};
      row.emplace_back(saving.change_pct);
      add_interval(row, saving.interval);
      savings[i].push_back(saving);
    }
    table.add_row(std::move(row));
  }
  print_answered(
      question, strong_scaling_answer(o, savings), table,
      fmt::format("\nStrong scaling: replicas share the microbatches of an iteration. Change is "
                  "against the {0}, energy of all GPUs at these. intrinsic: saved in the same "
                  "time; x: where a straggler takes that many times as long and nobody need be "
                  "faster. lowtime: its fastest plan, emulated with steps of half a millisecond "
                  "of the profile.\n",
                  baseline_name(o.input)) +
          note,
      o.format);
  return ExitStatus::done;
}

}  // namespace

Action setup_pipeline_scale(CommandLine& app) {
  auto o = std::make_shared<ScaleOptions>();
  add_pipeline_options(app, o->input);
  app.add_option("--global-batch", o->global_batch, "Microbatches of all replicas together")
      ->capture_default_str();
  app.add_option("--replicas", o->replicas, "Data-parallel degrees (several with commas)")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--factor", o->factors, "Times of a straggler over the highest clocks' time")
      ->delimiter(',')
      ->capture_default_str();
  add_format_options(app, o->format);
  return [o](const RunContext& context) { return run_scale(*o, context); };
}

}  // namespace rubato
