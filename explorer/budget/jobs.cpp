#include "explorer/budget/jobs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/plan_choice.hpp"
#include "models/calibration/sweep.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/spec.hpp"
#include "models/measured/measured_table.hpp"
#include "traces/trace.hpp"

namespace rubato {

namespace {

constexpr double errors_in_90_pct = 1.6449;  // standard errors from the middle to an end

// Errors of a change of time and of power, as shares.
struct ChangeErrors {
  double time = 0.0, power = 0.0;
};

// Options as a run or a table has them: power of its own GPUs.
struct Settings {
  std::string gpu = {};
  double gpus = 1.0;
  std::vector<JobOption> options = {};  // the default clocks first
  bool level_known = false;  // power_error holds that of the power at the default clocks too
  std::vector<std::string> notes = {};
};

std::optional<ChangeErrors> errors_of(const std::vector<SqlValue>& row, std::size_t first) {
  std::vector<double> pct;
  for (std::size_t i = first; i < first + 4; ++i) {
    if (std::holds_alternative<std::monostate>(row[i])) return std::nullopt;
    pct.push_back(real(row[i]));
  }
  const auto error = [&](std::size_t low) {
    const double middle = percent + 0.5 * (pct[low] + pct[low + 1]);
    return 0.5 * (pct[low + 1] - pct[low]) / errors_in_90_pct / middle;
  };
  const double time = error(0), energy = error(2);
  return ChangeErrors{time, std::hypot(time, energy)};
}

class RunSettings {
 public:
  RunSettings(const std::filesystem::path& db, const std::string& run)
      : db_(db),
        store_(ResultStore::open_read_only(db)),
        run_(find_stored_run(store_, run)),
        spec_(stored_spec(store_, run_.id)) {}

  [[nodiscard]] Settings settings() {
    const StoredBaseline base = stored_baseline(store_, run_.id);
    const double default_w = base.energy_j / base.time_s;
    Settings found{.gpu = spec_ ? spec_->name : db_.string(),
                   .gpus = base.gpus,
                   .options = {{.setting = "default clocks",
                                .time_s = base.time_s,
                                .power_w = default_w,
                                .time_error = 0.0,
                                .power_error = 0.0}},
                   .notes = {}};
    read_errors();
    if (run_.kind != "pipeline") add_clocks(found);
    add_plans(found);
    if (!widest_)
      found.notes.emplace_back("no plan of the run has an interval: its errors are not known");
    return found;
  }

 private:
  static constexpr std::string_view interval =
      "time_change_low_pct, time_change_high_pct, energy_change_low_pct, energy_change_high_pct";

  // Of plans with one clock by its label; the widest of all plans.
  void read_errors() {
    for (const auto& row :
         store_
             .query(fmt::format("SELECT ifnull(clock, ''), {} FROM v_plans WHERE run_id = ?",
                                interval),
                    {run_.id})
             .rows) {
      const auto errors = errors_of(row, 1);
      if (!errors) continue;
      if (!text(row[0]).empty()) of_clock_.insert_or_assign(text(row[0]), *errors);
      if (!widest_) widest_.emplace();
      widest_->time = std::max(widest_->time, errors->time);
      widest_->power = std::max(widest_->power, errors->power);
    }
  }

  void add(Settings& found, JobOption option, const std::optional<ChangeErrors>& errors) const {
    if (errors) {
      option.time_error = errors->time;
      option.power_error = errors->power;
    }
    found.options.push_back(std::move(option));
  }

  void add_clocks(Settings& found) const {
    for (const auto& row :
         store_
             .query("SELECT clock, time_s, energy_j FROM v_clocks WHERE run_id = ? "
                    "AND NOT is_default AND time_s NOT NULL ORDER BY clock_id",
                    {run_.id})
             .rows) {
      const std::string& label = text(row[0]);
      const auto own = of_clock_.find(label);
      add(found,
          {.setting = label,
           .command = spec_ ? setting_commands(*spec_, parse_clock_pair(*spec_, label)).set : "",
           .time_s = real(row[1]),
           .power_w = real(row[2]) / real(row[1])},
          own == of_clock_.end() ? widest_ : std::optional(own->second));
    }
  }

  // Plans of several clocks; those of one are among the clocks, but for pipelines.
  void add_plans(Settings& found) const {
    for (const auto& row :
         store_
             .query(fmt::format("SELECT plan_id, granularity, time_s, energy_j, {} FROM v_plans "
                                "WHERE run_id = ? AND applicable AND time_s NOT NULL AND (clock IS "
                                "NULL OR kind = 'pipeline') ORDER BY plan_id",
                                interval),
                    {run_.id})
             .rows) {
      const auto errors = errors_of(row, 4);
      add(found,
          {.setting = fmt::format("plan {} per {}", whole(row[0]), text(row[1])),
           .command = fmt::format("rubato export --plan {} --plan-id {} --db {} -o plan.json",
                                  run_.id, whole(row[0]), shell_word(db_.string())),
           .time_s = real(row[2]),
           .power_w = real(row[3]) / real(row[2])},
          errors ? errors : widest_);
    }
  }

