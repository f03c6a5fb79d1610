#include "traces/files/trace_json.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    const rubato::Trace trace = rubato::parse_trace_json(bytes, "input");
    const std::string text = rubato::to_json(trace);
    const rubato::Trace again = rubato::fuzz::must(
        "what was written can be read", [&] { return rubato::parse_trace_json(text, "again"); });
    rubato::fuzz::require(again == trace, "what was read, written and read again is equal");
  });
}
