#pragma once
// Real explorations, a small one for tests of what comes after it.

#include <string>
#include <utility>
#include <vector>

#include "explorer/exploration.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

/// The paper's step on its GPU.
inline ExplorationInput paper_input(std::string grid, std::vector<Question> questions = {},
                                    const SwitchModel& switching = {}) {
  return {.trace = load_trace("gpt3-xl"),
          .spec = load_gpu_spec("rtx-3080-ti"),
          .grid = std::move(grid),
          .power_limit_w = {},
          .switching = switching,
          .questions = std::move(questions)};
}

inline ExplorationInput small_input() {
  ExplorationInput input = paper_input("mem=5001,auto core=1470,1680,auto");
  for (const auto granularity : {Granularity::run, Granularity::pass, Granularity::kernel}) {
    input.questions.push_back({granularity, Aggregation::global, LeastWaste{}});
  }
  input.questions.push_back({Granularity::kernel, Aggregation::global, LeastEdp{}});
  input.questions.push_back(
      {Granularity::kernel, Aggregation::global, LeastTime{1.0, {}}});  // infeasible
  return input;
}

}  // namespace rubato
