#include "sim/timeline.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// Rows of one run in the viewer.
enum Row : int { passes = 1, kernels = 2, switches = 3 };

constexpr double us_per_s = 1e6;

// Writes the events of one run as process `pid`.
class TrackWriter {
 public:
  TrackWriter(Json& events, int pid, const Trace& trace, const GpuModel& model,
              const ClockGrid& grid)
      : events_(events), pid_(pid), trace_(trace), model_(model), grid_(grid) {}

  void write(const TimelineTrack& track) {
    name_rows(track.title);
    const std::vector<TimedLaunch> launches = replay(trace_, model_, grid_, *track.plan);
    ClockId clock = launches.back().clock;
    for (const TimedLaunch& launch : launches) {
      if (launch.clock != clock) write_switch(launch, track.switch_cost);
      clock = launch.clock;
      write_launch(launch);
    }
    end_pass();
    counters(0.0, 0.0, 0.0);
  }

 private:
  void metadata(const char* what, int tid, Json args) {
    events_.push_back(
        {{"ph", "M"}, {"pid", pid_}, {"tid", tid}, {"name", what}, {"args", std::move(args)}});
  }
  void name_rows(const std::string& title) {
    metadata("process_name", 0, {{"name", title}});
    metadata("process_sort_index", 0, {{"sort_index", pid_}});
    metadata("thread_name", passes, {{"name", "passes"}});
    metadata("thread_name", kernels, {{"name", "kernels"}});
    metadata("thread_name", switches, {{"name", "clock switches"}});
  }
  void slice(int tid, const char* category, std::string_view name, double from_s, double duration_s,
             Json args) {
    events_.push_back({{"ph", "X"},
                       {"pid", pid_},
                       {"tid", tid},
                       {"ts", from_s * us_per_s},
                       {"dur", duration_s * us_per_s},
                       {"cat", category},
                       {"name", name},
                       {"args", std::move(args)}});
  }
  void counter(const char* name, const char* unit, double value) {
    events_.push_back({{"ph", "C"},
                       {"pid", pid_},
                       {"ts", now_s_ * us_per_s},
                       {"name", name},
                       {"args", {{unit, value}}}});
  }
  void counters(double power_w, double core_mhz, double mem_mhz) {
    counter("power_w", "W", power_w);
    counter("core_mhz", "MHz", core_mhz);
    counter("mem_mhz", "MHz", mem_mhz);
  }
  [[nodiscard]] double mem_mhz(ClockId clock) const {
    return model_.spec().mem_states[index(grid_[clock].mem)].mem_mhz;
  }

  void write_switch(const TimedLaunch& launch, const SwitchCost& cost) {
    if (cost.stall_s <= 0.0) return;
    slice(switches, "clock switch", grid_.label(launch.clock), now_s_, cost.stall_s,
          Json::object());
    counters(model_.idle_power_w(grid_[launch.clock]), launch.point.core_mhz,
             mem_mhz(launch.clock));
    now_s_ += cost.stall_s;
  }

  void write_launch(const TimedLaunch& launch) {
    const Kernel& kernel = trace_.kernels[index(launch.kernel)];
    if (!pass_ || *pass_ != kernel.pass) {
      end_pass();
      pass_ = kernel.pass;
      pass_start_s_ = now_s_;
    }
    const OperatingPoint& point = launch.point;
    slice(kernels, "kernel", kernel.name, now_s_, point.time_s,
          {{"label", kernel.label},
           {"clock", grid_.label(launch.clock)},
           {"core_mhz", point.core_mhz},
           {"mem_mhz", mem_mhz(launch.clock)},
           {"energy_j", point.energy_j},
           {"power_limited", point.power_limited}});
    counters(point.energy_j / point.time_s, point.core_mhz, mem_mhz(launch.clock));
    now_s_ += point.time_s;
  }

  void end_pass() {
    if (!pass_) return;
    slice(passes, "pass", name_of(*pass_), pass_start_s_, now_s_ - pass_start_s_, Json::object());
    pass_.reset();
  }

  Json& events_;
  int pid_;
  const Trace& trace_;
  const GpuModel& model_;
  const ClockGrid& grid_;
  double now_s_ = 0.0;
  std::optional<Pass> pass_;
  double pass_start_s_ = 0.0;
};

}  // namespace

std::string timeline_json(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                          const std::vector<TimelineTrack>& tracks) {
  Json events = Json::array();
  int pid = 1;
  for (const TimelineTrack& track : tracks)
    TrackWriter(events, pid++, trace, model, grid).write(track);
  const Json json{
      {"displayTimeUnit", "ns"},
      {"otherData",
       {{"trace", trace.name}, {"gpu", model.spec().name}, {"energy unit", "J per launch"}}},
      {"traceEvents", std::move(events)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace rubato
