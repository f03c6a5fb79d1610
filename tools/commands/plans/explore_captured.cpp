// rubato explore of captured runs: all streams, gaps and ranks, as an execution graph.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/graph/exploration.hpp"
#include "explorer/limited_exploration.hpp"
#include "explorer/next_capture.hpp"
#include "explorer/results/answers.hpp"
#include "explorer/results/capture_rows.hpp"
#include "explorer/results/run_writer.hpp"
#include "explorer/results/store.hpp"
#include "models/gpu/device.hpp"
#include "sim/timeline/graph.hpp"
#include "tools/commands/explore.hpp"
#include "tools/commands/plans/capture_screen.hpp"
#include "tools/commands/plans/capture_tables.hpp"
#include "tools/options/comm_sms.hpp"
#include "tools/options/files.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/table.hpp"
#include "tools/terminal/next_capture.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_file.hpp"
#include "tools/terminal/standard_error.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/graph/step_clocks.hpp"
#include "traces/odd_steps.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {

namespace {

std::vector<Capture> read_captures(const ExploreOptions& o) {
  std::vector<Capture> captures;
  for (const std::string& file : o.work) {
    Capture capture = read_told_capture(file, o.step.import);
    if (!o.step.step.empty()) capture = only_step(std::move(capture), o.step.step);
    captures.push_back(std::move(capture));
  }
  return captures;
}

// Slack is of the usual step: what an odd one takes longer is no time for the others.
void leave_out_odd_steps(const ExploreOptions& o, std::vector<Capture>& captures) {
  if (!o.step.step.empty() || captures.front().steps.empty()) return;
  if (captures.front().steps.size() == 1 && captures.front().step_source != StepSource::whole_file)
    tell("note: {}: only one step, so the scatter between steps is not known\n",
         printable(with_input_named(o.work.front())));
  std::vector<OddStep> odd = odd_steps(captures.front());
  for (auto step = odd.rbegin(); step != odd.rend(); ++step) {
    Capture& capture = captures.front();
    const std::string name = printable(capture.steps[step->position].name);
    std::optional<Capture> kept;
    if (captures.size() == 1) kept = without_step(capture, step->position);
    tell("note: step {} takes {:.2f} times the median step: {}\n", name, step->over_median,
         kept ? "it is left out, or the others could use its extra time"
              : "the others may use its extra time; --step plans one step alone");
    if (kept) capture = std::move(*kept);
  }
}

GpuSpec spec_of(const ExploreOptions& o, const std::vector<Capture>& captures) {
  try {
    return load_gpu_for_devices(o.gpu, device_names(captures), captures.front().provenance,
                                o.work.front());
  } catch (const UsageError&) {
    // What is wrong with the files is said before what is missing beside them.
    if (captures.size() > 1) (void)capture_graph(captures);
    throw;
  }
}

std::vector<Granularity> grains_of(const ExploreOptions& o, const GraphExplorationInput& input) {
  std::size_t gpus = 0;
  for (const Capture& capture : input.captures) gpus += capture.devices.size();
  return granularities_of(o.questions, gpus);
}

// Priorities of streams that have one: "0 of 2, -5 of 1". Empty where the files do not say.
std::string priorities_text(const std::vector<Capture>& captures) {
  std::map<std::int32_t, std::size_t, std::greater<>> streams;
  for (const Capture& capture : captures) {
    for (const CaptureStream& stream : capture.streams)
      if (stream.priority) ++streams[*stream.priority];
  }
  std::string text;
  for (const auto& [priority, count] : streams)
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", priority, count);
  return text;
}

ScreenLines print_result(const ExploreOptions& o, const GraphExplorationInput& input,
                         const GraphRequest& request, const GraphExploration& found) {
  const auto measurement = next_measurement(found);
  ShownRun shown = shown_run(input, request, found, o.db, o.plan_file);
  shown.next = next_text(measurement, *found.model, !o.captured.power.empty());
  return print_exploration(
      shown,
      [&] {
        return PlannedRun{capture_rows(request, found), capture_plans_rows(found)};
      },
      std::array{ListedTable{"collectives", [&] { return collectives_table(found); }, true},
                 ListedTable{"comm_sms", [&] { return comm_sms_table(found); }, true},
                 ListedTable{"next", [&] { return next_table(measurement); }, true}},
      o.lists, o.format);
}

// The captured run, the default clocks and every plan, replayed once more with all they do.
void write_timeline(const ExploreOptions& o, const GraphExploration& found) {
  const ClockGrid& grid = found.planner->grid();
  GraphSimulator simulator(*found.model, grid);
  std::vector<GraphRun> runs{
      simulator.run(uniform_plan(found.run->graph, grid.default_clock()), {.phases = true})};
  std::vector<std::string> titles{"default clocks"};
  for (const GraphPlanOutcome& outcome : found.plans) {
    const GraphPlanResult& result = outcome.result;
    if (!result.found()) continue;
    GraphSimulator of_plan(found.model_of(outcome), grid);
    runs.push_back(of_plan.run(result.plan, {.phases = true, .switching = result.switching}));
    titles.push_back(
        outcome.goal ? fmt::format("{}, {}", name_of(result.question.grain), name_of(*outcome.goal))
                     : fmt::format("{}, slack {} %", name_of(result.question.grain),
                                   format_number(percent * result.question.slack_frac)));
  }
  std::vector<GraphTrack> tracks;
  for (std::size_t i = 0; i < runs.size(); ++i) tracks.push_back({titles[i], &runs[i], &grid});
  FileWriter file(o.timeline);
  write_graph_timeline([&](std::string_view text) { file.write(text); }, found.run->graph,
                       found.model->spec(), tracks);
  tell_written(file.commit());
}

// A ResNet-50 on an H200 took 47.8 ms a step beside the profiler and 34.4 ms without (2026-11-27).
// Planned with the former, 1290 MHz take 1.6 % more time; with the latter 8.7 %.
void tell_of_profiler(const GraphExplorationInput& input, const GraphExploration& found) {
  constexpr double paced_by_host = 0.85;
  const double busy = busy_share(found.planner->baseline());
  if (input.step_time_s || input.captures.size() > 1 || busy >= paced_by_host) return;
  tell(
      "note: the GPU works {:.0f} % of the time, and the profiler slows down the host that it "
      "waits for: without it slower clocks cost more time than planned here; give the time of a "
      "step without it (--step-time)\n",
      percent * busy);
}

}  // namespace

