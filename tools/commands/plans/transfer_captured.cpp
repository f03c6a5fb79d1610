#include "tools/commands/plans/transfer_captured.hpp"

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/captured_transfer.hpp"
#include "explorer/results/store.hpp"
#include "tools/options/files.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

std::vector<Cell> row_of(const std::string& name, const CapturedTransfer& t) {
  const auto own = [&](double CapturedTotals::*total) {
    return t.own ? Cell(change_pct((*t.own).*total, t.baseline.*total)) : Cell();
  };
  const auto regret = t.regret_frac();
  return {name,
          percent * t.known_frac,
          change_pct(t.played.time_s, t.baseline.time_s),
          change_pct(t.played.energy_j, t.baseline.energy_j),
          static_cast<std::int64_t>(t.clock_changes),
          std::string(t.played.time_s <= t.deadline_s ? "kept" : "missed"),
          own(&CapturedTotals::time_s),
          own(&CapturedTotals::energy_j),
          regret ? Cell(percent * *regret) : Cell()};
}

}  // namespace

ExitStatus transfer_captured(const TransferCapturedOptions& o, const RunContext& context) {
  check_result_database(o.db);
  const ResultStore store = ResultStore::open_read_only(o.db);
  StoredGraphPlan plan = load_graph_plan(store, o.plan_id);
  plan.host_power_w = o.host_power_w.value_or(plan.host_power_w);
  OutputTable table({{"captures"},
                     {"known_pct", "known time %", 1},
                     {"time_change_pct", "time %", 2},
                     {"energy_change_pct", "energy %", 2},
                     {"clock_changes", "changes", 0, false, Room::detail},
                     {.key = "deadline", .room = Room::needed},
                     {"own_time_change_pct", "own time %", 2},
                     {"own_energy_change_pct", "own energy %", 2},
                     {"regret_points", "regret", 2}});
  std::size_t done = 0;
  for (const std::vector<std::string>& files : o.runs) {
    if (context.stop_requested()) break;
    CapturedRunOptions each = o.each;
    each.files = files;
    each.granularities = {std::string(name_of(plan.question.grain))};
    CapturedRun run = captured_run(each, context);
    if (run.input.spec.name != plan.gpu) {
      throw UsageError(fmt::format("{}: is of {}; the plan is for {}", files.front(),
                                   run.input.spec.name, plan.gpu),
                       {.in = {}, .hint = "--gpu says which spec a capture is priced with"});
    }
    const std::string first = with_input_named(files.front());
    const std::string name =
        files.size() == 1 ? first : fmt::format("{} and {} more", first, files.size() - 1);
    const CapturedTransfer played = transfer(store, plan, std::move(run.input), context);
    for (const std::string& note : played.notes) tell("note: {}: {}\n", name, note);
    table.add_row(row_of(name, played));
    context.report({.done = ++done, .total = o.runs.size(), .note = name});
  }
  print(table, o.each.format);
  return finished(done, o.runs.size(), "captured runs");
}

}  // namespace rubato
