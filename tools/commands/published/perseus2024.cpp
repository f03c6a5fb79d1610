#include "tools/commands/published/perseus2024.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <ranges>

#include <fmt/format.h>

#include "common/algorithms/parallel.hpp"
#include "common/numbers.hpp"
#include "explorer/pipeline/intervals.hpp"
#include "explorer/pipeline/lowtime.hpp"
#include "explorer/pipeline/straggler.hpp"
#include "explorer/published.hpp"
#include "tools/options/pipeline.hpp"

namespace rubato {

namespace {

constexpr std::uint32_t artifact_stages = 8;

PipelineWork artifact_work(const PublishedPipeline& of) {
  return pipeline_work(make_schedule({.stages = artifact_stages, .microbatches = of.microbatches}),
                       parse_pipeline_profile(published_data(of.profile), of.profile),
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

Table6Row table6_row(const PublishedPipeline& of, const RunContext& context) {
  const PipelineWork work = artifact_work(of);
  const PipelinePlanner planner(work, {}, context);
  throw_if_interrupted(context);
  const PipelineRun& base = planner.baseline();
  const LowtimeResult theirs = emulate_lowtime(work, of.step_s);
  const std::vector<PipelineResult> ours =
      planner.plan(std::vector<double>{base.time_s, theirs.run.time_s}, AfterEnd::go_on, context);
  throw_if_interrupted(context);
  return {.account_pct =
              saving_pct(of.planned_energy_j, highest_clocks_energy_j(work, of.planned_time_s)),
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
  const std::vector<PublishedPipeline>& published = published_table6();
  std::vector<Table6Row> rows(published.size());
  parallel_for(rows.size(), [&](std::size_t i) { rows[i] = table6_row(published[i], context); });
  LeastAndMost theirs, ours;
  Difference emulated{.what = "Perseus' own account of its plans, emulated from stage profiles",
                      .unit = "points"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PublishedPipeline& of = published[i];
    const Table6Row& r = rows[i];
    emulated.add(of.saving_pct, r.emulated_pct);
    theirs.add(of.saving_pct);
    ours.add(r.ours_pct);
    section.table.add_row({of.model, of.gpu, static_cast<std::int64_t>(of.microbatches),
                           of.saving_pct, r.account_pct, r.emulated_pct, r.realised_pct,
                           r.realised_time_pct, r.ours_pct, r.most_pct,
                           std::isnan(r.against_pct) ? Cell() : Cell(r.against_pct)});
  }
  section.notes = table6_notes(emulated);
  section.finding = fmt::format(
      "Energy saved by {} pipelines without stragglers: published {:.2f} to {:.2f} %, ours {:.2f} "
      "to {:.2f} %.",
      rows.size(), theirs.least, theirs.most, ours.least, ours.most);
  section.differences = {emulated};
  section.charts =
      R"([{"title": "Energy saved, %", "pairs": [["microbatches", "saving_pct", "ours"],
        ["microbatches", "published_saving_pct", "published"]], "log": "x", "panels": ["gpu"], "by": "model"}])";
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
  constexpr double straggler = 1.2;
  const PublishedTable published("figure7");
  for (std::size_t i = 0; i < published.rows(); ++i) {
    // The pipeline of the most microbatches, which stands last.
    const std::string& profile = published.text(i, "profile");
    const auto& pipelines = published_table6();
    const auto of = std::ranges::find(pipelines.rbegin(), pipelines.rend(), profile,
                                      &PublishedPipeline::profile);
    const PipelineWork work = artifact_work(*of);
    const PipelinePlanner planner(work, {}, context);
    const double base_s = planner.baseline().time_s, until_s = straggler * base_s;
    const StragglerPoint point = straggle(planner, std::vector<double>{until_s}, context).front();
    throw_if_interrupted(context);
    section.table.add_row({published.text(i, "model"), published.text(i, "gpu"),
                           published.number(i, "saving_pct"), published.number(i, "time_ratio"),
                           published.number(i, "envpipe_saving_pct"),
                           saving_pct(point.result.energy_j, point.baseline_energy_j),
                           saving_pct(point.result.lower_bound_j, point.baseline_energy_j),
                           point.result.run.time_s / base_s});
  }
  section.notes =
      "Savings of one pipeline that waits for the slow one, against the highest clocks, which wait "
      "as well.\nends at: the plan's own time over the time of the highest clocks.\n";
  return section;
}

// Tables 3 and 4: a training has two rows, of Perseus and of EnvPipe.
constexpr std::array slowdowns{1.05, 1.1, 1.2, 1.3, 1.4, 1.5};

struct PublishedTrainings {
  PublishedTable table{"trainings"};

