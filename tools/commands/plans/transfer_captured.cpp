#include "tools/commands/plans/transfer_captured.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "explorer/captured_transfer.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/store.hpp"
#include "tools/drawing/answer.hpp"
#include "tools/options/files.hpp"
#include "tools/options/prices.hpp"
#include "tools/terminal/exploration_tables.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

// A captured run on which the plan was played.
struct Played {
  std::string name;
  CapturedTransfer transfer;

  [[nodiscard]] bool in_time() const { return transfer.played.time_s <= transfer.deadline_s; }
};

std::vector<Cell> row_of(const StoredGraphPlan& plan, const Played& played) {
  const CapturedTransfer& t = played.transfer;
  const auto own = [&](double CapturedTotals::*total) {
    return t.own ? Cell(change_pct((*t.own).*total, t.baseline.*total)) : Cell();
  };
  const auto regret = t.regret_frac();
  return {played.name,
          plan.plan_id,
          plan.captures,
          percent * t.known_frac,
          change_pct(t.played.time_s, t.baseline.time_s),
          change_pct(t.played.energy_j, t.baseline.energy_j),
          static_cast<std::int64_t>(t.clock_changes),
          std::string(played.in_time() ? "kept" : "missed"),
          own(&CapturedTotals::time_s),
          own(&CapturedTotals::energy_j),
          regret ? Cell(percent * *regret) : Cell()};
}

std::string base_name(std::string_view file) {
  return std::filesystem::path(file).filename().string();
}

// The answer of the newest run of these files, else of the newest run. Only the names of
// files are compared: folders may have been written in another way when the run was stored.
std::int64_t plan_for(const ResultStore& store, const std::vector<std::string>& files) {
  const QueryResult found = store.query(
      "SELECT graph_run_id, captures FROM graph_runs ORDER BY asked DESC, created_utc DESC, "
      "graph_run_id DESC");
  if (found.rows.empty()) {
    throw UsageError("the database has no captured run whose plan could be played",
                     {.in = {}, .hint = "store one with 'rubato explore CAPTURE --db FILE'"});
  }
  const auto of_them = std::ranges::find_if(found.rows, [&](const auto& row) {
    return std::ranges::equal(split(text(row[1]), '\n'), files, {}, base_name, base_name);
  });
  const auto& row = of_them != found.rows.end() ? *of_them : found.rows.front();
  return choose_plans(store, {.captured = true, .id = whole(row[0])}, "", "", {}).plans.front().id;
}

// "plan graph:9 (segment, in at most 1 % more time), found on rank0.json and 7 more".
std::string describe(const StoredGraphPlan& plan) {
  return fmt::format("plan graph:{} ({}, in at most {} % more time), found on {}", plan.plan_id,
                     name_of(plan.question.grain),
                     format_number(percent * plan.question.slack_frac),
                     printable(files_text(plan.captures)));
}

Answer captured_transfer_answer(const std::vector<Played>& list) {
  double energy = 0.0, time = 0.0, regret = 0.0;
  std::size_t with_regret = 0;
  for (const auto& [name, t] : list) {
    energy += change_pct(t.played.energy_j, t.baseline.energy_j);
    time += change_pct(t.played.time_s, t.baseline.time_s);
    if (!t.regret_frac()) continue;
    ++with_regret;
    regret += percent * *t.regret_frac();
  }
  const auto mean = [](double sum, std::size_t n) { return sum / static_cast<double>(n); };
  const auto kept = static_cast<std::size_t>(std::ranges::count_if(list, &Played::in_time));
  const bool one = list.size() == 1;
  Answer answer;
  answer
      .say(one ? "There the plan changes energy by "
               : fmt::format("On {} captured runs the plan changes energy by ", list.size()))
      .lead(change_words(mean(energy, list.size())))
      .say(" and time by ")
      .lead(change_words(mean(time, list.size())))
      .say(one ? fmt::format("; the deadline is {}.", kept == 1 ? "kept" : "missed")
               : fmt::format(" in the mean; the deadline is kept on {}.", kept));
  if (with_regret > 0) {
    answer.say(fmt::format(" {} would save {} points more{}.",
                           one ? "A plan of its own" : "Plans of their own",
                           format_fixed(mean(regret, with_regret), 2), one ? "" : " in the mean"));
  }
  return answer;
}

}  // namespace

ExitStatus transfer_captured(const TransferCapturedOptions& o, const RunContext& context) {
  check_result_database(o.db);
  const ResultStore store = read_results(o.db);
  StoredGraphPlan plan =
      load_graph_plan(store, o.plan_id ? *o.plan_id : plan_for(store, o.runs.front()));
  if (!o.plan_id)
    tell("note: {}, is the one taken; --plan graph:N names another\n", describe(plan));
  plan.host_power_w = o.host_power_w.value_or(plan.host_power_w);
  OutputTable table({{"captures"},
                     {.key = "plan_id", .for_programs = true},
                     {.key = "plan_captures", .for_programs = true},
                     {"known_pct", "known time %", 1},
                     {"time_change_pct", "time %", 2},
                     {"energy_change_pct", "energy %", 2},
                     {"clock_changes", "changes", 0, false, Room::detail},
                     {.key = "deadline", .room = Room::needed},
                     {"own_time_change_pct", "own time %", 2},
                     {"own_energy_change_pct", "own energy %", 2},
                     {"regret_points", "regret", 2}});
  std::vector<Played> list;
  give_parts();
  for (const std::vector<std::string>& files : o.runs) {
    CapturedRunOptions each = o.each;
    each.files = files;
    each.granularities = {std::string(name_of(plan.question.grain))};
    CapturedRun run = captured_run(each, context);
    if (run.input.spec.name != plan.gpu) {
      throw UsageError(
          fmt::format("{}: is of {}; the plan is for {}", files.front(), run.input.spec.name,
                      plan.gpu),
          {.in = {},
           .hint = "--gpu says which spec a capture is priced with, --plan graph:N which "
                   "plan is played"});
    }
    const std::string first = with_input_named(files.front());
    const std::string name =
        files.size() == 1 ? first : fmt::format("{} and {} more", first, files.size() - 1);
    auto found = transfer(store, plan, std::move(run.input), context);
    if (context.stop_requested()) break;
    list.push_back({name, std::move(found)});
    for (const std::string& note : list.back().transfer.notes) tell("note: {}: {}\n", name, note);
    table.add_row(row_of(plan, list.back()));
    context.report({.done = list.size(), .total = o.runs.size(), .note = name});
  }
  tell_done(list.size(), o.runs.size(), "captured runs");
  if (list.empty()) return ExitStatus::interrupted;
  const bool terminal = o.each.format == OutputFormat::table;
  if (terminal) {
    print_notes(answer_text(fmt::format("{}, on {}{}", describe(plan), printable(plan.gpu),
                                        beside_gpu(plan.host_power_w)),
                            captured_transfer_answer(list)));
  }
  print(table, o.each.format);
  if (terminal) {
    print_notes(
        "\nChange is against the default clocks of each capture, changes of clock counted. own "
        "energy: the best plan found on that capture itself; regret: points that the plan saves "
        "less.\n");
  }
  return ExitStatus::done;
}

}  // namespace rubato
