#include "sim/timeline/pipeline.hpp"

#include <fmt/format.h>

#include "sim/timeline/graph.hpp"

namespace rubato {

void write_pipeline_timeline(const TextSink& sink, const PipelineWork& work,
                             const std::vector<PipelineTrack>& tracks) {
  ChromeTrace out(sink, {{"schedule", name_of(work.schedule.shape.kind)},
                         {"energy unit", "J of one GPU per stage"}});
  PipelineSimulator simulator(work);
  const ExecutionGraph& graph = simulator.graph();
  int pid = 1;
  for (const PipelineTrack& track : tracks) {
    const GraphRun run = simulator.replay(*track.plan, {.switching = track.switching}, true);
    const PipelineRun passes = simulator.passes_of(run, *track.plan, track.switching);
    const auto text_of = [&](std::size_t i) -> SliceText {
      const std::uint32_t id = *graph.activities()[i].launch;
      const PipelinePass& pass = work.schedule.passes[id];
      const TimedPass& timed = passes.passes[id];
      return {name_of(pass.kind),
              fmt::format("{} {}", name_of(pass.kind), pass.microbatch),
              {{"core_mhz", timed.core_mhz},
               {"power_w", timed.power_w()},
               {"energy_j", timed.energy_j},
               {"chunk", pass.chunk},
               {"critical", timed.critical},
               {"switched", timed.switched}}};
    };
    draw_graph_run(out, pid++, graph, nullptr,
                   {.title = track.title, .run = &run, .text_of = text_of});
  }
  out.finish();
}

}  // namespace rubato
