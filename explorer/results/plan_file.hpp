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
  std::string granularity;              ///< empty: of all, the one that saves most
  std::string goal = {};                ///< empty: as choose_plans
  std::optional<std::int64_t> plan_id;  ///< plan_id or graph_plan_id of that run
  std::optional<GpuSpec> spec;  ///< of a captured run planned with a spec that is not shipped
};

/// The chosen plan, and after it the coarser ones of the same run and goal, to fall back on, with
/// what each promises; of those within the least slack, or else of those of other goals, the one
/// that saves most is chosen, of least cost last.
/// @throws UsageError if there is no such run or plan, or no plan was found
[[nodiscard]] nlohmann::ordered_json plan_file(const ResultStore& store,
                                               const PlanFileRequest& request);

}  // namespace rubato
