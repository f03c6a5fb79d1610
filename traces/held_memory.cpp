#include "traces/held_memory.hpp"

#include <map>
#include <string_view>
#include <utility>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "traces/transformer/memory.hpp"

namespace rubato {

std::optional<HeldMemory> held_memory(const Trace& trace) {
  if (!trace.provenance.generator.starts_with("rubato ")) return std::nullopt;
  std::map<std::string_view, std::string_view> options;
  for (const std::string_view item : split(trace.provenance.options, ' ')) {
    const std::size_t equals = item.find('=');
    if (equals != std::string_view::npos) options[item.substr(0, equals)] = item.substr(equals + 1);
  }
  const bool optimizer = options["optimizer"] == "true";
  if (const auto bytes = parse_number(options["held_bytes"]))
    return HeldMemory{.bytes = *bytes, .optimizer = optimizer, .activations = true};

  const auto dtype = from_name<Dtype>(options["dtype"]);
  TrainingStep step{.model = {}, .kernels = KernelStyle::llm_c};
  step.model.heads = step.model.kv_heads = 1;  // of activations alone, which are left out below
  for (const auto& [name, value] : {std::pair{"layers", &step.model.layers},
                                    {"hidden", &step.model.hidden},
                                    {"vocab", &step.model.vocab},
                                    {"seq", &step.seq},
                                    {"tp", &step.tensor_parallel}}) {
    const auto number = parse_number(options[name]);
    if (!number || *number < 1.0 || !dtype) return std::nullopt;
    *value = static_cast<std::uint64_t>(*number);
  }
  step.dtype = *dtype;
  step.optimizer = optimizer;
  const MemoryPerRank memory = memory_per_rank(step);
  return HeldMemory{.bytes = memory.total() - memory.activations, .optimizer = optimizer};
}

}  // namespace rubato
