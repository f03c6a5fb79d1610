#pragma once
// A small real exploration for tests of what comes after it.

#include "explorer/exploration.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

inline ExplorationInput small_input() {
  ExplorationInput input{.trace = load_trace("gpt3-xl"),
                         .spec = load_gpu_spec("rtx-3080-ti"),
                         .grid = "mem=5001,auto core=1470,1680,auto",
                         .power_limit_w = {},
                         .switching = {},
                         .questions = {}};
  for (const auto granularity : {Granularity::iteration, Granularity::pass, Granularity::kernel}) {
    input.questions.push_back({granularity, Aggregation::global, LeastWaste{}});
  }
  input.questions.push_back({Granularity::kernel, Aggregation::global, LeastEdp{}});
  input.questions.push_back(
      {Granularity::kernel, Aggregation::global, LeastTime{1.0, {}}});  // infeasible
  return input;
}

}  // namespace rubato
