#pragma once
// Steps of a server, which names them in its captures: prompts of new requests (prefill), the next
// token of running ones (decode), or both at once. docs/budget.md.

#include <optional>
#include <string_view>

#include "traces/capture.hpp"

namespace rubato {

/// What a server does in a step. mixed: prompts, and next tokens beside them.
enum class ServingStep { idle, prefill, decode, mixed };

/// What the name of a span says of a server's step; nothing for other spans. Known are those of
/// vLLM ("execute_context_1(512)_generation_3(3)", "execute_new_1_cached_3"), SGLang
/// ("step[DECODE bs=16]"), TensorRT-LLM ("[Executor] _forward_step 7: 0 ctx reqs, 8 gen reqs"),
/// ATOM ("prefill[bs=2 tok=16384]"), and scripts that call their steps "prefill" and "decode".
[[nodiscard]] std::optional<ServingStep> serving_step_of(std::string_view label);

/// Of a capture of a server the longest row of steps of one phase, the last of equals: the rest is
/// counted in Capture::left_out. Mixed steps are prefill: prompts take most of their time.
/// @param phase  "prefill" or "decode"
/// @throws DataError if the capture names no such steps
[[nodiscard]] Capture only_phase(const Capture& capture, std::string_view phase);

}  // namespace rubato
