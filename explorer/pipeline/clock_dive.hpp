#pragma once
// Measured clocks by fixing some passes at a time and asking again how long all others last.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "common/run_context.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "explorer/pipeline/rounding.hpp"

namespace rubato {

/// How a dive goes down.
struct DiveOptions {
  /// Of the passes that lie between two clocks, the share that is restricted at a time.
  double share = 0.2;
  /// Passes at or beyond this part of the way from one clock to the next get the slower one.
  double slower_from = 0.5;
  int slope_bits = 8;  ///< see FrontierOptions
  /// Cost of a plan that is known, J: a dive ends where no plan further down can be cheaper.
  double known_j = std::numeric_limits<double>::infinity();
};

/// Free durations of many passes lie between two clocks. Rounding all of them at once wastes what
/// one pass could leave to another. A dive restricts those that lose most by rounding to the clocks
/// on one side, asks for free durations again under these limits, and so on until all lie at
/// clocks; on the way every answer is rounded. ("Relax and fix".)
class ClockDive {
 public:
  /// @param rounder  of `work`; both must outlive this
  ClockDive(const PipelineWork& work, const ClockRounder& rounder);

  /// The cheapest plan on the way down, interrupted until then, or nothing if none ends by the
  /// deadline.
  /// @param duration_s  free durations for the deadline, shape [passes]
  [[nodiscard]] std::optional<PipelinePlan> dive(std::span<const double> duration_s,
                                                 double deadline_s, const DiveOptions& options = {},
                                                 const RunContext& context = {}) const;

 private:
  // Of a pass, the choices `first` to `last` are left.
  struct Range {
    std::uint32_t first = 0, last = 0;
  };
  struct Restriction {
    std::uint32_t pass = 0;
    Range faster, slower;
    double lost_j = 0.0;  // by rounding down
    bool prefers_slower = false;
  };

  [[nodiscard]] std::vector<Restriction> between_clocks(std::span<const double> duration_s,
                                                        std::span<const Range> ranges,
                                                        double slower_from) const;
  [[nodiscard]] std::optional<FrontierPlan> free_plan(std::span<const Range> ranges,
                                                      double deadline_s, int slope_bits,
                                                      const RunContext& context) const;
  [[nodiscard]] Range around(std::uint32_t pass, double duration_s) const;
  [[nodiscard]] CostCurve curve(std::uint32_t pass, Range range) const;

  const PipelineWork& work_;
  const ClockRounder& rounder_;
};

}  // namespace rubato