CapturedRun captured_run(const ExploreOptions& o, const RunContext& context) {
  CapturedRun run{{.captures = read_captures(o),
                   .spec = {},
                   .captured_clock = {},
                   .grid = o.clocks,
                   .power_limit_w = o.power_limit_w,
                   .switching = {},
                   .disturbance = disturbance_of(o.disturb),
                   .comm_sms = comm_sms_of(o.comm_sms),
                   .questions = {},
                   .odds_frac = o.questions.odds_pct / percent,
                   .step_time_s = o.step_time_s,
                   .host_power_w = o.host_power_w.value_or(0.0)},
                  {.files = with_inputs_named(o.work),
                   .captured_clock = {},
                   .command = context.command_line,
                   .disturbance = fmt::format("{}", fmt::join(o.disturb, ","))}};
  GraphExplorationInput& input = run.input;
  GraphRequest& request = run.request;
  input.spec = with_kernels_of_table(spec_of(o, input.captures), o.table, input.captures, context);
  const CapturedLog log(o.captured, input.spec);
  const auto& label = log.clock();
  input.captured_clock = captured_clock(input.spec, label);
  input.spec = log.with_power(std::move(input.spec), input.captures, input.captured_clock);
  std::vector<Capture> recorded;  // what a power log lies beside
  if (!o.also.empty()) recorded = input.captures;
  leave_out_odd_steps(o, input.captures);
  if (recorded.size() > 1)
    throw UsageError("--also goes with one capture, not with those of several ranks");
  if (!o.also.empty())
    input.spec = log.with_other_captures(input.spec, {recorded.front(), input.captures.front()},
                                         input.captured_clock, o.also, o.step.import);
  if (label) {
    request.clock_source = o.captured.clock.empty() ? ClockSource::power_log : ClockSource::given;
  }
  const ClockGrid at_capture(input.spec, {input.captured_clock});
  request.captured_clock = at_capture.label(*at_capture.find(input.captured_clock));
  request.grid = input.grid;
  input.switching = switch_model(o.switching.empty() ? "spec" : o.switching, input.spec);
  return run;
}

ExitStatus explore_captured_run(const ExploreOptions& o, const RunContext& context) {
  CapturedRun run = captured_run(o, context);
  GraphExplorationInput& input = run.input;
  const GraphRequest& request = run.request;
  QuestionOptions asked = o.questions;
  if (time_budget_s(asked)) ask_for_time(asked, default_step_s(input));
  input.questions = questions_of(asked, RunKind::capture, grains_of(o, input));
  const PlanFileDatabase db(o.db, o.plan_file);
  // A database that cannot be written is better known before the work than after it.
  if (!db.path().empty()) (void)ResultStore::open(db.path());

  give_parts();
  const TimeLimit limit(o.limits.time_s, context);
  const GraphExploration found = explore_captured(input, limit.context());
  for (const std::string& note : found.run->ranks.notes) tell("note: {}\n", note);
  if (const std::string priorities = priorities_text(input.captures); !priorities.empty())
    tell("note: priorities of streams, as captured: {} (the lower, the more urgent; not used)\n",
         priorities);
  tell_of_profiler(input, found);
  const ScreenLines said = print_result(o, input, request, found);
  if (!o.timeline.empty()) write_timeline(o, found);
  if (!db.path().empty()) {
    const std::int64_t id = store_graph_run(db.path(), request, found);
    store_screen(db.path(), id, said);
    if (db.is_kept()) tell("stored as run {} in {}\n", id, o.db);
    db.write_plan(fmt::format("{}", id), input.spec);
  }
  return answers_of(found).some_hold() ? ExitStatus::done : ExitStatus::no_plan;
}

}  // namespace rubato
