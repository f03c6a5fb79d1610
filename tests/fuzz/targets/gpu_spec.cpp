#include "models/gpu/spec.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    const std::string text = rubato::to_json(rubato::parse_gpu_spec(bytes, "input"));
    const std::string again = rubato::fuzz::must("what was written can be read", [&] {
      return rubato::to_json(rubato::parse_gpu_spec(text, "again"));
    });
    rubato::fuzz::require(again == text, "what was read, written and read again is equal");
  });
}
