#pragma once
// Pipelines small enough to try every plan.

#include <cstdint>

#include <rapidcheck.h>

#include "traces/pipeline/profile.hpp"

namespace rubato {

/// Random options per stage and kind: small integers, so that ties, dominated and equal
/// options are frequent.
inline PipelineProfile arbitrary_profile(std::uint32_t stages, int most_options) {
  PipelineProfile profile{"random", {}};
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    for (const PassKind kind : {PassKind::forward, PassKind::backward}) {
      PassType type{stage, kind, {}};
      const int options = *rc::gen::inRange(1, most_options + 1);
      for (int i = 0; i < options; ++i) {
        type.options.push_back(
            {1000.0 - i, 1.0 * *rc::gen::inRange(1, 8), 1.0 * *rc::gen::inRange(10, 30)});
      }
      profile.passes.push_back(std::move(type));
    }
  }
  return profile;
}

inline PipelineWork arbitrary_work(std::uint32_t stages, std::uint32_t microbatches,
                                   int most_options) {
  const auto kind = *rc::gen::element(ScheduleKind::gpipe, ScheduleKind::one_f_one_b);
  return pipeline_work(make_schedule({.kind = kind,
                                      .stages = stages,
                                      .microbatches = microbatches,
                                      .transfer_s = 0.5 * *rc::gen::inRange(0, 3),
                                      .hold_s = 0.5 * *rc::gen::inRange(0, 2)}),
                       arbitrary_profile(stages, most_options), 1.0 * *rc::gen::inRange(0, 3));
}

}  // namespace rubato
