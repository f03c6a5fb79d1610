#pragma once
// What an experiment comes to. A setting is what one run of the store is made from. A unit is one
// question in one setting. Each has a content hash.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "explorer/experiments/captured_work.hpp"
#include "explorer/experiments/file.hpp"
#include "explorer/experiments/point_values.hpp"
#include "explorer/exploration.hpp"
#include "explorer/pipeline/exploration.hpp"
#include "explorer/plan/answer.hpp"

namespace rubato {

/// A trace, and how it was made where it was generated.
struct TraceWork {
  std::shared_ptr<const Trace> trace;  ///< of one microbatch where there is a pipeline
  std::optional<WorkShape> shape;
  std::optional<PipelineSplit> pipeline;
};

/// A trace or a captured run on a GPU with clocks to choose from. Units of one setting of a trace
/// share its profile.
struct Setting {
  std::string id;  ///< hash of options_json and the program version
  std::variant<TraceWork, CapturedWork> work;
  std::shared_ptr<const GpuSpec> spec;
  double power_limit_w = 0.0;
  std::string clocks;
  SwitchModel switching;
  double host_power_w = 0.0;           ///< of the rest of the node, for each GPU
  double odds_frac = usual_odds_frac;  ///< of being in time that an answer must have, 0 to 1
  std::uint64_t seed = 0;
  std::string options_json;        ///< hashes of work and spec, and every option, for the store
  double estimated_store_s = 0.0;  ///< estimate of storing its profile once; 0 if captured

  /// nullptr where it is of the other kind.
  [[nodiscard]] const TraceWork* traced() const { return std::get_if<TraceWork>(&work); }
  [[nodiscard]] const CapturedWork* captured() const { return std::get_if<CapturedWork>(&work); }
  /// nullptr where there are no stages.
  [[nodiscard]] const PipelineSplit* pipeline() const {
    return traced() != nullptr && traced()->pipeline ? &*traced()->pipeline : nullptr;
  }
  /// Of the trace or the captured run.
  [[nodiscard]] const std::string& name() const {
    return captured() != nullptr ? captured()->run->name : traced()->trace->name;
  }
};

/// One question in one setting: the piece of work that is finished or not.
struct Unit {
  std::string id;           ///< hash of question_id and the program version
  std::string question_id;  ///< hash of the setting's options_json and the question
  std::size_t setting = 0;  ///< index into SweepPlan::settings
  Question question;
  std::vector<std::string> scenarios;  ///< that ask for it; "" is the axes
  double estimated_s = 0.0;            ///< on one core
};

struct SweepPlan {
  Experiment experiment;  ///< without its points, which are units here
  std::vector<Setting> settings;
  std::vector<Unit> units;   ///< no two with the same id; units of a setting are neighbours
  std::size_t repeated = 0;  ///< points that ask a question another point asks
};

/// Loads or generates every trace, captured run and spec, checks every setting, hashes everything.
/// @throws DataError listing the points that cannot be run (a degree that does not divide the
///         heads, a power limit out of range, ...), IoError
[[nodiscard]] SweepPlan plan_sweep(Experiment experiment);

}  // namespace rubato
