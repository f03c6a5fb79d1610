#pragma once
// The passes of one captured rank of a pipeline: the launches between its sends and receives.

#include <cstdint>
#include <string>
#include <vector>

#include "traces/capture.hpp"
#include "traces/pipeline/schedule.hpp"

namespace rubato {

/// A pass as it was captured.
struct CapturedPass {
  PassKind kind = PassKind::forward;         ///< forward, backward, or what ends a step
  std::uint32_t step = 0;                    ///< into Capture::steps
  std::uint32_t position = 0;                ///< among the passes of its step
  std::int64_t start_ns = 0;                 ///< first start on the main stream
  std::int64_t end_ns = 0;                   ///< last end on it
  std::vector<std::uint32_t> launches = {};  ///< into Capture::launches, on all streams

  [[nodiscard]] double time_s() const { return s_per_ns * static_cast<double>(end_ns - start_ns); }
};

/// One rank of a pipeline. All steps kept have the same passes in the same order.
struct CapturedStage {
  std::uint32_t main_stream = 0;     ///< computes longest; a pass lasts as long as it does here
  std::vector<CapturedPass> passes;  ///< of the steps kept, in order
  std::vector<CapturedPass> ends;    ///< what ends these steps, see find_step_ends
  std::vector<PassKind> order;       ///< kinds of the passes of a step, in order
  std::uint32_t steps = 0;           ///< number of steps kept
  double other_s = 0.0;  ///< of a step: computing on the main stream outside passes and `ends`
  std::vector<std::string> notes;  ///< what was left out
};

/// Takes the launches of every step in the order of the host's calls (of starts, where the file has
/// no calls), and cuts them at the sends and receives of the pipeline's group. Each forward or
/// backward part is a pass. Parts of less than a tenth of the usual length of their kind are none:
/// gradient scaling, shapes that are sent ahead. What comes after the last backward part is none
/// either; of that, gradient reduction and optimizer end the step. Of the steps, those with the
/// commonest order of passes are kept.
/// @throws DataError if the capture has several GPUs, sends and receives nothing or no step has as
///         many forward as backward passes
[[nodiscard]] CapturedStage find_passes(const Capture& capture);

/// Which sends and receives are the pipeline's: those of groups whose name or description has
/// "pipeline" in it; without such groups all.
class PipelineMessages {
 public:
  /// @param capture  must outlive this
  explicit PipelineMessages(const Capture& capture);

  [[nodiscard]] bool has(const CapturedLaunch& launch) const;

 private:
  [[nodiscard]] bool is_send(const CapturedLaunch& launch) const;
  [[nodiscard]] bool in_named_group(const CapturedLaunch& launch) const;

  const Capture& capture_;
  bool named_ = false;
};

/// The group of the pipeline's sends and receives; nullptr where the file has none.
[[nodiscard]] const CaptureGroup* pipeline_group(const Capture& capture);

}  // namespace rubato
