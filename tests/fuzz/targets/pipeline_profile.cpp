#include <cmath>

#include "tests/fuzz/fuzz.hpp"
#include "traces/pipeline/profile.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    using rubato::fuzz::require;
    const rubato::PipelineProfile profile = rubato::parse_pipeline_profile(bytes, "input");
    for (const rubato::PassType& pass : profile.passes) {
      require(pass.stage < profile.stages(), "stages are counted");
      require(profile.find(pass.stage, pass.kind) == &pass, "a stage has each kind once");
      require(!pass.options.empty(), "a pass has options");
      double last_mhz = HUGE_VAL;
      for (const rubato::ClockOption& option : pass.options) {
        require(option.core_mhz > 0.0 && option.core_mhz < last_mhz, "clocks fall");
        require(option.time_s > 0.0 && std::isfinite(option.time_s), "times are numbers > 0");
        require(option.energy_j > 0.0 && std::isfinite(option.energy_j),
                "energies are numbers > 0");
        last_mhz = option.core_mhz;
      }
    }
  });
}
