#pragma once
// Several models on one sweep: each is fitted to the same few points of every kernel, and predicts
// all others.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/run_context.hpp"
#include "models/alternatives/cell_model.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// A model to compare: one that is fitted, or a table.
struct ModelChoice {
  std::string name;
  const CellModelKind* kind = nullptr;  ///< null: `table`
  std::optional<Sweep> table = {};
};

struct ComparisonOptions {
  std::size_t points = 5;          ///< of each kernel that a model is fitted to
  bool leave_kernels_out = false;  ///< the GPU is fitted to other kernels; else it is the spec's
  std::size_t groups = 5;          ///< of kernels, for leave_kernels_out
  SweepFitOptions fit = {};
};

/// What one model makes of a sweep.
struct ComparedModel {
  std::string name;
  ModelFit fit;
  std::vector<ValidatedPoint> held_out;            ///< points it has not seen
  std::vector<std::vector<OperatingPoint>> cells;  ///< by kernel and point of the compared sweep
};

struct ModelComparison {
  Sweep sweep;  ///< what is compared: one_setting, kernels with more points than a fit gets
  std::vector<ComparedModel> models;
  std::vector<std::string> notes;  ///< what was left out, a line each
};

/// Fits all models and predicts. A model's power is its energy over its time.
/// @throws DataError if a model cannot be fitted or a table lacks a cell; UsageError if no kernel
///         has a point to hold out, or one kernel is to be left out of one
[[nodiscard]] ModelComparison compare_models(const GpuSpec& spec, const Sweep& sweep,
                                             std::span<const ModelChoice> models,
                                             const ComparisonOptions& options,
                                             const RunContext& context = {});

}  // namespace rubato
