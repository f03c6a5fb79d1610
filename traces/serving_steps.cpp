#include "traces/serving_steps.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/trace_capture.hpp"

namespace rubato {

namespace {

constexpr std::string_view digits = "0123456789";

// The number that a text begins with.
std::optional<std::uint64_t> count_at(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() ? std::optional(count) : std::nullopt;
}

std::optional<std::uint64_t> count_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  return at == std::string_view::npos ? std::nullopt : count_at(text.substr(at + word.size()));
}

std::optional<std::uint64_t> count_before(std::string_view text, std::string_view word) {
  const std::string_view head = text.substr(0, text.find(word));
  if (head.size() == text.size()) return std::nullopt;
  return count_at(head.substr(head.find_last_not_of(digits) + 1));
}

std::optional<ServingStep> step_of(const std::optional<std::uint64_t>& prompts,
                                   const std::optional<std::uint64_t>& sequences) {
  if (!prompts || !sequences) return std::nullopt;
  if (*prompts == 0) return *sequences == 0 ? ServingStep::idle : ServingStep::decode;
  return *sequences == 0 ? ServingStep::prefill : ServingStep::mixed;
}

// SGLang's modes of a forward pass. A draft belongs to the step that verifies it.
std::optional<ServingStep> step_of_mode(std::string_view mode) {
  if (mode == "DECODE" || mode == "TARGET_VERIFY") return ServingStep::decode;
  if (mode == "EXTEND" || mode == "SPLIT_PREFILL" || mode == "DLLM_EXTEND")
    return ServingStep::prefill;
  if (mode == "MIXED") return ServingStep::mixed;
  return mode == "IDLE" || mode == "PREBUILT" ? std::optional(ServingStep::idle) : std::nullopt;
}

bool is_of(ServingStep step, bool decode) {
  if (decode) return step == ServingStep::decode;
  return step == ServingStep::prefill || step == ServingStep::mixed;
}

// Positions of steps that follow one another.
struct Row {
  std::uint32_t first = 0, count = 0;
};

}  // namespace

std::optional<ServingStep> serving_step_of(std::string_view label) {
  constexpr std::string_view sglang = "step[", eager = "eager_";
  if (label.starts_with("execute_new_"))
    return step_of(count_behind(label, "_new_"), count_behind(label, "_cached_"));
  if (label.starts_with("execute_"))
    return step_of(count_behind(label, "context_"), count_behind(label, "_generation_"));
  if (label.starts_with("[Executor] _forward_step "))
    return step_of(count_before(label, " ctx reqs"), count_before(label, " gen reqs"));
  if (label.starts_with(sglang) && label.ends_with(']')) {
    const std::string_view mode = label.substr(sglang.size());
    return step_of_mode(mode.substr(0, mode.find(' ')));
  }
  if (label == "prefill") return ServingStep::prefill;
  if (label == "decode") return ServingStep::decode;
  const std::string_view atom = label.starts_with(eager) ? label.substr(eager.size()) : label;
  if (atom.starts_with("prefill[bs=")) return ServingStep::prefill;
  return atom.starts_with("decode[bs=") ? std::optional(ServingStep::decode) : std::nullopt;
}

Capture only_phase(const Capture& capture, std::string_view phase) {
  Row row, longest;
  std::uint32_t of_phase = 0, named = 0, mixed = 0;
  for (std::uint32_t i = 0; i < capture.steps.size(); ++i) {
    const auto step = serving_step_of(capture.steps[i].name);
    if (step) ++named;
    if (!step || !is_of(*step, phase == "decode")) continue;
    ++of_phase;
    if (*step == ServingStep::mixed) ++mixed;
    if (row.first + row.count != i) row = {i, 0};
    ++row.count;
    if (row.count >= longest.count) longest = row;
  }
  if (named == 0)
    throw DataError(
        fmt::format("{}: does not tell prefill from decode: no span is named like a server's step",
                    printable(capture.name)),
        {.in = {},
         .hint = "expected execute_context_..._generation_... (vLLM), step[DECODE bs=...] (SGLang) "
                 "or _forward_step ... ctx reqs (TensorRT-LLM): record with the server's own "
                 "profiler, which marks steps; in a script of your own "
                 "torch.profiler.record_function(\"prefill\") and (\"decode\")"});
  if (of_phase == 0)
    throw DataError(fmt::format("{}: none of its {} steps of a server is {}",
                                printable(capture.name), named, phase),
                    {.in = {}, .hint = "record while the server does both"});
  const std::uint32_t end = longest.first + longest.count;
  const auto called_ns = [](const CapturedLaunch& l) { return l.launch_ns.value_or(l.start_ns); };
  constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t from_ns = never_ns, to_ns = never_ns;  // of the host; marks may be the GPU's
  for (const CapturedLaunch& launch : capture.launches) {
    if (!launch.step || *launch.step < longest.first) continue;
    std::int64_t& bound = *launch.step < end ? from_ns : to_ns;
    bound = std::min(bound, called_ns(launch));
  }
  Capture kept = part_of(
      capture,
      [&](const CapturedCall& call) { return from_ns <= call.start_ns && call.start_ns < to_ns; },
      [&](const CapturedLaunch& launch) {
        return launch.step && longest.first <= *launch.step && *launch.step < end;
      });
  if (kept.launches.empty())
    throw DataError(fmt::format("{}: nothing runs in its {} steps of {}", printable(capture.name),
                                of_phase, phase));
  for (CapturedLaunch& launch : kept.launches) *launch.step -= longest.first;
  kept.steps.assign(capture.steps.begin() + longest.first, capture.steps.begin() + end);
  kept.left_out.push_back(fmt::format(
      "all but {} of {} steps of {}{}, in a row from {} on; it has {} steps", longest.count,
      of_phase, phase, mixed == 0 ? "" : fmt::format(" ({} of them with next tokens too)", mixed),
      kept.steps.front().name, capture.steps.size()));
  return kept;
}

}  // namespace rubato
