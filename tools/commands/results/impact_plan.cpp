#include "tools/commands/results/impact_plan.hpp"

#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

// The answer of the newest run.
std::int64_t best_plan(const ResultStore& store) {
  const StoredRun run = find_stored_run(store, "latest");
  return choose_plans(store, run.id, "", "", {}).plans.front().id;
}

// "model=gpt3-xl batch=20 seq=1024 tp=2": the number after a word and "=".
std::optional<double> option_of(std::string_view options, std::string_view name) {
  for (const std::string_view word : split(options, ' ')) {
    const std::size_t sign = word.find('=');
    if (sign != std::string_view::npos && word.substr(0, sign) == name)
      return parse_number(word.substr(sign + 1));
  }
  return std::nullopt;
}

// What `trace gen` wrote into the trace of a run; nothing where it says less, or splits sequences
// or experts as well, so that a replica's GPUs are not its tensor-parallel degree.
std::optional<IterationWork> work_of_trace(const ResultStore& store, std::int64_t run_id) {
  const QueryResult found = store.query(
      "SELECT coalesce(json_extract(text, '$.provenance.options'), '') FROM v_inputs WHERE run_id "
      "= ? AND kind = 'trace'",
      {run_id});
  if (found.rows.empty()) return std::nullopt;
  const auto& options = value_as<std::string>(found.rows.front().front());
  const auto batch = option_of(options, "batch"), sequence = option_of(options, "seq"),
             tensor_parallel = option_of(options, "tp");
  const bool more =
      option_of(options, "cp").value_or(1.0) > 1.0 || option_of(options, "ep").value_or(1.0) > 1.0;
  if (!batch || !sequence || !tensor_parallel || more) return std::nullopt;
  return IterationWork{*batch * *sequence, *tensor_parallel};
}

}  // namespace

ComparedPlan compared_plan(const ResultStore& store, const std::string& plan) {
  const std::int64_t id = plan.empty() ? best_plan(store) : plan_named(plan);
  const QueryResult found = store.query(
      "SELECT run_id, kind, work, ifnull(gpu, 'GPUs of a profile'), CASE kind WHEN 'capture' THEN "
      "late_launches NOT NULL ELSE time_s <> planned_time_s OR energy_j <> planned_energy_j END, "
      "(SELECT steps FROM v_runs r WHERE r.run_id = p.run_id) FROM v_plans p WHERE plan_id = ? AND "
      "energy_j NOT NULL",
      {id});
  if (found.rows.empty()) {
    throw UsageError(fmt::format("there is no plan {} with clocks", id),
                     {.in = {}, .hint = "'rubato show' lists the plans of a run"});
  }
  const auto& row = found.rows.front();
  const StoredRun run{whole(row[0]), text(row[1])};
  const PlanCandidate one = choose_plans(store, run.id, "", "", id).plans.front();
  const StoredBaseline base = stored_baseline(store, run.id);
  const StoredChange energy = change_of_boards(one, base);
  const double iterations = real(row[5]), boards_j = base.boards_j() / base.gpus / iterations,
               time_s = base.time_s / iterations;
  return {.run = run,
          .id = id,
          .label =
              fmt::format("{} on {}, plan {} per {} ({}{}){}", files_text(text(row[2])),
                          text(row[3]), id, one.granularity, one.goal,
                          one.slack_frac > 0.0
                              ? fmt::format(", slack {} %", format_number(percent * one.slack_frac))
                              : "",
                          whole(row[4]) == 0 ? ""
                          : one.in_time      ? ", switches counted"
                                             : ", switches counted, late"),
          .iterations = iterations,
          .defaults = {time_s, boards_j},
          .planned = {(1.0 + one.time_change.value) * time_s, (1.0 + energy.value) * boards_j},
          .time_change = one.time_change,
          .energy_change = energy};
}

IterationWork work_of(const ResultStore& store, const ImpactInputs& inputs,
                      const ComparedPlan& plan, const std::string& file) {
  const bool said = inputs.tokens_per_iteration || inputs.gpus_per_replica;
  if (plan.run.kind == "trace") {
    const QueryResult shape = store.query(
        "SELECT batch * sequence, tensor_parallel * stages FROM v_runs WHERE run_id = ? AND batch "
        "NOT NULL",
        {plan.run.id});
    if (!shape.rows.empty() && said) {
      throw DataError(
          fmt::format("{}: tokens_per_iteration and gpus_per_replica are for captures and fixed "
                      "traces; run {} knows its own",
                      printable(file), plan.run.id));
    }
    if (!shape.rows.empty()) return {real(shape.rows[0][0]), real(shape.rows[0][1])};
    if (!said) {
      if (const auto known = work_of_trace(store, plan.run.id)) return *known;
    }
  }
  if (!inputs.tokens_per_iteration || !inputs.gpus_per_replica) {
    throw DataError(
        fmt::format("{}: {} {} does not say what it trains; expected tokens_per_iteration and "
                    "gpus_per_replica",
                    printable(file),
                    plan.run.kind == "trace" ? "the trace of run" : plan.run.kind + " run",
                    plan.run.id),
        {.in = {}, .hint = "tokens_per_iteration = {value = 40960, source = \"batch 40 x 1024\"}"});
  }
  return {inputs.tokens_per_iteration->value, inputs.gpus_per_replica->value};
}

}  // namespace rubato
