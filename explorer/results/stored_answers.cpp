#include "explorer/results/stored_answers.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "explorer/results/plan_choice.hpp"

namespace rubato {

namespace {

struct Family {
  std::string_view plans, plan_key, runs, run_key;
  std::string_view others;  ///< SQL of slack, granularity, aggregation and SMs of collectives
};

constexpr Family family_of(RunKind kind) {
  switch (kind) {
    case RunKind::trace: break;
    case RunKind::capture:
      return {"graph_plans", "graph_plan_id", "graph_runs", "graph_run_id",
              "slack_frac, granularity, 'global', comm_sms"};
    case RunKind::pipeline:
      return {"pipeline_plans", "pipeline_plan_id", "pipeline_runs", "pipeline_run_id",
              "deadline_s, 'microbatch', 'global', NULL"};
  }
  return {"plans", "plan_id", "runs", "run_id",
          "coalesce(slack_frac, 0.0), granularity, aggregation, NULL"};
}

}  // namespace

std::string contenders_sql(RunKind kind) {
  const Family family = family_of(kind);
  return fmt::format(
      "SELECT {0}, want, default_in_time, in_time, objective_frac, applicable, fitted, clocks, "
      "applied_clock_changes, {1} FROM {2} WHERE {3} = ? AND want IS NOT NULL ORDER BY {0}",
      family.plan_key, family.others, family.plans, family.run_key);
}

Contender stored_contender(const std::vector<SqlValue>& row) {
  return {.want = text(row[1]),
          .slack_frac = real(row[9]),
          .default_holds = whole(row[2]) != 0,
          .holds = whole(row[3]) != 0,
          .objective_frac = real(row[4]),
          .verdict = {.applicable = whole(row[5]) != 0},
          .fitted = whole(row[6]) != 0,
          .clock_changes = whole(row[8]),
          .clocks = whole(row[7]),
          .granularity = text(row[10]),
          .aggregation = text(row[11]),
          .comm_sms = std::holds_alternative<std::monostate>(row[12])
                          ? std::nullopt
                          : std::optional(real(row[12]))};
}

void store_contender(const SqlConnection& connection, RunKind kind, std::int64_t plan_id,
                     const Contender& plan) {
  const Family family = family_of(kind);
  SqlStatement::kept(connection,
                     fmt::format("UPDATE {} SET want = ?, default_in_time = ?, in_time = ?, "
                                 "objective_frac = ?, applicable = ?, not_applicable_because = ?, "
                                 "fitted = ?, clocks = ?, applied_clock_changes = ? WHERE {} = ?",
                                 family.plans, family.plan_key))
      .run(plan.want, plan.default_holds, plan.holds, plan.objective_frac, plan.verdict.applicable,
           plan.verdict.because.empty() ? SqlValue() : SqlValue(plan.verdict.because), plan.fitted,
           plan.clocks, plan.clock_changes, plan_id);
}

void store_answers(const SqlConnection& connection, RunKind kind, std::int64_t run_id) {
  const Family family = family_of(kind);
  std::vector<Contender> plans;
  std::vector<std::int64_t> ids;
  SqlStatement rows = SqlStatement::kept(connection, contenders_sql(kind));
  for (bool row = rows.first(run_id); row; row = rows.next()) {
    std::vector<SqlValue> values;
    for (int c = 0; c < rows.columns(); ++c) values.push_back(rows.value(c));
    ids.push_back(whole(values.front()));
    plans.push_back(stored_contender(values));
  }
  const std::vector<PlanAnswer> answers = choose_answers(plans);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const PlanAnswer& answer = *std::ranges::find(answers, plans[i].want, &PlanAnswer::want);
    SqlStatement::kept(connection,
                       fmt::format("UPDATE {} SET is_answer = ?1, keeps_default = ?2 WHERE {} = ?3 "
                                   "AND (is_answer <> ?1 OR keeps_default <> ?2)",
                                   family.plans, family.plan_key))
        .run(answer.plan == i, answer.keeps_default, ids[i]);
  }
  const PlanAnswer* known_by = headline(plans, answers);
  SqlStatement::kept(
      connection, fmt::format("UPDATE {} SET headline_want = ? WHERE {} = ? AND asked", family.runs,
                              family.run_key))
      .run(known_by == nullptr ? SqlValue() : SqlValue(known_by->want), run_id);
}

}  // namespace rubato
