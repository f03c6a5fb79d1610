#pragma once
// How fast two kernels get on together at every clock, and what the GPU draws.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "common/ids.hpp"
#include "explorer/graph/launch_costs.hpp"

namespace rubato {

/// A GPU that runs one kernel, or one and another beside it, at one clock.
struct PairCost {
  double time_s = 0.0;  ///< of one launch of the first
  double side_per_s =
      0.0;  ///< launches of the other a second; 1 for a collective that holds: its progress is time
  double power_w = 0.0;  ///< of the GPU, beyond the least idle power
  double side_w = 0.0;   ///< of the other (or of the one if it is alone), beyond idle power
};

/// What else may run beside a pair, see GpuLanes::others; several GPUs may have the same.
struct CompanyTag;
using CompanyId = Id<CompanyTag>;
inline constexpr CompanyId no_company{0};

/// Costs of kernels alone and in pairs, evaluated once. Kernels are numbered as by LaunchCosts:
/// each kernel with each throttle.
class PairCosts {
 public:
  /// @param costs  their model must outlive this
  PairCosts(const LaunchCosts& costs, const ClockGrid& grid);

  /// @param others, pays  as of GpuLanes
  [[nodiscard]] CompanyId company(const std::vector<std::set<std::uint32_t>>& others, bool pays);

  /// By clock. Valid as long as this lives.
  [[nodiscard]] std::span<const PairCost> alone(std::uint32_t kernel) {
    return known(Key{kernel, nothing, false, no_company});
  }

  /// A side activity while the main stream runs nothing. @param holds, company  as of pair()
  [[nodiscard]] std::span<const PairCost> side(std::uint32_t kernel, bool holds,
                                               CompanyId company) {
    return known(Key{kernel, nothing, holds, company});
  }

  /// A kernel and another beside it, by clock.
  /// @param holds    the other is a collective between arrival and departure
  /// @param company  what else may run too. Times and powers are then bounds that hold whatever of
  ///                 it runs; a collective's power only if the company does not pay
  [[nodiscard]] std::span<const PairCost> pair(std::uint32_t kernel, std::uint32_t side, bool holds,
                                               CompanyId company) {
    return known(Key{kernel, side, holds, company});
  }

  /// The most by which a company lowers the power of a collective, by clock, W; 0 unless it pays.
  /// @param kernel  beside the collective; nothing: none
  [[nodiscard]] std::vector<double> lost_w(std::optional<std::uint32_t> kernel, std::uint32_t side,
                                           CompanyId company);

  /// The most that one launch of each kernel takes on one GPU, at any clock, while at most one
  /// kernel of each stream runs.
  /// @param streams  kernels of each stream
  /// @param weight   factor on times, by clock; empty: 1
  /// @return s x weight, shape as streams
  [[nodiscard]] std::vector<std::vector<double>> longest_s(
      const std::vector<std::vector<std::uint32_t>>& streams, std::span<const double> weight = {});

  /// While one launch of a kernel in `beside` runs, launches of `stream` beside it get on. Measured
  /// in their time alone at their fastest clock: by how much at most, at any clock.
  /// @return s, shape as beside
  [[nodiscard]] std::vector<double> most_passed_s(std::span<const std::uint32_t> stream,
                                                  std::span<const std::uint32_t> beside);

  /// Idle power at a clock beyond the least, of a GPU with the throttle of a kernel, W.
  [[nodiscard]] double surplus_w(std::uint32_t kernel, std::size_t clock) const;

  /// Cells (pairs x clocks) evaluated so far.
  [[nodiscard]] std::size_t cells() const noexcept { return cells_; }

  /// Whether some pair evaluated so far reaches the power limit together.
  [[nodiscard]] bool jointly_limited() const noexcept { return jointly_limited_; }

 private:
  static constexpr std::uint32_t nothing = 0xffffffff;
  using Key = std::tuple<std::uint32_t, std::uint32_t, bool, CompanyId>;
  struct Company {
    std::vector<std::set<std::uint32_t>> others;
    std::vector<std::vector<double>> dram_uses;  // most of each, shape [clocks][others]
    bool loads = false;                          // some of them are no collectives: a load
    bool pays = false;
  };

  [[nodiscard]] std::span<const PairCost> known(const Key& key);
  [[nodiscard]] std::vector<PairCost> evaluate(const Key& key);
  [[nodiscard]] SharedGpu& gpu_at(std::size_t clock, std::size_t throttle, bool many);
  [[nodiscard]] double dram_use(std::uint32_t kernel, std::size_t clock);
  [[nodiscard]] double most_slowdown(const Key& key, std::size_t clock);

  const GraphModel& model_;
  std::vector<ClockPair> clocks_;
  double least_w_;
  std::vector<std::unique_ptr<SharedGpu>> gpus_, gpus_of_many_;  // shape [throttles x clocks]
  std::vector<Company> companies_{{}};
  std::map<Key, std::vector<PairCost>> known_;
  std::size_t cells_ = 0;
  bool jointly_limited_ = false;
};

}  // namespace rubato
