// What holds for a captured run on every GPU: at the clocks of the capture it takes its own time, a
// higher core clock takes no more time, and a lower power limit no less.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/graph/graph_model.hpp"
#include "sim/graph/simulator.hpp"
#include "tests/captures.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

constexpr double run_round_off = 1e-9;  // of thousands of launches, relative

const CaptureGraph& graph_of(const std::string& file) {
  static std::map<std::string, CaptureGraph> known;
  const auto found = known.find(file);
  if (found != known.end()) return found->second;
  return known.emplace(file, capture_graph(import_capture(captured("traces/" + file))))
      .first->second;
}

// Every memory state at core clocks spread over the GPU's range, ascending.
ClockGrid spread_clocks(const GpuSpec& spec) {
  constexpr int per_state = 6;
  std::vector<ClockPair> pairs;
  for (std::size_t m = 0; m < spec.mem_states.size(); ++m) {
    for (int i = 0; i < per_state; ++i) {
      const double share = static_cast<double>(i) / (per_state - 1);
      const ClockPair pair{
          id_at<MemStateId>(m),
          nearest_step_mhz(spec, std::lerp(spec.core.min_mhz, spec.core.max_mhz, share))};
      if (pairs.empty() || pairs.back() != pair) pairs.push_back(pair);
    }
  }
  return {spec, std::move(pairs)};
}

class CapturedRunLaws : public testing::TestWithParam<std::string> {};

TEST_P(CapturedRunLaws, HoldForEverySpecClockAndLimit) {
  std::uint64_t compared = 0, broken = 0;
  double worst = 0.0;
  std::string first;
  const auto ordered = [&](double less, double more, const std::string& where) {
    ++compared;
    if (std::isfinite(more) && more >= less * (1.0 - run_round_off)) return;
    if (broken++ == 0) first = where;
    worst = std::max(worst, less / more - 1.0);
  };
  const ExecutionGraph& graph = graph_of(GetParam()).graph;
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    const ClockGrid grid = spread_clocks(spec);
    std::vector<double> roomier_s(grid.size(), 0.0);  // under the limit before
    for (const double limit_w :
         {spec.power_limit.max_w, spec.power_limit.limit_w,
          0.5 * (spec.power_limit.limit_w + spec.power_limit.min_w), spec.power_limit.min_w}) {
      const GraphModel model(graph, spec, spec.default_clock, limit_w);
      GraphSimulator simulator(model, grid);
      for (std::size_t c = 0; c < grid.size(); ++c) {
        const auto clock = id_at<ClockId>(c);
        const GraphRun run = simulator.run(uniform_plan(graph, clock));
        const std::string where = fmt::format("{}, {}, {} W", name, grid.label(clock), limit_w);
        ordered(roomier_s[c], run.span_s, "lower limit, no less time: " + where);
        ordered(std::numeric_limits<double>::min(), run.total_energy_j, "energy > 0: " + where);
        roomier_s[c] = run.span_s;
        if (c > 0 && grid[clock].mem == grid[id_at<ClockId>(c - 1)].mem && grid[clock].core_mhz)
          ordered(run.span_s, roomier_s[c - 1], "higher clock, no more time: " + where);
        if (clock == grid.default_clock() && limit_w == spec.power_limit.limit_w) {
          EXPECT_NEAR(run.span_s / graph.captured_span_s(), 1.0, run_round_off) << where;
        }
      }
    }
  }
  RecordProperty("compared", std::to_string(compared));
  EXPECT_EQ(broken, 0U) << "of " << compared << ", worst " << worst << ", first " << first;
}

GraphRun run_at(const GraphModel& model, const ClockGrid& grid, std::string_view clock) {
  return GraphSimulator(model, grid).run(uniform_plan(model.graph(), *grid.find(clock)));
}

// A limit that is set is that of a run; a GPU that draws 1.25 times as much runs as under a limit
// that much lower, and takes 1.25 times the energy.
TEST(CapturedRunLimits, OfSettingsAndOfWarmGpusAreThoseOfTheRun) {
  const ExecutionGraph& graph = graph_of("kineto_h100_qwen_fwd.json.gz").graph;
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const ClockGrid grid = make_clock_grid(spec, "limit=160,200");
  const GraphModel model(graph, spec, spec.default_clock),
      limited(graph, spec, spec.default_clock, 160.0);
  const GraphRun set = run_at(model, grid, "1593/auto, 160 W"),
                 of_run = run_at(limited, grid, "1593/auto");
  EXPECT_EQ(set.span_s, of_run.span_s);
  EXPECT_EQ(set.total_energy_j, of_run.total_energy_j);
  EXPECT_GT(set.span_s, 1.01 * run_at(model, grid, "1593/auto").span_s);
  const GraphModel warm =
      model.with_throttles(std::vector<GpuThrottle>(graph.gpus().size(), {.power_factor = 1.25}));
  const GraphRun hot = run_at(warm, grid, "1593/auto, 200 W");
  EXPECT_NEAR(hot.span_s / set.span_s, 1.0, run_round_off);
  EXPECT_NEAR(hot.total_energy_j / set.total_energy_j, 1.25, run_round_off);
}

INSTANTIATE_TEST_SUITE_P(Captures, CapturedRunLaws,
                         testing::Values("kineto_a100_ddp2_resnet.json.gz",
                                         "kineto_h100_qwen_fwd.json.gz",
                                         "nsys_h100_2gpu_dit.sqlite",
                                         "chakra_resnet_rank0.json.gz"),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param.substr(0, info.param.find('.'));
                         });

}  // namespace
}  // namespace rubato
