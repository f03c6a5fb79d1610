#include "sim/timeline/capture.hpp"

#include <fmt/format.h>

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

class RunWriter {
 public:
  RunWriter(ChromeProcess out, const Capture& capture) : out_(out), capture_(capture) {
    for (std::size_t s = 0; s < capture.streams.size(); ++s) {
      const CaptureStream& stream = capture.streams[s];
      out_.row(row_of(s),
               fmt::format("GPU {} stream {}", capture.devices[stream.device].id, stream.id));
    }
  }

  void launch(std::size_t i, double start_s, double end_s, Json args) {
    const CapturedLaunch& launch = capture_.launches[i];
    const CaptureStream& stream = capture_.streams[launch.stream];
    const Kernel& kernel = capture_.kernels[index(launch.kernel)];
    args["device"] = capture_.devices[stream.device].id;
    args["stream"] = stream.id;
    args["class"] = name_of(kernel.kind);
    out_.slice(row_of(launch.stream), "kernel", kernel.label.empty() ? kernel.name : kernel.label,
               start_s, end_s - start_s, std::move(args));
  }

  void phases(const CaptureRun& result) {
    for (const GpuPhase& phase : result.phases)
      counters(phase.gpu.value, phase.start_s, phase.power_w, phase.core_mhz);
    for (std::uint32_t d = 0; d < capture_.devices.size(); ++d)
      counters(d, result.makespan_s, 0.0, 0.0);
  }

  void power(const PowerTrack& power) {
    for (std::size_t i = 0; i < power.at_s.size(); ++i)
      out_.counter("power_w", "W", power.at_s[i], power.power_w[i]);
  }

 private:
  static int row_of(std::size_t stream) { return static_cast<int>(stream) + 1; }

  void counters(std::uint32_t device, double at_s, double power_w, double core_mhz) {
    const auto of_device = [&](const char* name) {
      return capture_.devices.size() == 1
                 ? std::string(name)
                 : fmt::format("{} GPU {}", name, capture_.devices[device].id);
    };
    out_.counter(of_device("power_w"), "W", at_s, power_w);
    out_.counter(of_device("core_mhz"), "MHz", at_s, core_mhz);
  }

  ChromeProcess out_;
  const Capture& capture_;
};

}  // namespace

void write_capture_timeline(const TextSink& sink, const CaptureReplay& replay,
                            const std::vector<CaptureTrack>& tracks, const PowerTrack& power) {
  const Capture& capture = replay.capture();
  ChromeTrace trace(sink, {{"trace", capture.name},
                           {"gpu", replay.spec().name},
                           {"energy unit", "J per launch, with its share of idle power"}});
  int pid = 1;
  RunWriter captured({trace, pid++, "captured"}, capture);
  for (std::size_t i = 0; i < capture.launches.size(); ++i)
    captured.launch(i, replay.captured_start_s(i), replay.captured_end_s(i), Json::object());
  captured.power(power);
  for (const CaptureTrack& track : tracks) {
    RunWriter writer({trace, pid++, track.title}, capture);
    for (std::size_t i = 0; i < capture.launches.size(); ++i) {
      const SimulatedLaunch& launch = track.result->launches[i];
      writer.launch(i, launch.start_s, launch.end_s, {{"energy_j", launch.energy_j}});
    }
    writer.phases(*track.result);
  }
  trace.finish();
}

}  // namespace rubato
