#pragma once
// rubato explore: what its line asks for, and the ways of the kinds of runs.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"
#include "common/run_context.hpp"
#include "explorer/results/capture_rows.hpp"
#include "tools/options/captured.hpp"
#include "tools/options/disturbance.hpp"
#include "tools/options/limits.hpp"
#include "tools/options/pipeline.hpp"
#include "tools/options/questions.hpp"
#include "tools/options/switching.hpp"
#include "tools/options/table.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

struct ExploreOptions {
  std::vector<std::string> work{"gpt3-xl"};  ///< one, or captures of the ranks of one run
  std::string gpu, cluster, clocks, power_limits, table, switching, db, plan_file, timeline;
  StepOptions step;
  CapturedClockOptions captured;
  std::vector<std::string> disturb, comm_sms, lists;
  std::optional<double> step_time_s;
  std::vector<std::string> also;  ///< captures of the same work at other clocks, see clocked_file
  std::optional<unsigned> stages, microbatches;
  std::string schedule;
  std::optional<double> blocked_power_w, power_limit_w, host_power_w;
  QuestionOptions questions;
  LimitOptions limits;
  OutputFormat format = OutputFormat::table;
};

/// Whether --list names a table.
[[nodiscard]] inline bool lists(const ExploreOptions& options, std::string_view table) {
  return std::ranges::find(options.lists, table) != options.lists.end();
}

/// What is explored of captures, but for its questions, and what is stored of the request.
struct CapturedRun {
  GraphExplorationInput input;
  GraphRequest request;
};

/// Reads the files and says on standard error what was left out.
/// @throws UsageError, and what reading captures and specs throws
[[nodiscard]] CapturedRun captured_run(const ExploreOptions& options, const RunContext& context);

/// @throws UsageError, and what reading, joining and planning throw
ExitStatus explore_captured_run(const ExploreOptions& options, const RunContext& context);
ExitStatus explore_stages(const ExploreOptions& options, const RunContext& context);

}  // namespace rubato
