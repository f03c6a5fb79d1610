#include "tools/gpu_option.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "common/text.hpp"

namespace rubato {

void say_if_not_calibrated(const GpuSpec& spec) {
  if (spec.calibrated) return;
  fmt::print(stderr, "note: {} is not calibrated: {}; its numbers are rough\n",
             printable(spec.name),
             spec.utilisation ? "its power was fitted, its times were not"
                              : "its constants were scaled from another GPU");
}

GpuSpec load_gpu(const std::string& name_or_path) {
  GpuSpec spec = load_gpu_spec(name_or_path);
  say_if_not_calibrated(spec);
  return spec;
}

}  // namespace rubato
