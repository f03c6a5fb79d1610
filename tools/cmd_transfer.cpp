// rubato transfer: a plan found on one trace, applied to others.

#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "explorer/transfer.hpp"
#include "tools/command.hpp"
#include "tools/exploration_tables.hpp"
#include "tools/gpu_option.hpp"
#include "tools/output.hpp"
#include "traces/gpt.hpp"
#include "traces/trace_json.hpp"

namespace rubato {

namespace {

struct Options {
  std::string db, model = "gpt3-xl";
  std::int64_t plan = 0;
  std::vector<std::string> traces;
  std::vector<std::uint64_t> batches, tensor_parallel;
  OutputFormat format = OutputFormat::table;
};

// The traces named, and every combination of batch and tensor-parallel degree.
std::vector<Trace> traces_of(const Options& o) {
  std::vector<Trace> traces;
  for (const std::string& name : o.traces) traces.push_back(load_trace(name));
  if (o.batches.empty() && o.tensor_parallel.empty()) return traces;
  GptShape shape = gpt_preset(o.model);
  for (const std::uint64_t tp :
       o.tensor_parallel.empty() ? std::vector{shape.tensor_parallel} : o.tensor_parallel) {
    for (const std::uint64_t batch : o.batches.empty() ? std::vector{shape.batch} : o.batches) {
      shape.batch = batch;
      shape.tensor_parallel = tp;
      traces.push_back(generate_gpt_trace(shape));
    }
  }
  return traces;
}

}  // namespace

Action setup_transfer(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("TRACE", o->traces, "Traces to apply the plan to: shipped names or files");
  app.add_option("--db", o->db, "Result database with the plan")->required();
  app.add_option("--plan", o->plan, "plan_id [the best plan of the latest run]");
  app.add_option("--batches", o->batches,
                 "Also to the GPT step with these batch sizes (with commas)")
      ->delimiter(',');
  app.add_option("--tp", o->tensor_parallel,
                 "Also to the GPT step with these tensor-parallel degrees")
      ->delimiter(',');
  app.add_option("--model", o->model, "Model of --batches and --tp")->capture_default_str();
  add_format_options(app, o->format);
  app.footer(
      "\nKernels are matched by name; those the plan does not know, such as collectives, stay at "
      "default clocks.\n"
      "Change is against the default clocks of each trace. Regret is what the trace's own plan for "
      "the same\n"
      "question would save beyond the transferred one, in points.\n"
      "Example:\n  rubato transfer --db results.db --batches 1,5,10,20,40 --tp 1,2,4");
  return [o](const RunContext& context) {
    const ResultStore store = ResultStore::open_read_only(o->db);
    const StoredPlan plan =
        load_plan(store, o->plan > 0 ? o->plan : best_plan_of_latest_run(store));
    say_if_not_calibrated(plan.spec);
    const std::vector<Trace> traces = traces_of(*o);
    if (traces.empty())
      throw UsageError("no trace to apply the plan to; name one, or give --batches or --tp");
    OutputTable table({{"trace"},
                       {"power_w", "default W", 0},
                       {"known_pct", "known time %", 1},
                       {"time_change_pct", "time %", 2},
                       {"energy_change_pct", "energy %", 2},
                       {"own_time_change_pct", "own time %", 2},
                       {"own_energy_change_pct", "own energy %", 2},
                       {"regret_points", "regret", 2}});
    for (std::size_t i = 0; i < traces.size() && !context.stop_requested(); ++i) {
      const Transfer t = transfer(plan, traces[i], context);
      const auto own = [&](double value) {
        return t.own_found ? Cell(value) : Cell(std::monostate{});
      };
      table.add_row({t.trace, t.baseline.average_power_w(), 100.0 * t.known_frac,
                     change_pct(t.transferred.time_s, t.baseline.time_s),
                     change_pct(t.transferred.energy_j, t.baseline.energy_j),
                     own(change_pct(t.own.time_s, t.baseline.time_s)),
                     own(change_pct(t.own.energy_j, t.baseline.energy_j)),
                     own(100.0 * t.regret_frac())});
      context.report({.done = i + 1, .total = traces.size(), .note = t.trace});
    }
    print(table.render(o->format));
    return ExitStatus::done;
  };
}

}  // namespace rubato
