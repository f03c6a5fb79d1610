#include "sim/timeline/pipeline.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rubato {

namespace {

class PassWriter {
 public:
  PassWriter(ChromeProcess out, const PipelineWork& work) : out_(out), work_(work) {}

  void write(const PipelineTrack& track) {
    for (int stage = 0; stage < static_cast<int>(work_.schedule.shape.stages); ++stage)
      out_.row(stage + 1, fmt::format("stage {}", stage), stage);
    for (std::size_t i = 0; i < track.run->passes.size(); ++i)
      write_pass(work_.schedule.passes[i], track.run->passes[i]);
    write_power(*track.run);
  }

 private:
  void write_pass(const PipelinePass& pass, const TimedPass& timed) {
    out_.slice(static_cast<int>(pass.stage) + 1, name_of(pass.kind),
               fmt::format("{} {}", name_of(pass.kind), pass.microbatch), timed.start_s,
               timed.end_s - timed.start_s,
               {{"core_mhz", timed.core_mhz},
                {"power_w", timed.power_w()},
                {"energy_j", timed.energy_j},
                {"chunk", pass.chunk},
                {"critical", timed.critical},
                {"switched", timed.switched}});
  }

  // Each pass raises the power above that of waiting at its start, and lowers it at its end.
  void write_power(const PipelineRun& run) {
    std::vector<std::pair<double, double>> steps{{0.0, 0.0}};
    for (const TimedPass& pass : run.passes) {
      const double above_w = pass.power_w() - work_.blocked_power_w;
      steps.emplace_back(pass.start_s, above_w);
      steps.emplace_back(pass.end_s, -above_w);
    }
    std::ranges::sort(steps);
    double power_w = work_.blocked_power_w * work_.schedule.shape.stages;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      power_w += steps[i].second;
      if (i + 1 < steps.size() && steps[i + 1].first == steps[i].first) continue;
      out_.counter("power_w", "W", steps[i].first, i + 1 < steps.size() ? power_w : 0.0);
    }
  }

  ChromeProcess out_;
  const PipelineWork& work_;
};

}  // namespace

void write_pipeline_timeline(const TextSink& sink, const PipelineWork& work,
                             const std::vector<PipelineTrack>& tracks) {
  ChromeTrace trace(sink, {{"schedule", name_of(work.schedule.shape.kind)},
                           {"energy unit", "J of one GPU per stage"}});
  int pid = 1;
  for (const PipelineTrack& track : tracks)
    PassWriter({trace, pid++, track.title}, work).write(track);
  trace.finish();
}

}  // namespace rubato
