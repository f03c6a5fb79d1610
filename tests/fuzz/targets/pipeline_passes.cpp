#include "tests/fuzz/captures.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    rubato::fuzz::check_capture(bytes, rubato::import_pipeline_passes);
  });
}
