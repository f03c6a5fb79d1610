#include "sim/timeline/plan.hpp"

#include <algorithm>

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// Rows of one run in the viewer.
enum Row : int { passes = 1, kernels = 2, switches = 3 };

// Writes the events of one run as process `pid`.
class LaunchWriter {
 public:
  LaunchWriter(ChromeProcess out, const Trace& trace, const GpuModel& model, const ClockGrid& grid)
      : out_(out), trace_(trace), model_(model), grid_(grid) {
    out_.row(passes, "passes");
    out_.row(kernels, "kernels");
    out_.row(switches, "clock switches");
  }

  void write(const TimelineTrack& track) {
    const ReplayedIteration replayed = replay(trace_, model_, grid_, *track.plan, track.switching);
    auto change = replayed.switches.begin();
    for (const TimedLaunch& launch : replayed.launches) {
      for (; change != replayed.switches.end() && change->effect_s <= launch.start_s; ++change)
        write_switch(*change, launch);
      write_launch(launch);
    }
    for (; change != replayed.switches.end(); ++change)
      write_switch(*change, replayed.launches.back());
    end_pass();
    counters(0.0, 0.0, 0.0);
  }

 private:
  void counters(double power_w, double core_mhz, double mem_mhz) {
    out_.counter("power_w", "W", now_s_, power_w);
    out_.counter("core_mhz", "MHz", now_s_, core_mhz);
    out_.counter("mem_mhz", "MHz", now_s_, mem_mhz);
  }
  [[nodiscard]] double mem_mhz(ClockId clock) const {
    return model_.spec().mem_states[index(grid_[clock].mem)].mem_mhz;
  }

  // From the request to the effect, as far as it lies in this iteration.
  void write_switch(const TimedSwitch& change, const TimedLaunch& next) {
    const double from_s = std::max(change.request_s, 0.0);
    if (change.effect_s <= from_s) return;
    out_.slice(switches, "clock switch", grid_.label(change.to), from_s, change.effect_s - from_s,
               {{"stall_us", 1e6 * (change.effect_s - change.stall_from_s)}});
    if (change.effect_s <= change.stall_from_s) return;
    now_s_ = change.stall_from_s;
    counters(model_.idle_power_w(grid_[change.to]), next.point.core_mhz, mem_mhz(change.to));
    now_s_ = change.effect_s;
  }

  void write_launch(const TimedLaunch& launch) {
    now_s_ = launch.start_s;
    const Kernel& kernel = trace_.kernels[index(launch.kernel)];
    if (!pass_ || *pass_ != kernel.pass) {
      end_pass();
      pass_ = kernel.pass;
      pass_start_s_ = now_s_;
    }
    const OperatingPoint& point = launch.point;
    out_.slice(kernels, "kernel", kernel.name, now_s_, point.time_s,
               {{"label", kernel.label},
                {"clock", grid_.label(launch.clock)},
                {"core_mhz", point.core_mhz},
                {"mem_mhz", mem_mhz(launch.clock)},
                {"energy_j", point.energy_j},
                {"power_limited", point.power_limited},
                {"late_clock", launch.late}});
    counters(point.energy_j / point.time_s, point.core_mhz, mem_mhz(launch.clock));
    now_s_ += point.time_s;
  }

  void end_pass() {
    if (!pass_) return;
    out_.slice(passes, "pass", name_of(*pass_), pass_start_s_, now_s_ - pass_start_s_,
               Json::object());
    pass_.reset();
  }

  ChromeProcess out_;
  const Trace& trace_;
  const GpuModel& model_;
  const ClockGrid& grid_;
  double now_s_ = 0.0;
  std::optional<Pass> pass_;
  double pass_start_s_ = 0.0;
};

}  // namespace

void write_timeline(const TextSink& sink, const Trace& trace, const GpuModel& model,
                    const ClockGrid& grid, const std::vector<TimelineTrack>& tracks) {
  ChromeTrace out(
      sink, {{"trace", trace.name}, {"gpu", model.spec().name}, {"energy unit", "J per launch"}});
  int pid = 1;
  for (const TimelineTrack& track : tracks)
    LaunchWriter({out, pid++, track.title}, trace, model, grid).write(track);
  out.finish();
}

}  // namespace rubato
