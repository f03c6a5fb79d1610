#pragma once
// Several models on one sweep as one HTML page: what planning with each costs, and their errors.

#include <span>
#include <string>
#include <vector>

#include "explorer/regret.hpp"
#include "models/validation/model_comparison.hpp"
#include "tools/drawing/answer.hpp"

namespace rubato {

/// Which model errs least on energy, and by how much.
[[nodiscard]] Answer comparison_answer(const ModelComparison& comparison);

/// A page that needs nothing else; names from files are escaped.
/// @param regrets  of each model
[[nodiscard]] std::string model_comparison_page(const GpuSpec& spec,
                                                const ModelComparison& comparison,
                                                const ComparisonOptions& options,
                                                std::span<const std::vector<RegretRow>> regrets);

}  // namespace rubato
