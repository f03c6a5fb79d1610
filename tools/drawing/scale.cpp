#include "tools/drawing/scale.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

std::string scale_answer(const ScaleCaption& caption, std::span<const DrawnStep> steps) {
  std::string answer;
  for (std::size_t i = 0; i < caption.slacks_pct.size() && !steps.empty(); ++i) {
    const auto change = [&](const DrawnStep& step) { return step.energy_changes_pct[i]; };
    const auto [most, least] = std::ranges::minmax_element(steps, {}, change);
    const auto named = [&](const DrawnStep& step) {
      return fmt::format("{} % (TP {}, PP {}, DP {})", format_fixed(-change(step), 1), step.tensor,
                         step.stages, step.replicas);
    };
    if (i > 0) answer.append("\n");
    answer.append(fmt::format("With {} % more time allowed, plans save {}{} of the energy.",
                              format_number(caption.slacks_pct[i]), named(*least),
                              steps.size() > 1 ? " to " + named(*most) : ""));
  }
  return answer;
}

}  // namespace rubato
