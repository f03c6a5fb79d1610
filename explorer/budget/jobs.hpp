#pragma once
// The jobs of `rubato budget`: a file of jobs, each with the settings that a run of a database or a
// table of measurements has for it. docs/budget.md.

#include <filesystem>
#include <string>
#include <vector>

#include "explorer/budget/budget.hpp"

namespace rubato {

struct JobFile {
  std::string worth = "steps";  ///< what a step is worth, as people call it
  std::vector<BudgetJob> jobs;
  std::vector<std::string> notes;  ///< what to know of them, a line each
};

/// Reads TOML: a table `job` for each job; paths are relative to the file. Of a stored run every
/// clock and power limit is an option, and every plan that can be applied; of a table every setting
/// at which all kernels were measured. Errors of a run's options are those of its plans' intervals,
/// the widest where a clock has none, and that of the power at the default clocks, which is known
/// only where the file says it (`watts_error_pct`).
/// @throws IoError; DataError for keys, and jobs without options; what reading runs and tables
/// throws
[[nodiscard]] JobFile read_jobs(const std::filesystem::path& path);

}  // namespace rubato
