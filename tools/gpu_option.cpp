#include "tools/gpu_option.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "common/text.hpp"

namespace rubato {

GpuSpec load_gpu(const std::string& name_or_path) {
  GpuSpec spec = load_gpu_spec(name_or_path);
  if (!spec.calibrated) {
    fmt::print(stderr, "note: {} is not calibrated: {}; its numbers are rough\n",
               printable(spec.name),
               spec.utilisation ? "its power was fitted, its times were not"
                                : "its constants were scaled from another GPU");
  }
  return spec;
}

}  // namespace rubato
