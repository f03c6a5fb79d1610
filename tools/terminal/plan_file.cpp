#include "tools/terminal/plan_file.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/report/setting_lines.hpp"
#include "explorer/results/plan_file.hpp"
#include "explorer/results/store.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

// Zero is within the 90 % interval of its energy, which is all that it was planned for.
bool may_save_nothing(const PlanFilePlan& plan) {
  return plan.goal == "energy" && plan.promise.energy.high_pct.value_or(-1.0) >= 0.0;
}

std::string lines_by_hand(const PlanFile& file, const PlanFilePlan& plan) {
  const std::vector<TargetClock> targets = clock_of_each_target(file, plan);
  if (targets.empty() || !plan.verdict.applicable || may_save_nothing(plan)) return "";
  const GpuSpec& spec = *file.gpu->known;
  std::string lines = clocks_by_target_lines(spec, targets);
  if (lines.empty()) return "";
  if (targets.size() > 1) lines = clocks_by_target_text(spec, targets) + '\n' + lines;
  lines.pop_back();
  return lines;
}

}  // namespace

void write_plan_file(const std::string& path, PlanFile file) {
  for (PlanFilePlan& plan : file.plans) plan.by_hand = lines_by_hand(file, plan);
  write_output(path, plan_file_json(file));
  if (path == "-") return;
  const PlanFilePlan& plan = file.plans.front();
  tell("plan{} per {} ({}): energy {}, time {} promised\n",
       plan.plan_id ? fmt::format(" {}", *plan.plan_id) : "", plan.granularity, plan.goal,
       change_words(plan.promise.energy.value_pct), change_words(plan.promise.time.value_pct));
  if (!plan.verdict.applicable) return tell("it cannot be set on GPUs: {}\n", plan.verdict.because);
  if (may_save_nothing(plan))
    return tell(
        "it may save nothing, zero is within its 90 % interval: measure it before you set it "
        "(docs/apply.md)\n");
  if (!plan.by_hand.empty()) tell("{}\n", plan.by_hand);
  tell("next: rubato apply {} -- python3 train.py\n", shell_word(path));
}

PlanFileDatabase::PlanFileDatabase(std::string db, std::string plan_file)
    : path_(std::move(db)), plan_file_(std::move(plan_file)) {
  check_extension("--plan-file", plan_file_.empty() ? "-" : plan_file_, {".json"});
  if (!path_.empty() || plan_file_.empty()) return;
  constexpr unsigned for_us = 0600;
  temporary_.emplace(std::filesystem::temp_directory_path() / "plan", ".db", for_us);
  path_ = temporary_->path().string();
}

void PlanFileDatabase::write_plan(const std::string& run, std::optional<GpuSpec> spec) const {
  if (plan_file_.empty()) return;
  PlanFile file;
  try {
    file = plan_file(ResultStore::open_read_only(path_), {.run = run, .spec = std::move(spec)});
  } catch (const Error&) {
    if (is_part()) return;  // interrupted before a plan was found
    throw;
  }
  if (!is_kept()) {  // numbers in a database that nobody has
    file.run.run_id.reset();
    for (PlanFilePlan& plan : file.plans) plan.plan_id.reset();
  }
  write_plan_file(plan_file_, std::move(file));
}

}  // namespace rubato
