#pragma once
// rubato validate --model: several models on one sweep.

#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "models/validation/model_comparison.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

struct ValidateModelsOptions {
  std::vector<std::string> models;  ///< names or files
  std::vector<double> slacks_pct;
  ComparisonOptions comparison;
  std::string db, page;
  OutputFormat format = OutputFormat::table;
};

/// Prints errors and regrets of each model; writes the page and the rows of the database.
/// @throws what model_choice and compare_models throw
ExitStatus validate_models(const ValidateModelsOptions& o, const GpuSpec& spec, const Sweep& sweep,
                           const RunContext& context);

}  // namespace rubato
