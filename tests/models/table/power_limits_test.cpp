// Power limits as settings: laws over all shipped specs.

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/gpu/spec.hpp"
#include "models/table/fill.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

// Every kernel of a step under limits from the least to the most that the spec accepts, at the
// default clocks: a lower limit is never faster and never draws more. The table of the solvers has
// the same bits, and so has a model of which the limit is the run's.
TEST(PowerLimits, ALowerOneIsNeverFasterNorDrawsMore) {
  const Trace trace = generate_training_step(gpt_preset("gpt3-small")).trace;
  for (const std::string& name : shipped_gpu_specs()) {
    SCOPED_TRACE(name);
    GpuSpec spec = load_gpu_spec(name);
    const PowerLimit& limit = spec.power_limit;
    const ClockGrid grid =
        make_clock_grid(spec, fmt::format("limit={}:{}:{}", limit.min_w, limit.max_w,
                                          std::max(1.0, (limit.max_w - limit.min_w) / 7.0)));
    const GpuModel model(spec, trace);
    const std::vector<OperatingPoint> cells = evaluate_all(model, grid);
    const ProfileTable table = fill_profile_table(model, grid);
    const std::vector<OperatingPoint> of_run =
        evaluate_all(GpuModel(spec, trace, grid[ClockId{0}].power_limit_w), grid);
    std::size_t slowed = 0;
    for (std::size_t k = 0; k < model.kernels(); ++k) {
      const OperatingPoint* lower = nullptr;
      EXPECT_EQ(of_run[k * grid.size() + index(grid.default_clock())].time_s,
                cells[k * grid.size()].time_s);
      for (std::size_t c = 0; c < grid.size(); ++c) {
        const auto clock = id_at<ClockId>(c);
        const OperatingPoint& point = cells[k * grid.size() + c];
        EXPECT_EQ(table.cost(k, clock).time_s, point.time_s);
        EXPECT_EQ(table.cost(k, clock).energy_j, point.energy_j);
        if (clock == grid.default_clock()) continue;
        if (lower != nullptr) {
          EXPECT_LE(point.time_s, lower->time_s * (1.0 + 1e-9));
          EXPECT_GE(point.energy_j / point.time_s, lower->energy_j / lower->time_s * (1.0 - 1e-9));
          slowed += lower->time_s > point.time_s * 1.001;
        }
        lower = &point;
      }
    }
    EXPECT_GT(slowed, 0U);
  }
}

}  // namespace
}  // namespace rubato
