#pragma once
// rubato transfer of plans of captured runs to other captures.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/commands/plans/explore_captured.hpp"

namespace rubato {

/// A plan and where to play it.
struct TransferCapturedOptions {
  std::string db;
  /// Nothing: the plan that is exported of the newest captured run of the first of `runs`, else of
  /// the newest captured run.
  std::optional<std::int64_t> plan_id;
  std::vector<std::vector<std::string>> runs;  ///< files of each: one, or one of each rank
  std::optional<double> host_power_w;          ///< nothing: as the plan counted it
  CapturedRunOptions each;                     ///< how each is read; files are set from `runs`
};

/// @throws UsageError, and what reading, joining and planning throw
ExitStatus transfer_captured(const TransferCapturedOptions& options, const RunContext& context);

}  // namespace rubato
