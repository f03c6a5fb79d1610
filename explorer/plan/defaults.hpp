#pragma once
// What every command, experiment and pipeline assumes of changes of clock unless it is told
// otherwise: they are counted, and take what the GPU spec knows.

#include <algorithm>

#include "explorer/plan/applicable.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// What a request's changes take when plans are set on GPUs. Who took them to be free did not make
/// them free: then they take what the spec knows.
[[nodiscard]] inline SwitchModel switching_in_earnest(const SwitchModel& planned,
                                                      const GpuSpec& spec) {
  return planned.is_free() ? switch_model(spec) : planned;
}

/// Clocks are held for so long that no stretch is short (applicable.hpp), whichever changes are at
/// its ends.
[[nodiscard]] inline SwitchModel with_long_stretches(SwitchModel model) {
  const bool memory_too = model.mem && model.knows_memory;
  const double longest_s = model.change(true, memory_too).latency_s();
  const double least_lead_s =
      memory_too ? std::min(model.core.lead_s, model.mem->lead_s) : model.core.lead_s;
  model.dwell_s = std::max(model.dwell_s, shortest_latencies * longest_s - least_lead_s);
  return model;
}

/// If it is not known what a change of the memory clock takes, no step is long enough for one.
[[nodiscard]] inline SwitchModel with_known_changes(SwitchModel model) {
  constexpr double never_s = 1e6;
  if (!model.knows_memory) model.mem = SwitchCost{.lead_s = never_s};
  return model;
}

/// The model that a search for runs of launches works with, so that its plans can be applied.
[[nodiscard]] inline SwitchModel applicable_switching(const SwitchModel& model) {
  return with_known_changes(with_long_stretches(model));
}

}  // namespace rubato
