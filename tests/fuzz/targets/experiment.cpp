#include "explorer/experiments/file.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    constexpr std::size_t most_points = 2000;  // a short text may stand for a million
    const auto experiment = rubato::parse_experiment(bytes, "folder/input.toml", most_points);
    rubato::fuzz::require(!experiment.points.empty() && experiment.points.size() <= most_points,
                          "an experiment stands for points");
    rubato::fuzz::require(experiment.text == bytes, "the text is kept");
  });
}