  std::filesystem::path db_;
  ResultStore store_;
  StoredRun run_;
  std::optional<GpuSpec> spec_;
  std::map<std::string, ChangeErrors> of_clock_;
  std::optional<ChangeErrors> widest_;
};

// Measured settings: each cell has the noise of repeats, and the level is measured too.
Settings settings_of_table(const std::filesystem::path& path, const GpuSpec& spec) {
  const MeasuredTable table =
      measured_table(read_sweep(path, spec), spec, std::nullopt, MissingCells::leave_out);
  const ClockGrid grid(table.spec, table.clocks);
  const std::vector<std::uint64_t> launches = launch_counts(table.trace);
  const RepeatNoise noise = table.noise.value_or(RepeatNoise{.time = 0.005, .energy = 0.01});
  Settings found{.gpu = spec.name, .level_known = true, .notes = table.notes};
  if (!table.noise)
    found.notes.emplace_back(
        "no cell was measured twice: errors of 0.5 % in time and 1 % in energy, a guess");
  const auto add = [&](ClockId id) {
    CompensatedSum time_s, energy_j;
    for (std::size_t k = 0; k < launches.size(); ++k) {
      const OperatingPoint* cell = table.cells->find(id_at<KernelId>(k), grid[id]);
      time_s.add(static_cast<double>(launches[k]) * cell->time_s);
      energy_j.add(static_cast<double>(launches[k]) * cell->energy_j);
    }
    found.options.push_back({.setting = grid.label(id),
                             .command = setting_commands(spec, grid[id]).set,
                             .time_s = time_s.value(),
                             .power_w = energy_j.value() / time_s.value(),
                             .time_error = noise.time,
                             .power_error = std::hypot(noise.time, noise.energy)});
  };
  add(grid.default_clock());
  for (std::size_t c = 0; c < grid.size(); ++c) {
    if (id_at<ClockId>(c) != grid.default_clock()) add(id_at<ClockId>(c));
  }
  return found;
}

double positive_or(const JsonNode& node, std::string_view key, double fallback) {
  return node.optional_number(key, Range::positive).value_or(fallback);
}

// "latest" or a number.
std::string run_of(const JsonNode& job) {
  const auto run = job.find("run");
  if (!run) return "latest";
  return run->is_text() ? run->text() : fmt::format("{}", run->integer());
}

BudgetJob job_of(const JsonNode& node, const std::filesystem::path& folder,
                 std::map<std::string, GpuSpec>& specs,
                 std::map<std::string, std::vector<std::string>>& jobs_of_note) {
  node.expect_keys({"name"}, {"db", "run", "table", "gpu", "gpus", "worth", "watts",
                              "watts_error_pct", "steps", "hours", "paused_watts"});
  BudgetJob job{.name = node.at("name").text()};
  const auto db = node.find("db"), table = node.find("table"), gpu = node.find("gpu");
  if (db.has_value() == table.has_value())
    node.fail("has to name either a db or a table", "db = \"results.db\" takes a stored run");
  if (table.has_value() != gpu.has_value())
    node.fail(table ? "names a table, but no gpu" : "names a gpu, which goes with a table");
  Settings found;
  if (db) {
    RunSettings run(folder / db->text(), run_of(node));
    found = run.settings();
  } else {
    auto spec = specs.find(gpu->text());
    if (spec == specs.end()) spec = specs.emplace(gpu->text(), load_gpu_spec(gpu->text())).first;
    found = settings_of_table(folder / table->text(), spec->second);
  }
  job.errs_with = found.gpu;
  job.gpus = positive_or(node, "gpus", found.gpus);
  job.worth_per_step = positive_or(node, "worth", 1.0);
  job.paused_w = node.optional_number("paused_watts", Range::non_negative);
  const auto steps = node.optional_number("steps", Range::positive),
             hours = node.optional_number("hours", Range::positive);
  if (steps.has_value() != hours.has_value())
    node.fail("has one of steps and hours; a deadline is both");
  constexpr double s_per_h = 3600.0;
  if (steps) job.latest_step_s = *hours * s_per_h / *steps;
  const auto watts = node.optional_number("watts", Range::positive),
             level_pct = node.optional_number("watts_error_pct", Range::non_negative);
  const double run_w = found.options.front().power_w * job.gpus / found.gpus;
  const double scale = watts.value_or(run_w) / found.options.front().power_w;
  for (JobOption& option : found.options) {
    option.power_w *= scale;
    if (level_pct && option.power_error)
      option.power_error = std::hypot(*option.power_error, *level_pct / percent / errors_in_90_pct);
    else if (!found.level_known)
      option.power_error.reset();
  }
  for (const std::string& note : found.notes) jobs_of_note[note].push_back(job.name);
  job.options = std::move(found.options);
  return job;
}

}  // namespace

JobFile read_jobs(const std::filesystem::path& path) {
  const JsonDocument document = JsonDocument::parse_toml(read_file(path), path.string());
  const JsonNode root = document.root();
  root.expect_keys({"job"}, {"worth"});
  JobFile file;
  if (const auto worth = root.find("worth")) file.worth = worth->text();
  std::set<std::string> names;
  std::map<std::string, GpuSpec> specs;  // jobs share GPUs: each is read once
  std::map<std::string, std::vector<std::string>> jobs_of_note;
  for (const JsonNode& node : root.at("job").items()) {
    file.jobs.push_back(job_of(node, path.parent_path(), specs, jobs_of_note));
    if (!names.insert(file.jobs.back().name).second)
      node.fail(
          fmt::format("is the second job of the name '{}'", printable(file.jobs.back().name)));
  }
  if (file.jobs.empty()) root.fail("has no job", "a table [[job]] for each");
  for (const auto& [note, of_jobs] : jobs_of_note)
    file.notes.push_back(fmt::format(
        "{}{}: {}", printable(of_jobs.front()),
        of_jobs.size() > 1 ? fmt::format(" and {} more", of_jobs.size() - 1) : "", note));
  return file;
}

}  // namespace rubato
