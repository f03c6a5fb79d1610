#include "sim/timeline/plan.hpp"

#include "sim/timeline/graph.hpp"

namespace rubato {

void write_timeline(const TextSink& sink, const Trace& trace, const GpuModel& model,
                    const ClockGrid& grid, const std::vector<TimelineTrack>& tracks) {
  const GpuSpec& spec = model.spec();
  ChromeTrace out(sink,
                  {{"trace", trace.name}, {"gpu", spec.name}, {"energy unit", "J per launch"}});
  TraceSimulator simulator(trace, model, grid);
  const ExecutionGraph& graph = simulator.graph();
  int pid = 1;
  for (const TimelineTrack& track : tracks) {
    const GraphRun run =
        simulator.replay(*track.plan, {.phases = true, .switching = track.switching});
    const auto text_of = [&](std::size_t i) -> SliceText {
      const Kernel& kernel = graph.kernels()[index(graph.activities()[i].kernel)];
      const LaunchRun& launch = run.launches[i];
      return {"kernel",
              kernel.name,
              {{"label", kernel.label},
               {"clock", grid.label(launch.clock)},
               {"core_mhz", launch.point.core_mhz},
               {"mem_mhz", spec.mem_states[index(grid[launch.clock].mem)].mem_mhz},
               {"energy_j", launch.point.energy_j},
               {"power_limited", launch.point.power_limited},
               {"late_clock", launch.late}}};
    };
    draw_graph_run(out, pid++, graph, &spec, {track.title, &run, &grid, text_of, true});
  }
  out.finish();
}

}  // namespace rubato
