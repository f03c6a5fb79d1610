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
      0.0;  ///< launches of the other a second; 1 of a collective that others decide the end of
  double power_w = 0.0;  ///< beyond the least power of a GPU that runs nothing
  double side_w = 0.0;   ///< part of power_w beyond idle power that the other draws, or it alone
};

/// What else may run beside a pair; several GPUs may have the same.
struct CompanyTag;
using CompanyId = Id<CompanyTag>;
inline constexpr CompanyId no_company{0};

/// Kernels are those of LaunchCosts: a kernel's throttle counts.
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

  /// @param holds    the other is a collective between arrival and departure
  /// @param company  what else may run: costs are those that stay true then, of a collective beside
  ///                 a kernel, unless the company pays for that
  [[nodiscard]] std::span<const PairCost> pair(std::uint32_t kernel, std::uint32_t side, bool holds,
                                               CompanyId company) {
    return known(Key{kernel, side, holds, company});
  }

  /// What a company takes of the power of a collective at most, by clock: nothing unless it pays.
  /// @param kernel  beside the collective; nothing: it runs alone
  [[nodiscard]] std::vector<double> lost_w(std::optional<std::uint32_t> kernel, std::uint32_t side,
                                           CompanyId company);

  /// Of one GPU at any clock: no launch takes longer while at most one kernel of each stream runs.
  /// @param weight  by clock: the most of it times the time; empty: 1
  /// @return of one launch of each, s, shape as streams
  [[nodiscard]] std::vector<std::vector<double>> longest_s(
      const std::vector<std::vector<std::uint32_t>>& streams, std::span<const double> weight = {});

  /// How much of their time alone at their fastest launches of a stream run through at most while a
  /// launch of another stream runs beside them, at any clock.
  /// @return of one launch of each, s, shape as beside
  [[nodiscard]] std::vector<double> most_passed_s(std::span<const std::uint32_t> stream,
                                                  std::span<const std::uint32_t> beside);

  /// Power of an idle GPU beyond the least, by clock.
  [[nodiscard]] double surplus_w(std::uint32_t kernel, std::size_t clock) const;

  /// Cells that were asked for: what it takes.
  [[nodiscard]] std::size_t cells() const noexcept { return cells_; }

  /// Whether two of those asked for together reach the power limit.
  [[nodiscard]] bool jointly_limited() const noexcept { return jointly_limited_; }

 private:
  static constexpr std::uint32_t nothing = 0xffffffff;
  using Key = std::tuple<std::uint32_t, std::uint32_t, bool, CompanyId>;
  struct Company {
    std::vector<std::set<std::uint32_t>> others;
    std::vector<std::vector<double>> dram_uses;  // shape [clocks][others], at most
    bool loads = false;                          // some of them keep the GPU busy
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
