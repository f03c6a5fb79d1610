// rubato experiment slurm: an experiment as a Slurm job array and a merge job.

#include <cctype>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <sys/wait.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "explorer/experiments/shards.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/experiments/experiment.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/progress_line.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

namespace fs = std::filesystem;

struct SlurmOptions {
  std::string file, db, folder, program;
  std::size_t shards = 0, cpus = 1, retries = 2;
  std::string time_limit;
  std::vector<std::string> directives;
  bool submit = false;
};

// Paths go into scripts and #SBATCH lines, which know no way to write a line break.
std::string absolute(const std::string& path) {
  std::string text = fs::absolute(path).lexically_normal().string();
  if (printable(text) != text || text.find('"') != std::string::npos)
    throw UsageError(
        fmt::format("{}: the path has characters a job script cannot hold", printable(text)));
  return text;
}

std::string job_name(const std::string& experiment) {
  std::string name = "rubato-";
  for (const char c : experiment.substr(0, 32)) {
    const auto byte = static_cast<unsigned char>(c);
    name += byte < 0x80 && std::isalnum(byte) != 0 ? c : '-';
  }
  return name;
}

std::string header(const SlurmOptions& o, const std::string& name, const std::string& log) {
  std::string text = fmt::format(
      "#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --output=\"{}/logs/{}\"\n", name, o.folder, log);
  if (!o.time_limit.empty()) text += fmt::format("#SBATCH --time={}\n", o.time_limit);
  for (const std::string& directive : o.directives) text += fmt::format("#SBATCH {}\n", directive);
  return text;
}

std::string array_script(const SlurmOptions& o, const std::string& name) {
  return header(o, name, "%a.log") +
         fmt::format(
             R"(#SBATCH --array=1-{shards}
#SBATCH --cpus-per-task={cpus}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
# One shard of the experiment. Finished units are kept, so every attempt goes on where the last one ended.
shard=$SLURM_ARRAY_TASK_ID
trap 'kill -TERM "$child"' TERM
for attempt in $(seq {attempts}); do
  {program} experiment run {file} --db {folder}/shards/"$shard".db --shard "$shard"/{shards} \
    --threads {cpus} --log {folder}/logs/"$shard".jsonl &
  child=$!
  wait "$child"; status=$?
  # A wait that a signal ended has left the program running.
  while kill -0 "$child" 2> /dev/null; do wait "$child"; status=$?; done
  case $status in
    0) exit 0 ;;
    2 | 3) echo "shard $shard: cannot be run, status $status"; exit "$status" ;;
    130) echo "shard $shard: interrupted, goes back to the queue"
         exec scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$shard" ;;
  esac
  echo "shard $shard: attempt $attempt of {attempts} ended with status $status"
  sleep "$attempt"
done
exit "$status"
)",
             fmt::arg("shards", o.shards), fmt::arg("cpus", o.cpus),
             fmt::arg("attempts", o.retries + 1), fmt::arg("program", shell_word(o.program)),
             fmt::arg("file", shell_word(o.file)), fmt::arg("folder", shell_word(o.folder)));
}

