#pragma once
// What rubato impact takes from a result database: a plan as it is played, and what its run trains.

#include <optional>
#include <string>

#include "explorer/impact.hpp"
#include "explorer/results/plan_choice.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// A stored plan beside the default clocks of its run: one iteration of the mean GPU, changes of
/// clock counted, without the rest of the node.
struct ComparedPlan {
  StoredRun run;
  std::int64_t id = 0;
  std::string label;        ///< of what, on what, which plan; from files, not printable
  double iterations = 1.0;  ///< in what was planned: steps of a captured run
  IterationTotals defaults;
  IterationTotals planned;
  StoredChange time_change, energy_change;
};

/// @param plan  as plan_named takes it; empty: the answer of the newest run
/// @throws UsageError if there is no such plan
[[nodiscard]] ComparedPlan compared_plan(const ResultStore& store, const std::string& plan);

/// Tokens of an iteration and GPUs of a replica: a generated trace knows them; of another one and
/// of a captured run they are in the file of inputs.
/// @throws DataError naming `file` if they are missing, or given where they are known
[[nodiscard]] IterationWork work_of(const ResultStore& store, const ImpactInputs& inputs,
                                    const ComparedPlan& plan, const std::string& file);

}  // namespace rubato
