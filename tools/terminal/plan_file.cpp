#include "tools/terminal/plan_file.hpp"

#include <fmt/format.h>

#include "common/text.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

void write_plan_file(const std::string& path, const PlanFile& file) {
  write_output(path, plan_file_json(file));
  if (path == "-") return;
  const PlanFilePlan& plan = file.plans.front();
  tell("plan{} per {} ({}): energy {}, time {} promised\n",
       plan.plan_id ? fmt::format(" {}", *plan.plan_id) : "", plan.granularity, plan.goal,
       change_words(plan.promise.energy.value_pct), change_words(plan.promise.time.value_pct));
  if (plan.verdict.applicable) {
    tell("next: python3 -m rubato apply {} -- python3 train.py\n", shell_word(path));
  } else {
    tell("it cannot be set on GPUs: {}\n", plan.verdict.because);
  }
}

}  // namespace rubato
