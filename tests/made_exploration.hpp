#pragma once
// Explorations of made runs on an A100, captured at its default clocks.

#include <optional>
#include <vector>

#include "explorer/graph/exploration.hpp"
#include "tests/made_run.hpp"

namespace rubato {

inline GraphExplorationInput made_exploration_input(
    const MadeStep& step, const std::vector<GraphQuestion>& questions,
    const std::optional<SwitchModel>& switching = {}) {
  GraphExplorationInput input{.captures = {made_step(step, [](std::int64_t ns) { return ns; })},
                              .spec = load_gpu_spec("a100-sxm4-80gb"),
                              .captured_clock = {},
                              .grid = "full",
                              .power_limit_w = {},
                              .switching = switching,
                              .questions = {},
                              .odds_frac = 0.0};  // plans for the slack itself
  for (const GraphQuestion& question : questions) {
    input.questions.push_back(
        {question.grain, question.aggregation, LeastWaste{question.slack_frac}});
  }
  input.captured_clock = parse_clock_pair(input.spec, "1593/1410");
  return input;
}

}  // namespace rubato
