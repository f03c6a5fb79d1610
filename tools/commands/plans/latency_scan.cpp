// rubato latency-scan: what is left of a saving when changing clocks takes time.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/algorithms/parallel.hpp"
#include "common/file.hpp"
#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/exploration.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/drawing/latency.hpp"
#include "tools/drawing/page.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/prices.hpp"
#include "tools/options/user_defaults.hpp"
#include "tools/terminal/output.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

namespace {

struct LatencyOptions {
  std::string trace = "gpt3-xl", gpu, clocks, waits = "both", page;
  std::vector<double> latencies_us;
  double slack_pct = 0.0;
  std::optional<double> host_power_w;
  OutputFormat format = OutputFormat::table;
};

std::vector<double> default_latencies_us() {
  return {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 6e3, 10e3, 30e3, 100e3, 150e3, 500e3};
}

Cell device_at(double latency_us) {
  for (const PublishedLatency& published : published_latencies) {
    if (published.latency_us == latency_us) return std::string(published.device);
  }
  return std::monostate{};
}

LatencyPoint point_at(const LatencyOptions& o, const Trace& trace, const GpuSpec& spec,
                      const std::shared_ptr<StandardErrorDraws>& error_draws, double latency_us,
                      bool waits, const RunContext& context) {
  const double latency_s = latency_us / us_per_s;
  const SwitchCost change =
      waits ? SwitchCost{.stall_s = latency_s} : SwitchCost{.lead_s = latency_s};
  ExplorationInput input{.trace = trace,
                         .spec = spec,
                         .grid = o.clocks,
                         .power_limit_w = {},
                         .switching = {.core = change, .mem = {}},
                         .questions = {},
                         .host_power_w = o.host_power_w.value_or(0.0),
                         .error_draws = error_draws};
  for (const Granularity granularity : compared_granularities) {
    input.questions.push_back(
        {granularity, Aggregation::global, LeastWaste{o.slack_pct / 100.0, 0.0}});
  }
  const Exploration found = explore(input, context);
  const Totals& base = found.baseline.total;
  LatencyPoint point{.latency_us = latency_us, .waits = waits, .plans = {}};
  for (std::size_t i = 0; i < found.plans.size(); ++i) {
    const PlanResult& plan = found.plans[i];
    if (!plan.found()) continue;
    point.plans[i] = {.time_change_pct = change_pct(plan.sim.total.time_s, base.time_s),
                      .energy_change_pct = change_pct(plan.sim.total.energy_j, base.energy_j),
                      .interval = plan.interval.value_or(SavingInterval{}),
                      .gap_pct = 100.0 * plan.gap_frac,
                      .switches = static_cast<std::int64_t>(plan.sim.total.clock_switches),
                      .late_launches = static_cast<std::int64_t>(plan.sim.late_launches)};
  }
  return point;
}

std::vector<Cell> row_of(const LatencyPoint& point) {
  std::vector<Cell> row{point.latency_us, time_text(point.latency_us / us_per_s),
                        std::string(point.waits ? "waits" : "runs on")};
  for (const auto& plan : point.plans) {
    row.emplace_back(plan ? Cell(plan->time_change_pct) : Cell{});
    row.emplace_back(plan ? Cell(plan->energy_change_pct) : Cell{});
    for (const Interval SavingInterval::*of : {&SavingInterval::time, &SavingInterval::energy}) {
      row.emplace_back(plan ? Cell((plan->interval.*of).low_pct) : Cell{});
      row.emplace_back(plan ? Cell((plan->interval.*of).high_pct) : Cell{});
    }
  }
  const auto &kernel = point.plans[2], &automatic = point.plans[3];
  row.emplace_back(kernel ? Cell(kernel->late_launches) : Cell{});
  row.emplace_back(automatic ? Cell(automatic->switches) : Cell{});
  row.emplace_back(automatic ? Cell(automatic->gap_pct) : Cell{});
  row.push_back(device_at(point.latency_us));
  return row;
}

OutputTable table_of(const std::vector<LatencyPoint>& points) {
  std::vector<Column> columns{{.key = "latency_us", .for_programs = true},
                              {.key = "latency", .for_people = true},
                              {"device_waits", "GPU"}};
  for (const Granularity granularity : compared_granularities) {
    const std::string name(name_of(granularity));
    const bool coarse = granularity == Granularity::run || granularity == Granularity::pass;
    const Room room = coarse ? Room::detail : Room::usual;
    columns.push_back({name + "_time_change_pct", name + " time %", 2, false, room});
    columns.push_back({name + "_energy_change_pct", name + " energy %", 2, false, room});
    for (const char* quantity : {"time", "energy"}) {
      for (const char* end : {"low", "high"}) {
        const bool for_programs = quantity == std::string_view("time");
        columns.push_back({.key = fmt::format("{}_{}_change_{}_pct", name, quantity, end),
                           .title = fmt::format("{} {}", name, end),
                           .decimals = 2,
                           .for_programs = for_programs,
                           .room = Room::detail});
      }
    }
  }
  columns.insert(columns.end(), {{"kernel_late_launches", "kernel late", 0, false, Room::spare},
                                 {"segment_switches", "segment switches", 0, false, Room::spare},
                                 {"segment_gap_pct", "gap %", 3, false, Room::spare},
                                 {.key = "device", .room = Room::needed}});
  OutputTable table(std::move(columns));
  for (const LatencyPoint& point : points) table.add_row(row_of(point));
  return table;
}

std::string page_of(const LatencyOptions& o, const Trace& trace, const GpuSpec& spec,
                    std::span<const LatencyPoint> points) {
  nlohmann::ordered_json energies = nlohmann::ordered_json::array(), times = energies,
                         places = energies;
  for (const Granularity granularity : compared_granularities) {
    energies.push_back(fmt::format("{}_energy_change_pct", name_of(granularity)));
    times.push_back(fmt::format("{}_time_change_pct", name_of(granularity)));
  }
  for (const PublishedLatency& device : published_latencies)
    places.push_back({device.latency_us, device.device});
  const auto chart = [&](const char* title, const nlohmann::ordered_json& columns, double most) {
    return nlohmann::ordered_json{{"title", title},
                                  {"x", "latency_us"},
                                  {"y", columns},
                                  {"line", true},
                                  {"log", "x"},
                                  {"places", places},
                                  {"panels", "device_waits"},
                                  {"most", most}};
  };
  const OutputTable table = table_of({points.begin(), points.end()});
  return drawn_page(
      {"What is left when switches take time",
       fmt::format("{} on {}, {:g} W, clocks '{}', least energy in at most {:g} % more time",
                   trace.name, spec.title, spec.power_limit.limit_w, grid_name(spec, o.clocks),
                   o.slack_pct),
       latency_answer(points),
       fmt::format("model error: {}. Plans per segment know the latency; the others took changes "
                   "to be free and are counted with it, late ones too. The gap is to a proven "
                   "bound of segment",
                   model_error_text(spec))},
      std::array{PagePart{
          .name = "latencies",
          .title = "Energy and time over latency",
          .text = "Dotted: latencies that somebody published for a device. What misses the time "
                  "many times over lies above the charts",
          .table = &table,
          .charts =
              nlohmann::ordered_json{chart("Energy", energies, 5.0), chart("Time", times, 40.0)}
                  .dump()}});
}

std::vector<LatencyPoint> sweep(const LatencyOptions& o, const Trace& trace, const GpuSpec& spec,
                                const RunContext& context) {
  std::vector<LatencyPoint> points;
  for (const bool waits : {false, true}) {
    if (o.waits == (waits ? "no" : "yes")) continue;
    for (const double latency_us : o.latencies_us.empty() ? default_latencies_us() : o.latencies_us)
      points.push_back({.latency_us = latency_us, .waits = waits, .plans = {}});
  }
  std::vector<char> done(points.size(), 0);
  std::size_t count = 0;
  std::mutex reporting;
  const RunContext silent{.cancelled = context.cancelled};
  const auto error_draws = std::make_shared<StandardErrorDraws>();
  parallel_for(points.size(), [&](std::size_t i) {
    if (context.stop_requested()) return;
    points[i] =
        point_at(o, trace, spec, error_draws, points[i].latency_us, points[i].waits, silent);
    const std::scoped_lock lock(reporting);
    done[i] = context.stop_requested() ? 0 : 1;
    context.report({.done = ++count,
                    .total = points.size(),
                    .note = time_text(points[i].latency_us / us_per_s)});
  });
  // Ctrl-C keeps what was finished.
  std::vector<LatencyPoint> finished;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (done[i] != 0) finished.push_back(points[i]);
  }
  tell_done(finished.size(), points.size(), "latencies");
  return finished;
}

}  // namespace

