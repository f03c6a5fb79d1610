#include "traces/trace_capture.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"

namespace rubato {

Capture as_capture(const Trace& trace) {
  Capture capture;
  capture.name = trace.name;
  capture.provenance = trace.provenance;
  capture.devices.resize(1);
  capture.streams.resize(1);
  capture.kernels = trace.kernels;
  std::int64_t now_ns = 0;
  for (const Segment& segment : trace.segments) {
    for (std::uint32_t r = 0; r < segment.repeat; ++r) {
      for (const KernelId id : segment.launches) {
        const Kernel& kernel = trace.kernels[index(id)];
        if (!kernel.measured_time_s) {
          throw DataError(
              fmt::format("{}: kernel '{}' has no measured_time_s", trace.name, kernel.name),
              {.hint =
                   "a replay compares with a captured run; import one, or add measured_time_s"});
        }
        CapturedLaunch launch;
        launch.kernel = id;
        launch.start_ns = now_ns;
        launch.duration_ns = std::llround(*kernel.measured_time_s * 1e9);
        launch.step = 0;
        launch.pass = kernel.pass;
        now_ns = launch.end_ns();
        capture.launches.push_back(launch);
      }
    }
  }
  capture.steps = {{"step", 0, now_ns}};
  return capture;
}

}  // namespace rubato
