#include "tools/terminal/exploration_notes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

namespace {

// One line for each kind of mark, with the reason of the first list that has it.
std::string marks_text(const Exploration& found) {
  std::vector<const std::vector<Mark>*> lists{&found.baseline_marks};
  for (const PlanResult& plan : found.plans) lists.push_back(&plan.marks);
  return reasons_text(lists);
}

}  // namespace

std::string exploration_notes(const ExplorationInput& input, const Exploration& found) {
  double dropped_s = 0.0;
  std::size_t dropped = 0;
  for (std::size_t k = 0; k < found.work_dropped.size(); ++k) {
    if (!found.work_dropped[k]) continue;
    ++dropped;
    dropped_s += found.baseline.by_kernel[k].time_s;
  }
  std::string text;
  if (dropped > 0) {
    text += fmt::format(
        "Work of {} kernels ({:.1f} % of the time) is not used: it would need more than the GPU's "
        "peak.\n",
        dropped, 100.0 * dropped_s / found.baseline.total.time_s);
  }
  text += marks_text(found);
  if (!input.switching.is_free())
    text += fmt::format("Counted: a change of clock takes {}.\n", change_text(input.switching));
  text += "Changes are against the default clocks. ";
  text += input.measured ? "90 %: where the saving lies when the plan is measured again, since "
                           "choosing favours lucky measurements; expected: its middle.\n"
                         : "90 %: the interval of the saving, from models that fit as well and "
                           "the errors on points held out; expected: its middle.\n";
  if (found.interrupted) text += "Interrupted: the remaining questions were not answered.\n";
  return text;
}

}  // namespace rubato
