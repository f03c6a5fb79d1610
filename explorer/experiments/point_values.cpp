#include "explorer/experiments/point_values.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "explorer/plan/refusals.hpp"

namespace rubato {

namespace {

Prices prices_of(const Point& point) {
  const std::optional<double> per_kwh = point.optional_number(AxisId::price_per_kwh);
  if (!per_kwh) throw UsageError("goal 'cost' needs price_per_kwh");
  const double pue = point.number(AxisId::pue);
  if (pue < 1.0) throw UsageError(fmt::format("pue is {}; expected a number >= 1", pue));
  return {
      .per_kwh = *per_kwh, .per_gpu_hour = point.number(AxisId::price_per_gpu_hour), .pue = pue};
}

}  // namespace

Goal goal_of(const Point& point) {
  const std::string& name = point.text(AxisId::goal);
  if (names_waste(name)) {
    return LeastWaste{point.number(AxisId::slack_pct) / percent,
                      point.number(AxisId::tolerance_pct) / percent};
  }
  if (name == "edp") return LeastEdp{};
  if (name == "ed2p") return LeastEd2p{};
  if (name == "energy") return LeastEnergy{};
  if (name == "cost") return LeastCost{prices_of(point)};
  if (name != "time") {
    throw UsageError(fmt::format(
        "goal '{}' is not known{}", name,
        did_you_mean(name, std::vector<std::string>{"strict_waste", "relaxed_waste", "edp", "ed2p",
                                                    "energy", "time", "cost"})));
  }
  const LeastTime goal{point.optional_number(AxisId::energy_budget_j),
                       point.optional_number(AxisId::power_budget_w)};
  if (goal.max_energy_j.has_value() == goal.max_average_power_w.has_value())
    throw UsageError("goal 'time' needs either energy_budget_j or power_budget_w");
  return goal;
}

Question question_of(const Point& point) {
  Question question{granularity_of("granularity", point.text(AxisId::granularity)),
                    aggregation_of("aggregation", point.text(AxisId::aggregation)), goal_of(point)};
  const bool stages = pipeline_of(point).has_value();
  const RunKind kind = std::holds_alternative<std::string>(point[AxisId::capture])
                           ? RunKind::capture
                       : stages ? RunKind::stages
                                : RunKind::trace;
  refuse_unanswerable(kind, question);
  question.counts_changes =
      !switching_of(point) && (question.granularity == Granularity::segment || stages);
  return question;
}

double odds_of(const Point& point) {
  const double odds_pct = point.number(AxisId::odds_pct);
  if (!(odds_pct < percent))
    throw UsageError(
        fmt::format("odds_pct is {}; expected 0 to below 100", format_number(odds_pct)));
  return odds_pct / percent;
}

TrainingStep gpt_shape_of(const Point& point) {
  TrainingStep shape = gpt_preset(point.text(AxisId::model));
  shape.batch = point.count(AxisId::batch);
  shape.seq = point.count(AxisId::sequence);
  shape.tensor_parallel = point.count(AxisId::tensor_parallel);
  shape.data_parallel = point.count(AxisId::data_parallel);
  return shape;
}

// One stage with several microbatches is a pipeline too: it accumulates gradients.
std::optional<PipelineSplit> pipeline_of(const Point& point) {
  if (std::holds_alternative<std::monostate>(point[AxisId::model])) return std::nullopt;
  const auto stages = static_cast<std::uint32_t>(point.count(AxisId::pipeline_parallel)),
             microbatches = static_cast<std::uint32_t>(point.count(AxisId::microbatches));
  if (stages == 1 && microbatches == 1) return std::nullopt;
  const ScheduleKind schedule = schedule_from_name(point.text(AxisId::schedule));
  if (schedule == ScheduleKind::interleaved)
    throw UsageError("schedule 'interleaved' needs chunks; only 'rubato pipeline' has them");
  return PipelineSplit{gpt_shape_of(point), stages, microbatches, schedule};
}

std::optional<SwitchModel> switching_of(const Point& point) {
  const auto given = [&](AxisId id) { return point.optional_number(id); };
  const auto stall_us = given(AxisId::switch_stall_us),
             latency_us = given(AxisId::switch_latency_us),
             dwell_us = given(AxisId::switch_dwell_us), energy_j = given(AxisId::switch_energy_j);
  if (!stall_us && !latency_us && !dwell_us && !energy_j) return std::nullopt;
  const double stall_s = stall_us.value_or(0.0) / us_per_s;
  return SwitchModel{
      .core = {.stall_s = stall_s,
               .energy_j = energy_j.value_or(0.0),
               .lead_s = std::max(latency_us.value_or(0.0) / us_per_s - stall_s, 0.0)},
      .mem = {},
      .dwell_s = dwell_us.value_or(0.0) / us_per_s};
}

std::optional<WorkShape> work_shape_of(const Point& point) {
  if (std::holds_alternative<std::monostate>(point[AxisId::model])) return std::nullopt;
  return WorkShape{point.text(AxisId::model),          point.count(AxisId::batch),
                   point.count(AxisId::sequence),      point.count(AxisId::tensor_parallel),
                   point.count(AxisId::data_parallel), point.count(AxisId::pipeline_parallel),
                   point.count(AxisId::microbatches)};
}

}  // namespace rubato
