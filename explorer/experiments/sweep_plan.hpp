#pragma once
// What an experiment comes to: settings (what one run of the store is made
// from) and units (one question in one setting), each with a content hash.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "explorer/experiments/file.hpp"
#include "explorer/experiments/point_values.hpp"
#include "explorer/exploration.hpp"
#include "explorer/pipeline/exploration.hpp"

namespace rubato {

/// A trace on a GPU with clocks to choose from. Units of one setting share its profile.
struct Setting {
  std::string id;  ///< hash of trace, spec, power limit, clocks, switch cost, seed and program
  std::shared_ptr<const Trace> trace;  ///< of one microbatch where there is a pipeline
  std::shared_ptr<const GpuSpec> spec;
  double power_limit_w = 0.0;
  std::string clocks;
  SwitchModel switching;
  std::uint64_t seed = 0;
  std::optional<WorkShape> shape;
  std::optional<PipelineSplit> pipeline;
  std::string options_json;        ///< every option as text, for the store
  double estimated_store_s = 0.0;  ///< time to store its profile once
};

/// One question in one setting: the piece of work that is finished or not.
struct Unit {
  std::string id;           ///< as question_id, and the program version
  std::string question_id;  ///< hash of everything the answer depends on but the program
  std::size_t setting = 0;  ///< index into SweepPlan::settings
  Question question;
  std::vector<std::string> scenarios;  ///< that ask for it; "" is the axes
  double estimated_s = 0.0;            ///< on one core
};

struct SweepPlan {
  Experiment experiment;
  std::vector<Setting> settings;
  std::vector<Unit> units;   ///< no two with the same id; units of a setting are neighbours
  std::size_t repeated = 0;  ///< points that ask a question another point asks
};

/// Loads or generates every trace and spec, checks every setting, hashes everything.
/// @throws DataError listing the points that cannot be run (a degree that does not divide the
///         heads, a power limit out of range, ...), IoError
[[nodiscard]] SweepPlan plan_sweep(Experiment experiment);

}  // namespace rubato
