#pragma once
// Answers of a training step over degrees of parallelism: where its time goes, what plans save.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/terminal/output.hpp"

namespace rubato {

/// Where the time of a step goes, shares of it, means over stages; all but `hidden` add up to 1.
struct StepShares {
  double compute = 0.0;  ///< kernels
  double hidden = 0.0;   ///< part of compute: communication runs beside
  double exposed = 0.0;  ///< communication without a kernel
  double bubble = 0.0;   ///< neither
};

/// A step at some degrees of parallelism.
struct DrawnStep {
  std::uint64_t tensor = 1, stages = 1, replicas = 1, gpus = 1;
  double step_s = 0.0;
  double energy_j = 0.0;                   ///< of all GPUs, default clocks
  std::optional<StepShares> shares;        ///< nothing: of a disturbed step
  std::vector<double> energy_changes_pct;  ///< of the plan for each slack
};

/// What the picture says about all of them.
struct ScaleCaption {
  std::string model;    ///< "gpt3-175b, 16 microbatches of 1 sequence"
  std::string cluster;  ///< with the GPU
  std::vector<double> slacks_pct;
  std::string notes;  ///< of the page
};

/// For each slack what is saved least and most; nothing where no plans were made.
[[nodiscard]] std::string scale_answer(const ScaleCaption& caption,
                                       std::span<const DrawnStep> steps);

}  // namespace rubato
