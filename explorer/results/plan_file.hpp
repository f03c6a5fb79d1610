#pragma once
// Plan files of stored plans: what rubato export --plan writes.

#include <cstdint>
#include <optional>
#include <string>

#include "explorer/plan/plan_file.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// Which stored plan goes into the file.
struct PlanFileRequest {
  std::string run;                           ///< "latest" or a number
  std::string granularity = {};              ///< empty: any
  std::string goal = {};                     ///< empty: any, see choose_plans
  std::optional<std::int64_t> plan_id = {};  ///< of that run
  std::optional<GpuSpec> spec = {};          ///< instead of the one that the run was planned with
};

/// The plan that choose_plans() chooses, after it coarser ones of the same run and goal to fall
/// back on, then those with more slack, each with what it promises.
/// @throws UsageError if there is no such run or plan, or no plan was found; NoPlanError if the
///         plan is late with its changes of clock
[[nodiscard]] PlanFile plan_file(const ResultStore& store, const PlanFileRequest& request);

}  // namespace rubato
