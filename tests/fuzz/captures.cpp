#include "tests/fuzz/captures.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <set>

#include "common/text.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato::fuzz {

namespace {

constexpr std::uint64_t max_expanded = std::uint64_t{16} << 20;
constexpr std::int64_t day_ns = std::int64_t{86400} * 1'000'000'000;

void check_promises(const Capture& capture) {
  std::set<std::string_view> names;
  for (const Kernel& kernel : capture.kernels) {
    require(!kernel.name.empty() && names.insert(kernel.name).second, "kernel names are unique");
    require(printable(kernel.name) == kernel.name, "a kernel name can be shown");
  }
  for (const CaptureStream& stream : capture.streams)
    require(stream.device < capture.devices.size(), "a stream has a device");
  for (const CapturedStep& step : capture.steps)
    require(printable(step.name) == step.name, "the name of a step can be shown");
  for (const std::string& line : capture.left_out)
    require(printable(line) == line, "what was left out can be shown");
  require(!capture.launches.empty(), "a capture has launches");
  const auto later = [](const CapturedLaunch& a, const CapturedLaunch& b) {
    return a.start_ns < b.start_ns;
  };
  require(std::ranges::is_sorted(capture.launches, later), "launches are in order of their start");
  for (const CapturedLaunch& launch : capture.launches) {
    require(index(launch.kernel) < capture.kernels.size(), "a launch has a kernel");
    require(launch.stream < capture.streams.size(), "a launch has a stream");
    require(!launch.step || *launch.step < capture.steps.size(), "a launch has its step");
    require(launch.duration_ns >= 0 && launch.duration_ns <= day_ns, "a launch ends within a day");
  }
}

void check_trace(const Capture& capture) {
  const CaptureStats stats = capture_stats(capture);
  require(stats.busy_ns <= stats.span_ns || stats.kernels.launches == 0,
          "kernels are busy within the span");
  std::optional<Trace> trace;
  try {
    trace = fold(capture);
  } catch (const UsageError&) {
    return;  // no launch in the step
  }
  const std::string text = to_json(*trace);
  const Trace again =
      must("a folded trace can be read", [&] { return parse_trace_json(text, "folded"); });
  require(again == *trace, "a folded trace is read as it was written");
}

}  // namespace

void check_capture(std::string_view bytes, const Importer& import) {
  const std::filesystem::path& path = as_file(bytes);
  std::optional<Capture> strict, partial;
  std::exception_ptr error;
  try {
    strict = import(path, {.partial = false, .max_expanded_bytes = max_expanded});
  } catch (const Error&) {
    error = std::current_exception();
  }
  try {
    partial = import(path, {.partial = true, .max_expanded_bytes = max_expanded});
  } catch (const Error&) {
    require(!strict, "what is read strictly is read with --partial");
  }
  require(!strict || strict == partial, "--partial changes nothing where nothing is wrong");
  if (partial) {
    check_promises(*partial);
    must("a capture can be folded", [&] { check_trace(*partial); });
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace rubato::fuzz
