#include "explorer/results/plan_choice.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/results/first_row.hpp"
#include "models/gpu/spec.hpp"

namespace rubato {

namespace {

constexpr double in_percent = 100.0;

std::optional<Granularity> fineness(const PlanCandidate& plan) {
  return granularity_named(plan.granularity);
}

std::optional<double> fraction(const SqlValue& percentage) {
  const std::optional<double> value = real_or_none(percentage);
  return value ? std::optional(*value / in_percent) : std::nullopt;
}

// Goals go by their stored name ("least_cost") or by that of --goal ("cost").
bool is_of_goal(std::string_view stored, std::string_view asked) {
  if (asked.empty() || stored == asked) return true;
  return stored == fmt::format("least_{}", asked);
}

std::optional<StoredRun> run_where(const ResultStore& store, std::string_view sql,
                                   std::initializer_list<SqlValue> values = {}) {
  const QueryResult found =
      store.query(fmt::format("SELECT run_id, kind FROM runs WHERE {}", sql), values);
  if (found.rows.empty()) return std::nullopt;
  return StoredRun{whole(found.rows[0][0]), text(found.rows[0][1])};
}

StoredRun newest_run(const ResultStore& store) {
  if (const auto run = run_where(store, "asked ORDER BY created_utc DESC, run_id DESC LIMIT 1"))
    return *run;
  throw UsageError("the database has no runs but those of experiments",
                   {.in = {},
                    .hint = "store one with 'rubato explore ... --db FILE', or name one by its "
                            "number"});
}

std::vector<PlanCandidate> candidates_of(const ResultStore& store, std::int64_t run_id) {
  std::vector<PlanCandidate> found;
  for (const auto& row :
       store
           .query("SELECT plan_id, granularity, goal, aggregation, coalesce(slack_pct, 0.0) / 100, "
                  "planned_time_s, planned_energy_j, time_change_pct, time_change_low_pct, "
                  "time_change_high_pct, energy_change_pct, energy_change_low_pct, "
                  "energy_change_high_pct, lower_bound_j, gap_pct / 100, clock_changes, in_time, "
                  "comm_sms FROM v_plans WHERE run_id = ? AND planned_time_s NOT NULL ORDER BY "
                  "plan_id",
                  {run_id})
           .rows) {
    PlanCandidate& one = found.emplace_back();
    one.id = whole(row[0]);
    one.granularity = text(row[1]);
    one.goal = text(row[2]);
    one.aggregation = text(row[3]);
    one.slack_frac = real(row[4]);
    one.time_s = real(row[5]);
    one.energy_j = real(row[6]);
    one.time_change = {real(row[7]) / in_percent, fraction(row[8]), fraction(row[9])};
    one.energy_change = {real(row[10]) / in_percent, fraction(row[11]), fraction(row[12])};
    one.lower_bound_j = real_or_none(row[13]);
    one.gap_frac = real_or_none(row[14]);
    if (const auto* changes = std::get_if<std::int64_t>(&row[15])) one.clock_changes = *changes;
    one.in_time = whole(row[16]) != 0;
    one.comm_sms = real_or_none(row[17]);
  }
  return found;
}

// The answer among the plans that fit. Whoever names a granularity wants a plan of it, though
// nothing is saved.
PlanCandidate answer_among(const ResultStore& store, std::int64_t run_id,
                           const std::vector<PlanCandidate>& fit, bool default_stands) {
  std::vector<Contender> plans;
  std::vector<const PlanCandidate*> candidates;
  for (const auto& row : store.query(contenders_sql, {run_id}).rows) {
    const auto one = std::ranges::find(fit, whole(row[0]), &PlanCandidate::id);
    if (one == fit.end()) continue;
    plans.push_back(stored_contender(row));
    if (!default_stands) plans.back().default_holds = false;
    candidates.push_back(&*one);
  }
  const std::vector<PlanAnswer> answers = choose_answers(plans);
  const PlanAnswer* named = headline(plans, answers);
  if (named == nullptr) {
    const auto late = std::ranges::find(fit, false, &PlanCandidate::in_time);
    if (late != fit.end()) late->require_in_time();
    throw NoPlanError("no plan of the run can be set on a GPU as it is",
                      {.in = {}, .hint = "--per run has no switches"});
  }
  if (!named->plan) {
    throw NoPlanError(
        "no plan saves enough: keep the default clocks",
        {.in = {}, .hint = "'rubato show' lists the plans; their numbers name them all the same"});
  }
  return *candidates[*named->plan];
}

}  // namespace

std::int64_t whole(const SqlValue& value) { return value_as<std::int64_t>(value); }

const std::string& text(const SqlValue& value) { return value_as<std::string>(value); }

double real(const SqlValue& value) {
  const auto* number = std::get_if<std::int64_t>(&value);
  return number != nullptr ? static_cast<double>(*number) : value_as<double>(value);
}

std::optional<double> real_or_none(const SqlValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::nullopt;
  return real(value);
}

void PlanCandidate::require_in_time() const {
  if (in_time) return;
  throw NoPlanError(
      fmt::format("plan {} per {} is late: with its switches it takes {:+.2f} % more time, "
                  "{:g} % are allowed",
                  id, granularity, in_percent * time_change.value, in_percent * slack_frac),
      {.in = {}, .hint = "plans per segment count switches, plans per run have none"});
}

StoredRun find_stored_run(const ResultStore& store, std::string_view name) {
  if (name == "latest") return newest_run(store);
  const std::optional<std::uint64_t> number = parse_count(name);
  if (!number || *number > std::uint64_t{1} << 62U)
    throw UsageError(
        fmt::format("the run is '{}'; expected 'latest' or a number", printable(name)));
  const auto id = static_cast<std::int64_t>(*number);
  if (const auto run = run_where(store, "run_id = ?", {id})) return *run;
  const QueryResult newest = store.query("SELECT max(run_id) FROM runs");
  throw UsageError(fmt::format("there is no run {}", id),
                   {.in = {},
                    .hint = std::holds_alternative<std::monostate>(newest.rows[0][0])
                                ? "the database has no runs; 'rubato explore ... --db FILE' "
                                  "stores one"
                                : fmt::format("the newest is {}", whole(newest.rows[0][0]))});
}

double stored_host_power_w(const ResultStore& store, std::int64_t run_id) {
  return real(
      first_row(store.query("SELECT host_power_w FROM runs WHERE run_id = ?", {run_id}))[0]);
}

std::optional<GpuSpec> stored_spec(const ResultStore& store, std::int64_t run_id) {
  const QueryResult found = store.query(
      "SELECT text, name FROM v_inputs WHERE run_id = ? AND kind = 'gpu_spec'", {run_id});
  if (found.rows.empty()) return std::nullopt;
  return parse_gpu_spec(text(found.rows[0][0]), text(found.rows[0][1]));
}

Contender stored_contender(const std::vector<SqlValue>& row) {
  Contender one{.want = text(row[1]),
                .slack_frac = real(row[9]),
                .default_holds = whole(row[2]) != 0,
                .holds = whole(row[3]) != 0,
                .objective_frac = real(row[4]),
                .verdict = {.applicable = whole(row[5]) != 0},
                .fitted = whole(row[6]) != 0,
                .clock_changes = whole(row[8]),
                .clocks = whole(row[7]),
                .granularity = granularity_of("granularity", text(row[10])),
                .aggregation = text(row[11]),
                .comm_sms = real_or_none(row[12])};
  one.odds_in_time = real_or_none(row[13]);
  one.odds_frac = real(row[14]);
  constexpr std::size_t low = 15, expected = 16, high = 17;
  if (real_or_none(row[low]))
    one.saving = saving_of(real(row[low]), real(row[expected]), real(row[high]));
  return one;
}

SwitchModel stored_switching(const ResultStore& store, std::int64_t run_id) {
  const auto row = first_row(store.query(
      "SELECT switch_lead_s, switch_stall_s, switch_energy_j, switch_dwell_s, mem_switch_lead_s, "
      "mem_switch_stall_s, mem_switch_energy_j FROM runs WHERE run_id = ?",
      {run_id}));
  const auto cost_at = [&row](std::size_t lead) {
    return SwitchCost{
        .stall_s = real(row[lead + 1]), .energy_j = real(row[lead + 2]), .lead_s = real(row[lead])};
  };
  constexpr std::size_t core = 0, dwell = 3, mem = 4;
  SwitchModel model{.core = cost_at(core), .mem = {}, .dwell_s = real(row[dwell])};
  if (real_or_none(row[mem])) model.mem = cost_at(mem);
  return model;
}

StoredBaseline stored_baseline(const ResultStore& store, std::int64_t run_id) {
  const auto row = first_row(store.query(
      "SELECT default_time_s, default_energy_j, gpus, host_power_w FROM runs WHERE run_id = ?",
      {run_id}));
  return {.time_s = real(row[0]),
          .energy_j = real(row[1]),
          .gpus = real(row[2]),
          .host_power_w = real(row[3])};
}

StoredChange change_of_boards(const PlanCandidate& plan, const StoredBaseline& baseline) {
  if (baseline.host_power_w == 0.0) return plan.energy_change;
  const double hosts_j = (1.0 + plan.time_change.value) * (baseline.energy_j - baseline.boards_j());
  const auto without = [&](double frac) {
    return ((1.0 + frac) * baseline.energy_j - hosts_j) / baseline.boards_j() - 1.0;
  };
  StoredChange change{without(plan.energy_change.value), {}, {}};
  if (plan.energy_change.low) change.low = without(*plan.energy_change.low);
  if (plan.energy_change.high) change.high = without(*plan.energy_change.high);
  return change;
}

PlanChoice choose_plans(const ResultStore& store, std::int64_t run_id, std::string_view granularity,
                        std::string_view goal, std::optional<std::int64_t> plan_id) {
  std::vector<PlanCandidate> all = candidates_of(store, run_id), fit = all;
  std::erase_if(fit, [&](const PlanCandidate& one) {
    return (plan_id && one.id != *plan_id) ||
           (!granularity.empty() && one.granularity != granularity) || !is_of_goal(one.goal, goal);
  });
  if (fit.empty()) {
    throw UsageError(all.empty() ? "the run has no plan" : "the run has no such plan",
                     {.in = {}, .hint = "'rubato export plans' lists the plans of a run"});
  }
  const PlanCandidate best =
      plan_id ? fit.front() : answer_among(store, run_id, fit, granularity.empty());
  // Strict and relaxed waste are one goal with other slacks.
  const auto family = [](const PlanCandidate& one) {
    return one.goal.ends_with("waste") ? std::string_view("waste") : std::string_view(one.goal);
  };
  std::erase_if(all, [&](const PlanCandidate& one) {
    return family(one) != family(best) || one.aggregation != best.aggregation ||
           one.comm_sms != best.comm_sms;  // fixed when a job starts
  });
  PlanChoice choice{{best}, {}};
  std::ranges::stable_sort(all, std::greater<>{}, fineness);
  for (const PlanCandidate& one : all) {
    if (one.slack_frac == best.slack_frac && one.in_time &&
        fineness(one) < fineness(choice.plans.back())) {
      choice.plans.push_back(one);
    }
    if (one.granularity == best.granularity && one.in_time && one.slack_frac > best.slack_frac)
      choice.slower.push_back(one);
  }
  sort_by(choice.slower, &PlanCandidate::slack_frac);
  return choice;
}

std::optional<std::int64_t> best_unit(const ResultStore& store, const UnitOrder& order) {
  const QueryResult found = store.query(
      fmt::format("SELECT plan_id FROM v_plans WHERE is_answer AND {} ORDER BY {}, question_hash "
                  "LIMIT 1",
                  unit_condition, order.expression),
      {order.experiment_id, order.most_time_pct ? SqlValue(*order.most_time_pct) : SqlValue()});
  if (found.rows.empty()) return std::nullopt;
  return whole(found.rows[0][0]);
}

std::vector<StoredSegment> stored_segments(const ResultStore& store, std::int64_t plan_id,
                                           std::int64_t rank, std::int64_t device) {
  std::vector<StoredSegment> found;
  for (const auto& row :
       store
           .query("SELECT pass, clock, launches, time_s, energy_j, first_kernel, first_index FROM "
                  "v_segments WHERE plan_id = ? AND rank = ? AND device = ? ORDER BY segment_id",
                  {plan_id, rank, device})
           .rows) {
    found.push_back({text(row[0]), text(row[1]), whole(row[2]), real(row[3]), real(row[4]),
                     text(row[5]), whole(row[6])});
  }
  return found;
}

}  // namespace rubato
