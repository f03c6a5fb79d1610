#include "tools/commands/published/perseus2024.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "common/algorithms/parallel.hpp"
#include "common/numbers.hpp"
#include "explorer/pipeline/intervals.hpp"
#include "explorer/pipeline/lowtime.hpp"
#include "explorer/pipeline/straggler.hpp"
#include "explorer/published_data.hpp"
#include "explorer/published_pipelines.hpp"
#include "tools/drawing/published_plot.hpp"
#include "tools/options/pipeline.hpp"

namespace rubato {

namespace {

constexpr std::uint32_t artifact_stages = 8;

PipelineWork artifact_work(const PublishedPipeline& of, std::uint32_t microbatches) {
  return pipeline_work(make_schedule({.stages = artifact_stages, .microbatches = microbatches}),
                       parse_pipeline_profile(published_data(of.profile), std::string(of.profile)),
                       of.blocked_power_w);
}

// One row of Table 6.
struct Table6Row {
  double account_pct =
      0.0;  // published time and energy, from the profile: must be the published saving
  double emulated_pct = 0.0;  // the same account of lowtime as emulated here
  double realised_pct = 0.0, realised_time_pct = 0.0;  // its plan of measured clocks, replayed
  double ours_pct = 0.0, most_pct = 0.0;               // no slower than the highest clocks
  double against_pct = 0.0;                            // our energy at its plan's time, against it
};

Table6Row table6_row(const PublishedPipeline& of, const PublishedPipeline::Row& row,
                     const RunContext& context) {
  const PipelineWork work = artifact_work(of, row.microbatches);
  const PipelinePlanner planner(work, {}, context);
  throw_if_interrupted(context);
  const PipelineRun& base = planner.baseline();
  const LowtimeResult theirs = emulate_lowtime(work, of.step_s);
  const std::vector<PipelineResult> ours =
      planner.plan(std::vector<double>{base.time_s, theirs.run.time_s}, AfterEnd::go_on, context);
  throw_if_interrupted(context);
  return {.account_pct =
              saving_pct(row.planned_energy_j, highest_clocks_energy_j(work, row.planned_time_s)),
          .emulated_pct = saving_pct(theirs.planned_energy_j,
                                     highest_clocks_energy_j(work, theirs.planned_time_s)),
          .realised_pct = saving_pct(theirs.run.energy_j, base.energy_j),
          .realised_time_pct = change_pct(theirs.run.time_s, base.time_s),
          .ours_pct = saving_pct(ours[0].energy_j, base.energy_j),
          .most_pct = saving_pct(ours[0].lower_bound_j, base.energy_j),
          .against_pct = ours[1].status == SolveStatus::feasible
                             ? change_pct(ours[1].energy_j, theirs.run.energy_j)
                             : std::nan("")};
}

struct LeastAndMost {
  double least = std::numeric_limits<double>::infinity(), most = -least;

  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

std::string table6_notes(const Difference& emulated) {
  return fmt::format(
      "published: the artifact's own account. It takes the fitted cost of lowtime's fastest plan "
      "at the planned time, against all passes at the highest clock, which then wait until that "
      "time.\nemulated: the same account of our own lowtime, with the artifact's time steps. It is "
      "at most {:.3f} points off.\nreplayed, time: energy saved and time of that plan, simulated "
      "at measured clocks, against the run at the highest clocks, %.\nours, at most: our plan that "
      "is no slower than the highest clocks, and the most that any plan could save (bound).\nat "
      "its time: energy of our plan that ends no later than the replayed plan, against that plan, "
      "%.\n",
      emulated.most);
}

PublishedSection table6(const RunContext& context) {
  PublishedSection section{
      .key = "table6",
      .heading = "Table 6: energy saved without stragglers, %, by microbatches",
      .seen = "Planned from the published stage profiles; no fit has seen the savings.",
      .table = OutputTable({{"model"},
                            {"gpu", "GPU"},
                            {"microbatches", "microb."},
                            {"published_saving_pct", "published", 2},
                            {"account_saving_pct", "from its frontier", 2, true},
                            {"emulated_saving_pct", "emulated", 2},
                            {"replayed_saving_pct", "replayed", 2},
                            {"replayed_time_pct", "time", 2},
                            {"saving_pct", "ours", 2},
                            {"most_saving_pct", "at most", 2},
                            {"energy_at_its_time_pct", "at its time", 2}})};
  constexpr std::size_t per_pipeline = published_table6.front().rows.size();
  std::vector<Table6Row> rows(published_table6.size() * per_pipeline);
  parallel_for(rows.size(), [&](std::size_t i) {
    const PublishedPipeline& of = published_table6[i / per_pipeline];
    rows[i] = table6_row(of, of.rows[i % per_pipeline], context);
  });
  std::vector<PlotSeries> plot;
  LeastAndMost theirs, ours;
  Difference emulated{.what = "Perseus' own account of its plans, emulated from stage profiles",
                      .unit = "points"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PublishedPipeline& of = published_table6[i / per_pipeline];
    const PublishedPipeline::Row& row = of.rows[i % per_pipeline];
    const Table6Row& r = rows[i];
    emulated.add(row.saving_pct, r.emulated_pct);
    theirs.add(row.saving_pct);
    ours.add(r.ours_pct);
    section.table.add_row(
        {std::string(of.model), std::string(of.gpu), static_cast<std::int64_t>(row.microbatches),
         row.saving_pct, r.account_pct, r.emulated_pct, r.realised_pct, r.realised_time_pct,
         r.ours_pct, r.most_pct, std::isnan(r.against_pct) ? Cell() : Cell(r.against_pct)});
    if (i % per_pipeline == 0)
      plot.push_back({fmt::format("{} {}", of.model.substr(0, 5), of.gpu.substr(0, 4)), {}, {}});
    plot.back().published.emplace_back(row.microbatches, row.saving_pct);
    plot.back().ours.emplace_back(row.microbatches, r.ours_pct);
  }
  section.notes = table6_notes(emulated);
  section.finding = fmt::format(
      "Energy saved by {} pipelines without stragglers: published {:.2f} to {:.2f} %, ours {:.2f} "
      "to {:.2f} %.",
      rows.size(), theirs.least, theirs.most, ours.least, ours.most);
  section.differences = {emulated};
  section.pictures =
      published_plot({.title = "Table 6: energy saved; lines ours, circles published",
                      .x = "microbatches",
                      .y = "%",
                      .logarithmic_x = true},
                     plot);
  return section;
}

PublishedSection figure7(const RunContext& context) {
  PublishedSection section{
      .key = "figure7",
      .heading =
          "Figure 7: energy saved while another pipeline is 1.2 times as slow, %, 96 microbatches",
      .seen = "Planned from the published stage profiles; no fit has seen the savings.",
      .table = OutputTable({{"model"},
                            {"gpu", "GPU"},
                            {"published_saving_pct", "published", 2},
                            {"published_time_ratio", "ends at", 2},
                            {"envpipe_saving_pct", "EnvPipe", 2},
                            {"saving_pct", "ours", 2},
                            {"most_saving_pct", "at most", 2},
                            {"time_ratio", "ends at", 2}})};
  for (const PublishedPipeline& of : published_table6) {
    const PipelineWork work = artifact_work(of, of.rows.back().microbatches);
    const PipelinePlanner planner(work, {}, context);
    const double base_s = planner.baseline().time_s, until_s = published_straggler * base_s;
    const StragglerPoint point = straggle(planner, std::vector<double>{until_s}, context).front();
    throw_if_interrupted(context);
    section.table.add_row({std::string(of.model), std::string(of.gpu), of.straggler_saving_pct,
                           of.straggler_time_ratio, of.straggler_envpipe_saving_pct,
                           saving_pct(point.result.energy_j, point.baseline_energy_j),
                           saving_pct(point.result.lower_bound_j, point.baseline_energy_j),
                           point.result.run.time_s / base_s});
  }
  section.notes =
      "Savings of one pipeline that waits for the slow one, against the highest clocks, which wait "
      "as well.\nends at: the plan's own time over the time of the highest clocks.\n";
  return section;
}

// What our own models say of a training whose profile was not published.
struct ModelledTraining {
  std::optional<SavingInterval> interval;
  double saving_pct = 0.0;
  std::vector<double> straggler_saving_pct;
};

ModelledTraining modelled(const PublishedTraining& of, const RunContext& context) {
  PipelineInput input;
  input.model = of.preset;
  input.gpu = of.spec;
  input.clocks = "full";
  input.stages = of.stages;
  input.microbatches = of.microbatches;
  input.batch = of.microbatch;
  const LoadedPipeline loaded = load_pipeline(input);
  const PipelinePlanner planner(loaded.work, {}, context);
  const double base_s = planner.baseline().time_s;
  ModelledTraining out;
  const PipelineResult plan =
      planner.plan(std::vector<double>{base_s}, AfterEnd::go_on, context).front();
  throw_if_interrupted(context);
  out.saving_pct = saving_pct(plan.energy_j, planner.baseline().energy_j);
  const SwitchModel free_changes;
  out.interval =
      PipelineIntervals(*loaded.modelled, loaded.kernel_clocks, loaded.work, free_changes)
          .of(plan.plan);
  std::vector<double> times_s;
  for (const double slowdown : published_slowdowns) times_s.push_back(slowdown * base_s);
  const std::vector<StragglerPoint> stragglers = straggle(planner, times_s, context);
  throw_if_interrupted(context);
  for (const StragglerPoint& point : stragglers)
    out.straggler_saving_pct.push_back(saving_pct(point.result.energy_j, point.baseline_energy_j));
  return out;
}

constexpr std::string_view modelled_seen =
    "Measured on real pipelines. Their stage profiles were not published, so nothing could be "
    "fitted to them. Where this project has a model of network and GPU, ours is predicted from the "
    "kernels of a GPT step. The GPU specs were fitted to other work (a40 to stages of GPT-3 175B). "
    "Layers in equal shares and sequences of 1024 tokens are assumed.";

PublishedSection table3(std::span<const std::optional<ModelledTraining>> ours) {
  PublishedSection section{.key = "table3",
                           .heading = "Table 3: energy saved without stragglers, %, measured",
                           .seen = std::string(modelled_seen),
                           .table = OutputTable({{"model"},
                                                 {"gpu", "GPU"},
                                                 {"stages"},
                                                 {"microbatches", "microb."},
                                                 {"published_saving_pct", "Perseus", 1},
                                                 {"published_time_pct", "time", 1},
                                                 {"envpipe_saving_pct", "EnvPipe", 1},
                                                 {"envpipe_time_pct", "time", 1},
                                                 {"saving_pct", "modelled", 1},
                                                 {"saving_low_pct", "low", 1},
                                                 {"saving_high_pct", "high", 1}})};
  Difference off{
      .what = "Saving of real pipelines, from models alone", .unit = "points", .headline = true};
  for (std::size_t i = 0; i < published_tables_3_and_4.size(); ++i) {
    const PublishedTraining& of = published_tables_3_and_4[i];
    if (ours[i]) off.add(of.perseus.saving_pct, ours[i]->saving_pct);
    std::vector<Cell> row{std::string(of.model),
                          std::string(of.gpu),
                          static_cast<std::int64_t>(of.stages),
                          static_cast<std::int64_t>(of.microbatches),
                          of.perseus.saving_pct,
                          of.perseus.slowdown_pct,
                          of.envpipe.saving_pct,
                          of.envpipe.slowdown_pct};
    if (ours[i]) {
      const Interval& energy = ours[i]->interval->energy;
      row.insert(row.end(), {ours[i]->saving_pct, -energy.high_pct, -energy.low_pct});
    } else {
      row.resize(row.size() + 3);
    }
    section.table.add_row(std::move(row));
  }
  section.notes =
      "modelled: without a profile or a measurement of these runs. low, high: 90 % interval. For "
      "eight rows there is no model here.\n";
  section.differences = {off};
  return section;
}

PublishedSection table4(std::span<const std::optional<ModelledTraining>> ours) {
  std::vector<Column> columns{{"model"}, {"gpu", "GPU"}, {"method"}};
  for (const double slowdown : published_slowdowns)
    columns.push_back(
        {fmt::format("saving_{:g}_pct", 100.0 * slowdown), fmt::format("{:g}", slowdown), 1});
  PublishedSection section{
      .key = "table4",
      .heading = "Table 4: energy saved while another pipeline is slower, %, measured",
      .seen = std::string(modelled_seen),
      .table = OutputTable(columns)};
  const auto add = [&](const PublishedTraining& of, const char* method,
                       std::span<const double> saved) {
    std::vector<Cell> row{std::string(of.model), std::string(of.gpu), std::string(method)};
    row.insert(row.end(), saved.begin(), saved.end());
    section.table.add_row(std::move(row));
  };
  Difference off{.what = "The same beside a slower pipeline", .unit = "points"};
  for (std::size_t i = 0; i < published_tables_3_and_4.size(); ++i) {
    const PublishedTraining& of = published_tables_3_and_4[i];
    add(of, "Perseus", of.perseus.straggler_saving_pct);
    add(of, "EnvPipe", of.envpipe.straggler_saving_pct);
    if (!ours[i]) continue;
    add(of, "modelled", ours[i]->straggler_saving_pct);
    for (std::size_t s = 0; s < ours[i]->straggler_saving_pct.size(); ++s)
      off.add(of.perseus.straggler_saving_pct[s], ours[i]->straggler_saving_pct[s]);
  }
  section.differences = {off};
  return section;
}

}  // namespace

Reproduction reproduce_perseus2024(const RunContext& context) {
  std::vector<std::optional<ModelledTraining>> ours(published_tables_3_and_4.size());
  std::optional<PublishedSection> savings, stragglers;
  const RunContext silent{.cancelled = context.cancelled};  // progress is of one thread at a time
  const std::vector<std::function<void()>> parts{
      [&] { savings = table6(silent); }, [&] { stragglers = figure7(silent); },
      [&] {
        parallel_for(ours.size(), [&](std::size_t i) {
          const PublishedTraining& of = published_tables_3_and_4[i];
          if (!of.preset.empty()) ours[i] = modelled(of, silent);
        });
      }};
  parallel_for(
      parts.size(), [&](std::size_t i) { parts[i](); }, LoopTasks::singly);
  return {.name = "perseus2024",
          .title =
              "Chung et al., Reducing Energy Bloat in Large Model Training (Perseus), SOSP 2024; "
              "numbers as the notebook of its artifact prints them (ml-energy/zeus 38cb3f9).",
          .sections = {table3(ours), table4(ours), std::move(*savings), std::move(*stragglers)}};
}

}  // namespace rubato
