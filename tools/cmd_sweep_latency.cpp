// rubato sweep-latency: what is left of a saving when changing clocks takes time.

#include <array>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "explorer/exploration.hpp"
#include "tools/command.hpp"
#include "tools/exploration_tables.hpp"
#include "tools/gpu_option.hpp"
#include "tools/output.hpp"
#include "traces/trace_json.hpp"

namespace rubato {

namespace {

struct Options {
  std::string trace = "gpt3-xl", gpu = "rtx-3080-ti", clocks;
  std::vector<double> stalls_us;
  double slack_pct = 0.0;
  OutputFormat format = OutputFormat::table;
};

/// A device for which somebody published how long a change of clock takes.
struct PublishedLatency {
  double stall_us;
  const char* device;
};

// As cited by Spaan et al., arXiv 2601.08539, and the works they name.
constexpr std::array published_latencies{
    PublishedLatency{1.0, "Raven Ridge"}, PublishedLatency{1e3, "Ascend NPU"},
    PublishedLatency{6e3, "H200"}, PublishedLatency{150e3, "Quadro RTX 6000"}};

std::vector<double> default_stalls_us() {
  return {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 6e3, 10e3, 30e3, 100e3, 150e3, 500e3};
}

Cell device_at(double stall_us) {
  for (const PublishedLatency& published : published_latencies) {
    if (published.stall_us == stall_us) return std::string(published.device);
  }
  return std::monostate{};
}

constexpr std::array granularities{Granularity::iteration, Granularity::pass, Granularity::kernel,
                                   Granularity::automatic};

std::vector<Cell> sweep_row(const Options& o, const Trace& trace, const GpuSpec& spec,
                            double stall_us, const RunContext& context) {
  ExplorationInput input{.trace = trace,
                         .spec = spec,
                         .grid = o.clocks,
                         .power_limit_w = {},
                         .switching = {.core = {.stall_s = stall_us * 1e-6}, .mem = {}},
                         .questions = {}};
  for (const Granularity granularity : granularities) {
    input.questions.push_back(
        {granularity, Aggregation::global, LeastWaste{o.slack_pct / 100.0, 0.0}});
  }
  const Exploration found = explore(input, context);
  std::vector<Cell> row{stall_us};
  for (const PlanResult& plan : found.plans) {
    row.emplace_back(change_pct(plan.sim.total.time_s, found.baseline.total.time_s));
    row.emplace_back(change_pct(plan.sim.total.energy_j, found.baseline.total.energy_j));
  }
  row.resize(1 + 2 * granularities.size());
  const bool complete = found.plans.size() == granularities.size();
  row.push_back(complete
                    ? Cell(static_cast<std::int64_t>(found.plans.back().sim.total.clock_switches))
                    : Cell{});
  row.push_back(complete ? Cell(100.0 * found.plans.back().gap_frac) : Cell{});
  row.push_back(device_at(stall_us));
  return row;
}

}  // namespace

Action setup_sweep_latency(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("TRACE", o->trace, "Shipped name or file")->capture_default_str();
  app.add_option("--gpu", o->gpu, "Shipped name or file of a GPU spec")->capture_default_str();
  app.add_option("--clocks", o->clocks, "Clocks to choose from")->capture_default_str();
  app.add_option("--stalls-us", o->stalls_us,
                 "Stalls per change of clock, us (with commas) [1 to 500000]")
      ->delimiter(',');
  app.add_option("--slack", o->slack_pct, "Time allowed beyond the default clocks, %")
      ->capture_default_str();
  add_format_options(app, o->format);
  app.footer(
      "\nThe GPU waits for the stall at each change of clock. Plans per iteration, pass and kernel "
      "do not know of it\n"
      "and may miss the time budget; 'auto' plans with it. Devices are marked where their latency "
      "was published.\n"
      "Example:\n  rubato sweep-latency gpt3-xl --stalls-us 1,100,10000");
  return [o](const RunContext& context) {
    const Trace trace = load_trace(o->trace);
    const GpuSpec spec = load_gpu(o->gpu);
    const std::vector<double> stalls_us = o->stalls_us.empty() ? default_stalls_us() : o->stalls_us;
    for (const double stall_us : stalls_us) {
      if (!(stall_us >= 0.0))
        throw UsageError(fmt::format("--stalls-us is {}; expected numbers >= 0", stall_us));
    }
    std::vector<Column> columns{{"stall_us", "stall us", 0}};
    for (const Granularity granularity : granularities) {
      const std::string name(name_of(granularity));
      columns.push_back({name + "_time_change_pct", name + " time %", 2});
      columns.push_back({name + "_energy_change_pct", "energy %", 2});
    }
    columns.insert(columns.end(),
                   {{"auto_switches", "switches"}, {"auto_gap_pct", "gap %", 2}, {"device"}});
    OutputTable table(std::move(columns));
    for (std::size_t i = 0; i < stalls_us.size() && !context.stop_requested(); ++i) {
      table.add_row(sweep_row(*o, trace, spec, stalls_us[i], context));
      context.report(
          {.done = i + 1, .total = stalls_us.size(), .note = fmt::format("{} us", stalls_us[i])});
    }
    print(table.render(o->format));
    return ExitStatus::done;
  };
}

}  // namespace rubato
