#pragma once
// Stored plans as a file that sets clocks: what rubato export --plan writes and the Python package
// plays. docs/apply.md has the schema.

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "explorer/results/store.hpp"

namespace rubato {

inline constexpr int plan_file_schema = 1;

/// Which stored plan goes into the file.
struct PlanFileRequest {
  std::string run;  ///< "latest", a number, or "run:N" and "graph:N" where both kinds have N
  std::string granularity;              ///< empty: any
  std::string goal = {};                ///< empty: any, see choose_plans
  std::optional<std::int64_t> plan_id;  ///< plan_id or graph_plan_id of that run
  std::optional<GpuSpec> spec;  ///< of a captured run planned with a spec that is not shipped
};

/// The plan that choose_plans() chooses, and after it coarser ones of the same run and goal to fall
/// back on, each with what it promises. Those with more slack follow under "slower".
/// @throws UsageError if there is no such run or plan, or no plan was found; NoPlanError if the
/// plan
///         is late with its changes of clock
[[nodiscard]] nlohmann::ordered_json plan_file(const ResultStore& store,
                                               const PlanFileRequest& request);

}  // namespace rubato
