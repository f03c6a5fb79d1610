// Planning on a measured table, from the text of its file to the plan, beside the least that
// reading it takes in the same run: finding every comma and reading every number. 1,000 kernels x
// 762 clocks is a sweep of every kernel of a large model at every clock of an RTX 3080 Ti.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "explorer/exploration.hpp"
#include "models/measured/measured_table.hpp"

namespace rubato {
namespace {

double cpu_s() { return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC); }

template <class F>
double cpu_seconds(const F& f) {
  const double start = cpu_s();
  f();
  return cpu_s() - start;
}

// Kernels bound by core and memory in all proportions, with noise.
std::string made_table(const GpuSpec& spec, std::size_t kernels) {
  std::mt19937_64 random(20260113);
  std::normal_distribution<double> gaussian;
  std::string text = "kernel,core_mhz_requested,mem_mhz,time_s,power_w\n";
  for (std::size_t k = 0; k < kernels; ++k) {
    const double cycles = std::exp(gaussian(random)) * 3e5,
                 ticks = std::exp(gaussian(random)) * 2e5;
    for (const MemState& mem : spec.mem_states) {
      for (double mhz = spec.core.min_mhz; mhz <= spec.core.max_mhz; mhz += spec.core.step_mhz) {
        const double time_s = cycles / (mhz * 1e6) + ticks / (mem.mem_mhz * 1e6);
        const double share = mhz / spec.core.max_mhz;
        const double power_w = 60.0 + 200.0 * share * share * share + 0.004 * mem.mem_mhz;
        text += fmt::format("kernel_{},{},{},{:.9g},{:.7g}\n", k, mhz, mem.name,
                            time_s * (1.0 + 0.003 * gaussian(random)),
                            power_w * (1.0 + 0.005 * gaussian(random)));
      }
    }
  }
  return text;
}

// Commas and numbers, nothing kept.
double numbers_in(std::string_view text) {
  double sum = 0.0;
  for (const char *at = text.data(), *end = at + text.size(); at < end; ++at) {
    double value = 0.0;
    const auto read = std::from_chars(at, end, value);
    if (read.ec == std::errc{}) sum += value;
    at = std::find_if(read.ptr, end, [](char c) { return c == ',' || c == '\n'; });
  }
  return sum;
}

void measured_table_to_plan(benchmark::State& state) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const auto kernels = static_cast<std::size_t>(state.range(0));
  const std::string text = made_table(spec, kernels);
  double floor_s = 0.0, read_s = 0.0, table_s = 0.0, plan_s = 0.0, interval_s = 0.0;
  for (auto _ : state) {
    floor_s += cpu_seconds([&] { benchmark::DoNotOptimize(numbers_in(text)); });
    std::optional<Sweep> sweep;
    read_s += cpu_seconds([&] { sweep = parse_sweep(text, "made.csv", spec); });
    std::optional<MeasuredTable> table;
    table_s +=
        cpu_seconds([&] { table = measured_table(*sweep, spec, {}, MissingCells::leave_out); });
    ExplorationInput input{
        .trace = table->trace,
        .spec = table->spec,
        .grid = "",
        .power_limit_w = {},
        .switching = {},
        .questions = {{.granularity = Granularity::kernel, .goal = LeastWaste{0.05, 0.0}}}};
    input.measured = table->cells;
    input.measured_clocks = table->clocks;
    input.measured_noise = {.time = 0.005, .energy = 0.01};
    input.plans_only = true;
    const auto plan = [&] {
      const Exploration found = explore(input);
      if (found.plans.at(0).status != SolveStatus::optimal) state.SkipWithError("no proven plan");
    };
    plan_s += cpu_seconds(plan);
    input.plans_only = false;
    interval_s += cpu_seconds(plan);
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["cells"] = static_cast<double>(kernels * 762);
  state.counters["read/floor"] = read_s / floor_s;
  state.counters["table/floor"] = table_s / floor_s;
  state.counters["plan/floor"] = plan_s / floor_s;
  state.counters["plan+interval/floor"] = interval_s / floor_s;
  state.counters["all/floor"] = (read_s + table_s + interval_s) / floor_s;
  state.counters["all_s"] = (read_s + table_s + interval_s) / runs;
}

BENCHMARK(measured_table_to_plan)
    ->ArgName("kernels")
    ->Arg(100)
    ->Arg(1'000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