  [[nodiscard]] std::size_t size() const { return table.rows() / 2; }
  [[nodiscard]] const std::string& text(std::size_t training, const char* column) const {
    return table.text(2 * training, column);
  }
  [[nodiscard]] std::uint32_t count(std::size_t training, const char* column) const {
    return table.count(2 * training, column);
  }
  [[nodiscard]] double perseus(std::size_t training, std::string_view column) const {
    return table.number(2 * training, column);
  }
  [[nodiscard]] double envpipe(std::size_t training, std::string_view column) const {
    return table.number(2 * training + 1, column);
  }
};

std::string slowed_column(double slowdown) { return fmt::format("saving_pct_at_{:g}", slowdown); }

// What our own models say of a training whose profile was not published.
struct ModelledTraining {
  std::optional<SavingInterval> interval;
  double saving_pct = 0.0;
  std::vector<double> straggler_saving_pct;
};

ModelledTraining modelled(const PublishedTrainings& of, std::size_t training,
                          const RunContext& context) {
  PipelineInput input;
  input.model = of.text(training, "preset");
  input.gpu = of.text(training, "spec");
  input.clocks = "full";
  input.stages = of.count(training, "stages");
  input.microbatches = of.count(training, "microbatches");
  input.batch = of.count(training, "microbatch");
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
  for (const double slowdown : slowdowns) times_s.push_back(slowdown * base_s);
  const std::vector<StragglerPoint> stragglers = straggle(planner, times_s, context);
  throw_if_interrupted(context);
  for (const StragglerPoint& point : stragglers)
    out.straggler_saving_pct.push_back(saving_pct(point.result.energy_j, point.baseline_energy_j));
  return out;
}

PublishedSection table3(const PublishedTrainings& of,
                        std::span<const std::optional<ModelledTraining>> ours) {
  PublishedSection section{.key = "table3",
                           .heading = "Table 3: energy saved without stragglers, %, measured",
                           .seen =
                               "Measured on real pipelines, whose stage profiles were not "
                               "published. Ours is predicted from the kernels of a GPT step, on "
                               "GPU specs fitted to other work (a40 to stages of GPT-3 175B). "
                               "Layers in equal shares and sequences of 1024 tokens are assumed.",
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
  section.summary = section.table;  // what we have a model of
  Difference off{
      .what = "Saving of real pipelines, from models alone", .unit = "points", .headline = true};
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (ours[i]) off.add(of.perseus(i, "saving_pct"), ours[i]->saving_pct);
    std::vector<Cell> row{of.text(i, "model"),
                          of.text(i, "gpu"),
                          static_cast<std::int64_t>(of.count(i, "stages")),
                          static_cast<std::int64_t>(of.count(i, "microbatches")),
                          of.perseus(i, "saving_pct"),
                          of.perseus(i, "time_pct"),
                          of.envpipe(i, "saving_pct"),
                          of.envpipe(i, "time_pct")};
    if (ours[i]) {
      const Interval& energy = ours[i]->interval->energy;
      row.insert(row.end(), {ours[i]->saving_pct, -energy.high_pct, -energy.low_pct});
    } else {
      row.resize(row.size() + 3);
    }
    if (ours[i]) section.summary->add_row(row);
    section.table.add_row(std::move(row));
  }
  section.notes =
      "modelled: without a profile or a measurement of these runs. low, high: 90 % interval. The "
      "rows without a model here are in --json.\n";
  section.differences = {off};
  return section;
}

PublishedSection table4(const PublishedTrainings& of,
                        std::span<const std::optional<ModelledTraining>> ours) {
  std::vector<Column> columns{{"model"}, {"gpu", "GPU"}, {"method"}};
  for (const double slowdown : slowdowns)
    columns.push_back(
        {fmt::format("saving_{:g}_pct", 100.0 * slowdown), fmt::format("{:g}", slowdown), 1});
  PublishedSection section{
      .key = "table4",
      .heading = "Table 4: energy saved while another pipeline is slower, %, measured",
      .seen = "As of Table 3.",
      .table = OutputTable(columns),
      .summary = OutputTable(columns)};
  Difference off{.what = "The same beside a slower pipeline", .unit = "points"};
  for (std::size_t i = 0; i < of.size(); ++i) {
    std::vector<Cell> perseus{of.text(i, "model"), of.text(i, "gpu"), std::string("Perseus")};
    std::vector<Cell> envpipe = perseus, modelled = perseus;
    envpipe.back() = std::string("EnvPipe");
    modelled.back() = std::string("modelled");
    for (std::size_t s = 0; s < slowdowns.size(); ++s) {
      const std::string column = slowed_column(slowdowns.at(s));
      perseus.emplace_back(of.perseus(i, column));
      envpipe.emplace_back(of.envpipe(i, column));
      if (!ours[i]) continue;
      modelled.emplace_back(ours[i]->straggler_saving_pct[s]);
      off.add(of.perseus(i, column), ours[i]->straggler_saving_pct[s]);
    }
    for (std::vector<Cell>* row : {&perseus, &envpipe, &modelled}) {
      if (row == &modelled && !ours[i]) continue;
      if (ours[i]) section.summary->add_row(*row);
      section.table.add_row(std::move(*row));
    }
  }
  section.differences = {off};
  return section;
}

}  // namespace

Reproduction reproduce_perseus2024(const RunContext& context) {
  const PublishedTrainings trainings;
  std::vector<std::optional<ModelledTraining>> ours(trainings.size());
  std::optional<PublishedSection> savings, stragglers;
  const RunContext silent{.cancelled = context.cancelled};  // progress is of one thread at a time
  const std::vector<std::function<void()>> parts{[&] { savings = table6(silent); },
                                                 [&] { stragglers = figure7(silent); },
                                                 [&] {
                                                   parallel_for(ours.size(), [&](std::size_t i) {
                                                     if (!trainings.text(i, "preset").empty())
                                                       ours[i] = modelled(trainings, i, silent);
                                                   });
                                                 }};
  parallel_for(
      parts.size(), [&](std::size_t i) { parts[i](); }, LoopTasks::singly);
  return {.name = "perseus2024",
          .title =
              "Chung et al., Reducing Energy Bloat in Large Model Training (Perseus), SOSP 2024; "
              "numbers as the notebook of its artifact prints them (ml-energy/zeus 38cb3f9).",
          .sections = {table3(trainings, ours), table4(trainings, ours), std::move(*savings),
                       std::move(*stragglers)}};
}

}  // namespace rubato
