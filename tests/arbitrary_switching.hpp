#pragma once
// Changes of clock that take something, about as long as launches of small graphs.

#include <rapidcheck.h>

#include "sim/switch_model.hpp"
#include "tests/uniform.hpp"

namespace rubato {

inline SwitchCost arbitrary_cost() {
  const auto some = [](double most) {
    return *rc::gen::arbitrary<bool>() ? uniform(0.0, most) : 0.0;
  };
  return {.stall_s = some(2e-4), .energy_j = some(0.02), .lead_s = some(8e-4)};
}

inline SwitchModel arbitrary_switching() {
  SwitchModel model{.core = arbitrary_cost(), .mem = {}, .dwell_s = 0.0};
  if (*rc::gen::arbitrary<bool>()) model.dwell_s = uniform(0.0, 4e-4);
  if (model.is_free()) model.core.stall_s = 1e-4;
  return model;
}

}  // namespace rubato
