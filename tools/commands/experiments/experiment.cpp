// rubato experiment: experiments from a file.

#include <array>
#include <memory>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/experiments/shards.hpp"
#include "explorer/experiments/sweep.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/experiments/experiment.hpp"
#include "tools/options/gpu.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress_line.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/sweep_log.hpp"

namespace rubato {

namespace {

struct RunOptions {
  std::string file, db, shard = "1/1";
  std::size_t threads = 0;
  bool dry_run = false;
  SweepLogOptions log;
  OutputFormat format = OutputFormat::table;
};

std::size_t thread_count(const RunOptions& o) {
  return o.threads > 0 ? o.threads : std::max(1U, std::thread::hardware_concurrency());
}

// What is to be run, and how long that may take on this machine.
struct Work {
  SweepPlan plan;
  std::vector<std::size_t> mine, left;
  std::vector<bool> finished;
  double estimated_s = 0.0;
  double scale = 1.0;
};

// Says before the first unit what to know of each spec and each captured run, once each.
void say_what_to_know(const SweepPlan& plan) {
  std::set<const GpuSpec*> specs;
  std::set<const CapturedFiles*> captured;
  std::set<std::pair<const CapturedFiles*, const GpuSpec*>> pairs;
  for (const Setting& setting : plan.settings) {
    if (specs.insert(setting.spec.get()).second) say_if_not_calibrated(*setting.spec);
    if (setting.captured() == nullptr) continue;
    const CapturedFiles& run = *setting.captured()->run;
    if (captured.insert(&run).second) {
      for (const std::string& note : run.notes) tell("note: {}\n", printable(note));
    }
    if (pairs.emplace(&run, setting.spec.get()).second)
      check_devices(*setting.spec, device_names(run.captures), run.name);
  }
}

Work work_of(const RunOptions& o, SweepStore* store) {
  Work work{.plan = plan_sweep(read_experiment(o.file)), .mine = {}, .left = {}, .finished = {}};
  say_what_to_know(work.plan);
  const Shard shard = parse_shard(o.shard);
  work.mine = units_of(work.plan, shard);
  work.finished.assign(work.plan.units.size(), false);
  if (store != nullptr) {
    work.finished = store->finished(work.plan);
    work.scale = store->estimate_scale();
  }
  for (const std::size_t u : work.mine) {
    if (!work.finished[u]) work.left.push_back(u);
  }
  const double one_core_s = work.scale * estimated_time_s(work.plan, work.left);
  double longest_s = 0.0;
  for (const std::size_t u : work.left)
    longest_s = std::max(longest_s, work.scale * work.plan.units[u].estimated_s);
  work.estimated_s = std::max(longest_s, one_core_s / static_cast<double>(thread_count(o)));
  return work;
}

std::string summary_text(const RunOptions& o, const Work& work) {
  const SweepPlan& plan = work.plan;
  std::string text =
      fmt::format("experiment '{}': {} units in {} settings", printable(plan.experiment.name),
                  plan.units.size(), plan.settings.size());
  if (plan.experiment.filtered > 0)
    text += fmt::format(", {} left out by filters", plan.experiment.filtered);
  if (plan.repeated > 0) text += fmt::format(", {} asked twice", plan.repeated);
  if (o.shard != "1/1") text += fmt::format("; shard {} has {}", o.shard, work.mine.size());
  text += fmt::format("; {} finished, {} to run", work.mine.size() - work.left.size(),
                      work.left.size());
  if (!work.left.empty())
    text += fmt::format(
        ", {} on {} thread{}{}",
        work.estimated_s < 1.0 ? "less than a second" : "about " + duration_text(work.estimated_s),
        thread_count(o), thread_count(o) == 1 ? "" : "s",
        work.scale == 1.0 ? " (rough: nothing timed yet)" : "");
  return text + '\n';
}

std::string outcome_text(const SweepSummary& summary, const std::string& db) {
  std::string text = fmt::format("{} units finished", summary.finished);
  if (summary.failed > 0) text += fmt::format(", {} failed", summary.failed);
  if (summary.stored_elsewhere > 0) {
    text += fmt::format(", {} stored by another process (--shard i/n divides the work)",
                        summary.stored_elsewhere);
  }
  if (summary.interrupted())
    text += fmt::format(
        ", those in flight at Ctrl-C included; {} not started: the same command continues",
        summary.not_started);
  return text + fmt::format("; stored in {}", db);
}

OutputTable units_table(const Work& work, std::size_t most) {
  OutputTable table({{"unit_id", "unit"},
                     {"state"},
                     {"estimated_s", "est. s", 3},
                     {"scenario"},
                     {"unit_label", "what"}});
  for (std::size_t i = 0; i < std::min(most, work.mine.size()); ++i) {
    const Unit& unit = work.plan.units[work.mine[i]];
    table.add_row({unit.id, std::string(work.finished[work.mine[i]] ? "finished" : "to run"),
                   work.scale * unit.estimated_s, unit.scenarios.front(),
                   unit_label(work.plan, unit)});
  }
  return table;
}

ExitStatus dry_run(const RunOptions& o) {
  std::optional<SweepStore> store;
  if (!o.db.empty() && std::filesystem::exists(o.db)) store.emplace(o.db);
  const Work work = work_of(o, store ? &*store : nullptr);
  constexpr std::size_t shown = 20;
  const bool whole = o.format != OutputFormat::table;
  print(units_table(work, whole ? work.mine.size() : shown), o.format);
  if (!whole && work.mine.size() > shown)
    print(fmt::format("... and {} more (--json lists all)\n", work.mine.size() - shown));
  tell("{}", summary_text(o, work));
  return ExitStatus::done;
}

ExitStatus run(const RunOptions& o, const RunContext& context) {
  if (o.dry_run) return dry_run(o);
  if (o.db.empty())
    throw UsageError("--db is missing", {.in = {}, .hint = "or look first with --dry-run"});
  // A mistake in the file leaves no empty database behind.
  (void)read_experiment(o.file);
  SweepStore store(o.db);
  const Work work = work_of(o, &store);
  tell("{}", summary_text(o, work));
  store.begin(work.plan);
  give_parts(false);  // the log tells
  SweepLog log(work.plan, o.log, context);
  log.begin(work.mine.size(), work.mine.size() - work.left.size(), work.estimated_s);
  const SweepSummary summary =
      run_sweep(work.plan, work.left, store,
                {.threads = o.threads, .command = context.command_line}, log.observer(), context);
  log.end(summary);
  print_message(outcome_text(summary, o.db));
  return summary.failed > 0 ? ExitStatus::input : ExitStatus::done;
}

Action setup_run(CommandLine& app) {
  auto o = std::make_shared<RunOptions>();
  app.add_option("EXPERIMENT", o->file, "Experiment file (TOML)")->required();
  app.add_option("--db", o->db, "Result database");
  app.add_flag("--dry-run", o->dry_run, "Only show what would be run, and about how long");
  app.add_option("--shard", o->shard, "Run part i of n, e.g. 3/8")->capture_default_str();
  app.add_option("--threads", o->threads, "Units at the same time [one per core]")
      ->in_range(1, 4096);
  app.add_option("--log", o->log.json_file, "Append JSON lines to this file; - is standard error");
  app.add_flag("-v,--verbose", o->log.verbose, "A line per unit on standard error");
  add_format_options(app, o->format);
  app.footer(
      "A unit is one question in one setting. Each is stored as it is finished; kill the program "
      "at any time and nothing finished is lost. Ctrl-C finishes the units in flight. Exit status "
      "130 after Ctrl-C, 3 if a unit failed.");
  return [o](const RunContext& context) { return run(*o, context); };
}

Action setup_new(CommandLine& app) {
  auto out = std::make_shared<std::string>("-");
  app.add_option("-o,--output", *out, "File; - is standard output")->capture_default_str();
  return [out](const RunContext&) {
    if (*out != "-" && std::filesystem::exists(*out)) {
      throw IoError(fmt::format("{}: the file exists; expected a new name", printable(*out)));
    }
    write_file(*out, experiment_template());
    return ExitStatus::done;
  };
}

}  // namespace

Action setup_experiment(CommandLine& app) {
  static constexpr std::array choices{
      Command{"new", "Write a commented experiment file", &setup_new},
      Command{"run", "Run what is not finished yet; the same command resumes", &setup_run},
      Command{"slurm", "Write, and on request submit, a Slurm job array", &setup_slurm}};
  return one_of(app, choices);
}

}  // namespace rubato
