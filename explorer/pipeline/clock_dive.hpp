#pragma once
// Plans of measured clocks by relax and fix, a heuristic of integer programming: restrict some
// passes, ask again how long all others should take, and so on.

#include <array>
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
  /// The share of the passes between two clocks that is restricted at a time.
  double share = 0.2;
  /// Passes at or beyond this part of the way from one clock to the next get the slower one.
  double slower_from = 0.5;
  int slope_bits = 8;  ///< see FrontierOptions
  /// Cost of a plan that is known, J. A dive ends where no plan further down can be cheaper.
  double known_j = std::numeric_limits<double>::infinity();
};

/// Ways to dive, those that found most on the Perseus profiles first.
inline constexpr std::array<DiveOptions, 8> ways_to_dive{{{0.3, 0.3},
                                                          {0.2, 0.5},
                                                          {0.1, 0.3},
                                                          {0.1, 0.5},
                                                          {0.5, 0.5},
                                                          {0.2, 0.8},
                                                          {0.05, 0.3},
                                                          {0.05, 0.5}}};

/// Free durations of many passes lie between two clocks. Rounding all of them at once wastes time
/// that one pass could leave to another. A dive takes the passes that lose most by rounding and
/// restricts them to the clocks on one side. Then it asks for free durations under these limits,
/// and so on until all lie at clocks. Every answer on the way is rounded too.
class ClockDive {
 public:
  /// @param rounder  of `work`; both must outlive this
  ClockDive(const PipelineWork& work, const ClockRounder& rounder);

  /// The cheapest plan on the way down; if interrupted, the cheapest until then. Nothing if none
  /// ends by the deadline and is cheaper than options.known_j.
  /// @param duration_s  free durations for the deadline, shape [passes]
  [[nodiscard]] std::optional<PipelinePlan> dive(std::span<const double> duration_s,
                                                 double deadline_s, const DiveOptions& options = {},
                                                 const RunContext& context = {}) const;

 private:
  // The choices that are left to a pass, both ends included.
  struct Range {
    std::uint32_t first = 0, last = 0;
  };
  // A pass whose free duration lies between two clocks, and its choices on either side.
  struct Restriction {
    std::uint32_t pass = 0;
    Range faster, slower;
    double lost_j = 0.0;          // what rounding down costs
    bool prefers_slower = false;  // the duration is at or beyond slower_from of the way
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