Action setup_latency_scan(CommandLine& app) {
  auto o = std::make_shared<LatencyOptions>();
  app.add_option("TRACE", o->trace, "Shipped name or file")->capture_default_str()->reads_file();
  app.add_option("--gpu NAME", o->gpu, "GPU model; 'rubato gpus' lists them [rtx-3080-ti]");
  app.add_option("--clocks", o->clocks, "Clocks to choose from")->capture_default_str();
  app.add_option("--latencies-us", o->latencies_us,
                 "Latencies from a request to its effect, us (with commas) [1 to 500000]")
      ->delimiter(',');
  app.add_option("--waits", o->waits,
                 "Whether the GPU waits during the latency (yes), runs on at the old clock with "
                 "requests issued ahead of time (no), or both")
      ->one_of({"both", "yes", "no"})
      ->capture_default_str();
  app.add_option("--slack", o->slack_pct, "Time allowed beyond the default clocks, %")
      ->capture_default_str();
  add_host_power_option(app, o->host_power_w);
  app.add_option("--page", o->page, "Write an HTML page with the picture")
      ->ends_in({".html", ".htm"});
  add_format_options(app, o->format);
  app.footer(
      "Plans per segment are chosen with the latency. Those per run, pass and kernel are not, and "
      "may be late: the GPU switches as soon as it can, and launches that begin before run at the "
      "old clock. GPUs are named at their published latency. Low and high: 90 % interval of the "
      "energy change before them.");
  return [o](const RunContext& context) {
    check_host_power(o->host_power_w);
    const Trace trace = load_trace(o->trace);
    const GpuSpec spec = load_gpu(o->gpu.empty() ? usual_gpu() : o->gpu);
    for (const double latency_us : o->latencies_us) {
      constexpr double most_us = 1e8;
      if (!(latency_us > 0.0 && latency_us <= most_us))
        throw UsageError(fmt::format("--latencies-us is {}; expected numbers > 0, at most {}",
                                     latency_us, most_us));
    }
    give_parts();
    const std::vector<LatencyPoint> points = sweep(*o, trace, spec, context);
    if (points.empty()) return ExitStatus::interrupted;
    if (o->format == OutputFormat::table) {
      print_notes(answer_text(fmt::format("{} on {}, slack {} %", printable(trace.name),
                                          printable(spec.title), format_number(o->slack_pct)),
                              latency_answer(points)));
    }
    print(table_of(points), o->format);
    if (!o->page.empty()) write_output(o->page, page_of(*o, trace, spec, points));
    return ExitStatus::done;
  };
}

}  // namespace rubato
