// Plans that know what a change of clock takes, for up to a million launches: kernels and clocks
// of the GPT-3-xl step on an RTX 3080 Ti. Each run checks its gap.

#include <random>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "explorer/switching/launch_dp.hpp"
#include "explorer/switching/search.hpp"
#include "models/table/fill.hpp"
#include "models/table/gpu_model.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

enum class Order : std::int64_t { training_steps, random };

// Training steps in a row, or their kernels in random order, where nothing repeats.
Trace long_trace(std::size_t size, Order order) {
  Trace trace = load_trace("gpt3-xl");
  const std::vector<KernelId> step = launches(trace.segments);
  if (order == Order::training_steps) {
    const auto steps = static_cast<std::uint32_t>((size + step.size() - 1) / step.size());
    trace.segments = {{.name = "step", .repeat = steps, .launches = step}};
    return trace;
  }
  std::vector<KernelId> list(size);
  std::mt19937_64 random(20260113);
  for (KernelId& kernel : list) kernel = step[random() % step.size()];
  trace.segments = {{.name = "all", .repeat = 1, .launches = std::move(list)}};
  return trace;
}

double peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

// Arguments: launches, order, stall in us, lead in us.
void switching(benchmark::State& state) {
  const Trace trace =
      long_trace(static_cast<std::size_t>(state.range(0)), static_cast<Order>(state.range(1)));
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), trace);
  const ClockGrid grid = make_clock_grid(model.spec(), "full");
  const ProfileTable table = fill_profile_table(model, grid);
  std::vector<double> idle_power_w;
  for (const ClockPair& clock : grid.pairs()) idle_power_w.push_back(model.idle_power_w(clock));
  const SwitchingProblem problem{
      .trace = trace,
      .per_launch = table,
      .clocks = grid.pairs(),
      .idle_power_w = idle_power_w,
      .switching = {.core = {.stall_s = 1e-6 * static_cast<double>(state.range(2)),
                             .energy_j = 0.0,
                             .lead_s = 1e-6 * static_cast<double>(state.range(3))},
                    .mem = {}},
      .budget_s = 0.0};
  SwitchingProblem budgeted = problem;
  for (const KernelId kernel : launches(trace.segments))
    budgeted.budget_s += table.cost(index(kernel), grid.default_clock()).time_s;
  SwitchingSolution solution;
  for (auto _ : state) {
    solution = solve_switching(budgeted);
    if (solution.runs.empty() || solution.gap_frac() > 0.01) state.SkipWithError("a wide gap");
  }
  constexpr double price_w = 530.0;  // of time, about where these budgets are met
  const LaunchSequence sequence(budgeted);
  state.counters["useful_clocks"] =
      static_cast<double>(useful_clocks(sequence, {1.0, price_w}).size());
  state.counters["gap_pct"] = 100.0 * solution.gap_frac();
  state.counters["prices"] = static_cast<double>(solution.prices);
  state.counters["changes"] = static_cast<double>(solution.runs.size() - 1);
  state.counters["peak_rss"] = benchmark::Counter(peak_rss_bytes(), benchmark::Counter::kDefaults,
                                                  benchmark::Counter::kIs1024);
}
BENCHMARK(switching)
    ->ArgNames({"launches", "random", "stall_us", "lead_us"})
    ->ArgsProduct({{1'000, 10'000, 100'000, 1'000'000}, {0, 1}, {100}, {0}})
    ->ArgsProduct({{1'000, 10'000, 100'000, 1'000'000}, {0, 1}, {0}, {6'000}})
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
