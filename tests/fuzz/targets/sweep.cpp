#include <cmath>

#include "models/calibration/sweep.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using rubato::fuzz::require;

bool is_positive(const std::optional<double>& value) {
  return !value || (*value > 0.0 && std::isfinite(*value));
}

void check_sweep(const rubato::Sweep& sweep, const rubato::GpuSpec& spec) {
  for (const rubato::SweepKernel& kernel : sweep.kernels) {
    for (const rubato::SweepPoint& point : kernel.points) {
      require(point.time_s || point.power_w, "a point says something");
      require(is_positive(point.time_s), "times are numbers > 0");
      require(is_positive(point.power_w), "powers are numbers > 0");
      require(is_positive(point.power_cap_w), "caps are numbers > 0");
      require(is_positive(point.clock.core_mhz), "clocks are numbers > 0");
      require(!point.dram_bytes || (*point.dram_bytes >= 0.0 && std::isfinite(*point.dram_bytes)),
              "bytes are numbers >= 0");
      require(rubato::index(point.clock.mem) < spec.mem_states.size(), "a memory state exists");
    }
  }
  for (const rubato::IdlePoint& point : sweep.idle)
    require(is_positive(point.power_w), "idle powers are numbers > 0");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rubato::GpuSpec one_state = rubato::load_gpu_spec("a100-sxm4-80gb");
  static const rubato::GpuSpec many_states = rubato::load_gpu_spec("rtx-3080-ti");
  return rubato::fuzz::check(data, size, [](std::string_view bytes) {
    try {
      check_sweep(rubato::parse_sweep(bytes, "input", many_states), many_states);
    } catch (const rubato::Error&) {
      check_sweep(rubato::parse_sweep(bytes, "input", one_state), one_state);
    }
    rubato::SweepColumns columns{.renamed = {{"time_s", "time:us"}, {"power_w", "power:mW"}},
                                 .where = {},
                                 .keep_implausible = true};
    try {
      check_sweep(rubato::parse_sweep(bytes, "input", one_state, columns), one_state);
    } catch (const rubato::Error&) {
      // The file may have other names.
    }
  });
}
