#include "traces/files/trace_csv.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    const rubato::Trace trace = rubato::parse_trace_csv(bytes, "input.csv");
    const std::string text = rubato::to_csv(trace);
    const rubato::Trace again = rubato::fuzz::must(
        "what was written can be read", [&] { return rubato::parse_trace_csv(text, "input.csv"); });
    rubato::fuzz::require(again == trace, "what was read, written and read again is equal");
  });
}
