// JSON, and every way to ask for a value of the wrong type.

#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/json_values.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    rubato::fuzz::ask_for_all_types(rubato::JsonDocument::parse(bytes, "input"));
  });
}
