#pragma once
// rubato explore of captured runs: all streams, gaps and ranks, as an execution graph.

#include <optional>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "common/run_context.hpp"
#include "explorer/results/capture_rows.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/disturbance.hpp"
#include "tools/options/switching.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// What of the command line counts for captured runs.
struct CapturedRunOptions {
  std::vector<std::string> files;  ///< one, or one of each rank
  std::string gpu, clocks, step, db, plan_file, timeline;
  CapturedClockOptions captured;
  std::optional<double> power_limit_w, time_limit_s;
  std::optional<SwitchOptions> switching;  ///< nothing: as the spec knows, if it does
  std::vector<std::string> granularities;  ///< empty: all
  std::vector<Aggregation> aggregations{Aggregation::global};
  std::vector<double> slacks_pct;  ///< empty: 0, 1, 2, 5
  DisturbanceOptions disturbance;
  std::optional<std::vector<double>> comm_sms;  ///< as GraphExplorationInput::comm_sms
  double odds_pct = 90.0;
  bool waste = true;        ///< plans for slacks
  std::vector<Goal> goals;  ///< others
  double host_power_w = 0.0;
  bool partial = false, per_kernel = false, own_steps = false;
  OutputFormat format = OutputFormat::table;
};

/// What is explored, but for its questions, and what is stored of the request.
struct CapturedRun {
  GraphExplorationInput input;
  GraphRequest request;
};

/// Reads the files and says on standard error what was left out.
/// @throws UsageError, and what reading captures and specs throws
[[nodiscard]] CapturedRun captured_run(const CapturedRunOptions& options,
                                       const RunContext& context);

/// @throws UsageError, and what reading, joining and planning throw
ExitStatus explore_captured_run(const CapturedRunOptions& options, const RunContext& context);

}  // namespace rubato