std::string merge_script(const SlurmOptions& o, const std::string& name) {
  return header(o, name + "-merge", "merge.log") +
         fmt::format(R"(# Merges what the array has finished; status 1 if a shard is missing.
set -u
{program} merge {folder}/shards/*.db -o {db} || exit
missing=0
for shard in $(seq {shards}); do
  grep -q '"event":"sweep_finished"' {folder}/logs/"$shard".jsonl || {{ echo "shard $shard is not finished"; missing=1; }}
done
exit "$missing"
)",
                     fmt::arg("program", shell_word(o.program)),
                     fmt::arg("folder", shell_word(o.folder)), fmt::arg("db", shell_word(o.db)),
                     fmt::arg("shards", o.shards));
}

std::string submit_script(const SlurmOptions& o) {
  return fmt::format(R"(#!/bin/bash
# Submits the array and the merge job that waits for it; prints both job numbers.
set -euo pipefail
array=$(sbatch --parsable {0}/array.sh)
merge=$(sbatch --parsable --dependency=afterany:"$array" {0}/merge.sh)
echo "array $array merge $merge"
)",
                     shell_word(o.folder));
}

void check(const SlurmOptions& o) {
  for (const std::string& directive : o.directives) {
    if (!directive.starts_with("-") || printable(directive) != directive)
      throw UsageError(
          fmt::format("--sbatch '{}'; expected an option of sbatch, e.g. --sbatch=--partition=cpu",
                      printable(directive)));
  }
  if (o.time_limit.find_first_not_of("0123456789:-") != std::string::npos)
    throw UsageError(fmt::format("--time '{}'; expected a Slurm time such as 02:00:00",
                                 printable(o.time_limit)));
}

ExitStatus run(SlurmOptions o) {
  check(o);
  const SweepPlan plan = plan_sweep(read_experiment(o.file));
  o.file = absolute(o.file);
  o.db = absolute(o.db);
  o.folder = absolute(o.folder.empty() ? fs::path(o.file).stem().string() + "-slurm" : o.folder);
  o.program = absolute(o.program.empty() ? fs::read_symlink("/proc/self/exe").string() : o.program);
  std::error_code failed;
  for (const char* part : {"shards", "logs"})
    fs::create_directories(fs::path(o.folder) / part, failed);
  if (failed)
    throw IoError(fmt::format("{}: cannot create the folder: {}", o.folder, failed.message()));
  const std::string name = job_name(plan.experiment.name);
  write_file(o.folder + "/array.sh", array_script(o, name));
  write_file(o.folder + "/merge.sh", merge_script(o, name));
  write_file(o.folder + "/submit.sh", submit_script(o));
  double longest_s = 0.0;
  for (std::size_t i = 1; i <= o.shards; ++i)
    longest_s = std::max(longest_s, estimated_time_s(plan, units_of(plan, {i, o.shards})));
  tell("{} units in {} shards, the longest about {} of one core (rough); wrote {}\n",
       plan.units.size(), o.shards, duration_text(longest_s), o.folder);
  if (!o.submit) {
    print(fmt::format("bash {}/submit.sh\n", shell_word(o.folder)));
    return ExitStatus::done;
  }
  const int status = std::system(fmt::format("bash {}/submit.sh", shell_word(o.folder)).c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ExitStatus::done;
  throw IoError(
      "the jobs could not be submitted",
      {.in = {},
       .hint = "is sbatch installed here? the scripts stay; run submit.sh on a login node"});
}

}  // namespace

Action setup_slurm(CommandLine& app) {
  auto o = std::make_shared<SlurmOptions>();
  app.add_option("EXPERIMENT", o->file, "Experiment file (TOML)")->required();
  app.add_option("--db", o->db, "Database that the shards are merged into")->required();
  app.add_option("--shards", o->shards, "Tasks of the array")->required()->in_range(1, 100000);
  app.add_option("--cpus", o->cpus, "Cores of a task")->in_range(1, 4096)->capture_default_str();
  app.add_option("--retries", o->retries, "Further attempts of a shard that fails")
      ->in_range(0, 100)
      ->capture_default_str();
  app.add_option(
      "--time", o->time_limit,
      "Time limit of a job [the cluster's]; a shard that meets it goes back to the queue");
  app.add_option("--sbatch", o->directives,
                 "Another option of sbatch, e.g. --sbatch=--partition=cpu (repeatable)");
  app.add_option("--program", o->program, "rubato on the nodes [this program]");
  app.add_option("-o,--output", o->folder,
                 "Folder for scripts, shards and logs, seen by all nodes [NAME-slurm]");
  app.add_flag("--submit", o->submit, "Submit at once");
  return [o](const RunContext&) { return run(*o); };
}

}  // namespace rubato
