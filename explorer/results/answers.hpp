#pragma once
// The plans of an exploration as contenders for its answers (plan/answer.hpp), of each kind of run.

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "explorer/exploration.hpp"
#include "explorer/graph/exploration.hpp"
#include "explorer/pipeline/planner.hpp"
#include "explorer/plan/answer.hpp"

namespace rubato {

/// @param plan  of `found`
[[nodiscard]] Contender contender_of(const Exploration& found, const PlanResult& plan);
[[nodiscard]] Contender contender_of(const GraphExploration& found, const GraphPlanOutcome& plan);
[[nodiscard]] Contender contender_of(const PipelinePlanner& planner, const PipelineResult& plan);

/// What a plan of a pipeline was asked for.
[[nodiscard]] Goal asked_goal(const PipelinePlanner& planner, const PipelineResult& plan);

/// The answers of one exploration, and which of its plans each one is.
template <class Plan>
struct Answers {
  std::vector<Contender> contenders;  ///< shape [plans]
  std::vector<PlanAnswer> answers;
  std::span<const Plan> plans;

  template <class Found>
  Answers(const Found& found, std::span<const Plan> all) : plans(all) {
    for (const Plan& plan : all) contenders.push_back(contender_of(found, plan));
    answers = choose_answers(contenders);
  }

  /// @return null: the default clocks, or no plan
  [[nodiscard]] const Plan* plan(const PlanAnswer& answer) const {
    return answer.plan ? &plans[*answer.plan] : nullptr;
  }
  /// Whether a plan keeps its time or budget as applied.
  [[nodiscard]] bool some_hold() const {
    return std::ranges::any_of(contenders, &Contender::holds);
  }
  /// Where no plan of a want has the odds: of the plans for all of the time the one that would save
  /// most.
  [[nodiscard]] std::optional<BolderPlan> boldest(std::string_view want) const {
    std::optional<BolderPlan> most;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::optional<BolderPlan>& bolder = plans[i].bolder;
      if (contenders[i].want != want || !bolder) continue;
      if (!most || bolder->is_better_than(*most)) most = bolder;
    }
    return most;
  }
  [[nodiscard]] const PlanAnswer* headline() const { return rubato::headline(contenders, answers); }
  /// Whether a plan is the answer of what it wants.
  [[nodiscard]] bool is_answer(const Plan& one) const {
    return std::ranges::any_of(answers, [&](const PlanAnswer& a) { return plan(a) == &one; });
  }
};

[[nodiscard]] inline Answers<PlanResult> answers_of(const Exploration& found) {
  return {found, std::span<const PlanResult>(found.plans)};
}
[[nodiscard]] inline Answers<GraphPlanOutcome> answers_of(const GraphExploration& found) {
  return {found, std::span<const GraphPlanOutcome>(found.plans)};
}
[[nodiscard]] inline Answers<PipelineResult> answers_of(const PipelinePlanner& planner,
                                                        std::span<const PipelineResult> plans) {
  return {planner, plans};
}

}  // namespace rubato
