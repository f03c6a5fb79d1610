#include "sim/timeline/pipeline.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

constexpr double us_per_s = 1e6;

class TrackWriter {
 public:
  TrackWriter(Json& events, int pid, const PipelineWork& work)
      : events_(events), pid_(pid), work_(work) {}

  void write(const PipelineTrack& track) {
    metadata("process_name", 0, {{"name", track.title}});
    metadata("process_sort_index", 0, {{"sort_index", pid_}});
    for (std::uint32_t stage = 0; stage < work_.schedule.shape.stages; ++stage) {
      metadata("thread_name", stage + 1, {{"name", fmt::format("stage {}", stage)}});
      metadata("thread_sort_index", stage + 1, {{"sort_index", stage}});
    }
    for (std::size_t i = 0; i < track.run->passes.size(); ++i) {
      write_pass(work_.schedule.passes[i], track.run->passes[i]);
    }
    write_power(*track.run);
  }

 private:
  void metadata(const char* what, std::uint32_t tid, Json args) {
    events_.push_back(
        {{"ph", "M"}, {"pid", pid_}, {"tid", tid}, {"name", what}, {"args", std::move(args)}});
  }

  void write_pass(const PipelinePass& pass, const TimedPass& timed) {
    events_.push_back({{"ph", "X"},
                       {"pid", pid_},
                       {"tid", pass.stage + 1},
                       {"ts", timed.start_s * us_per_s},
                       {"dur", (timed.end_s - timed.start_s) * us_per_s},
                       {"cat", name_of(pass.kind)},
                       {"name", fmt::format("{} {}", name_of(pass.kind), pass.microbatch)},
                       {"args",
                        {{"core_mhz", timed.core_mhz},
                         {"power_w", timed.power_w()},
                         {"energy_j", timed.energy_j},
                         {"chunk", pass.chunk},
                         {"critical", timed.critical},
                         {"switched", timed.switched}}}});
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
      counter(steps[i].first, i + 1 < steps.size() ? power_w : 0.0);
    }
  }

  void counter(double at_s, double power_w) {
    events_.push_back({{"ph", "C"},
                       {"pid", pid_},
                       {"ts", at_s * us_per_s},
                       {"name", "power_w"},
                       {"args", {{"W", power_w}}}});
  }

  Json& events_;
  int pid_;
  const PipelineWork& work_;
};

}  // namespace

std::string pipeline_timeline_json(const PipelineWork& work,
                                   const std::vector<PipelineTrack>& tracks) {
  Json events = Json::array();
  int pid = 1;
  for (const PipelineTrack& track : tracks) TrackWriter(events, pid++, work).write(track);
  const Json json{{"displayTimeUnit", "ns"},
                  {"otherData",
                   {{"schedule", name_of(work.schedule.shape.kind)},
                    {"energy unit", "J of one GPU per stage"}}},
                  {"traceEvents", std::move(events)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rubato
