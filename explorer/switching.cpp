#include "explorer/switching.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Costs at one price of time: energy + price x time.
class PricedProblem {
 public:
  PricedProblem(const SwitchingProblem& problem, double price_w) : p_(problem), price_w_(price_w) {
    for (const double idle_w : p_.idle_power_w) {
      into_.push_back(p_.cost.energy_j + p_.cost.stall_s * (idle_w + price_w_));
    }
  }

  [[nodiscard]] std::size_t clocks() const { return into_.size(); }
  [[nodiscard]] double launch(KernelId kernel, std::size_t clock) const {
    return p_.per_launch.energies_j(index(kernel))[clock] +
           price_w_ * p_.per_launch.times_s(index(kernel))[clock];
  }
  /// A change of clock, by the clock it leads to.
  [[nodiscard]] double into(std::size_t clock) const { return into_[clock]; }

 private:
  const SwitchingProblem& p_;
  double price_w_;
  std::vector<double> into_;
};

// A segment for every clock of its first and last launch, repeats included.
class SegmentTable {
 public:
  SegmentTable(const PricedProblem& priced, const Segment& segment)
      : clocks_(priced.clocks()),
        sites_(segment.launches.size()),
        cost_(clocks_ * clocks_),
        from_(clocks_ * sites_ * clocks_) {
    for (std::size_t first = 0; first < clocks_; ++first) fill(priced, segment, first);
  }

  [[nodiscard]] double cost(std::size_t first, std::size_t last) const {
    return cost_[first * clocks_ + last];
  }

  /// Clocks of the launches, in order.
  [[nodiscard]] std::vector<std::size_t> path(std::size_t first, std::size_t last) const {
    std::vector<std::size_t> clocks(sites_);
    for (std::size_t site = sites_; site-- > 0;) {
      clocks[site] = last;
      if (site > 0) last = from_[(first * sites_ + site) * clocks_ + last];
    }
    return clocks;
  }

 private:
  void fill(const PricedProblem& priced, const Segment& segment, std::size_t first) {
    const double repeat = segment.repeat;
    std::vector<double> best(clocks_, infinity), next(clocks_);
    best[first] = repeat * priced.launch(segment.launches[0], first);
    for (std::size_t site = 1; site < sites_; ++site) {
      const auto cheapest = static_cast<std::size_t>(std::ranges::min_element(best) - best.begin());
      for (std::size_t c = 0; c < clocks_; ++c) {
        const double changed = best[cheapest] + repeat * priced.into(c);
        const bool stay = best[c] <= changed;
        from_[(first * sites_ + site) * clocks_ + c] =
            static_cast<std::uint32_t>(stay ? c : cheapest);
        next[c] = (stay ? best[c] : changed) + repeat * priced.launch(segment.launches[site], c);
      }
      best.swap(next);
    }
    // From the end of one repeat to the start of the next.
    for (std::size_t last = 0; last < clocks_; ++last) {
      cost_[first * clocks_ + last] =
          best[last] + (last == first ? 0.0 : (repeat - 1.0) * priced.into(first));
    }
  }

  std::size_t clocks_;
  std::size_t sites_;
  std::vector<double> cost_;
  std::vector<std::uint32_t> from_;
};

// The cheapest way round the iteration that begins with one clock.
struct Round {
  double cost = infinity;
  std::vector<std::size_t> first_of_segment;
  std::vector<std::size_t> last_of_segment;
};

Round best_round(const PricedProblem& priced, const std::vector<SegmentTable>& segments,
                 std::size_t first) {
  const std::size_t clocks = priced.clocks();
  std::vector<double> best(clocks), entered(clocks), next(clocks);
  std::vector<std::vector<std::size_t>> last_before, first_for;
  for (std::size_t last = 0; last < clocks; ++last) best[last] = segments[0].cost(first, last);
  for (std::size_t s = 1; s < segments.size(); ++s) {
    const auto cheapest = static_cast<std::size_t>(std::ranges::min_element(best) - best.begin());
    auto& came_from = last_before.emplace_back(clocks);
    for (std::size_t f = 0; f < clocks; ++f) {
      const double changed = best[cheapest] + priced.into(f);
      came_from[f] = best[f] <= changed ? f : cheapest;
      entered[f] = std::min(best[f], changed);
    }
    auto& began_with = first_for.emplace_back(clocks);
    for (std::size_t last = 0; last < clocks; ++last) {
      next[last] = infinity;
      for (std::size_t f = 0; f < clocks; ++f) {
        const double cost = entered[f] + segments[s].cost(f, last);
        if (cost >= next[last]) continue;
        next[last] = cost;
        began_with[last] = f;
      }
    }
    best.swap(next);
  }
  // The next iteration begins as this one did.
  for (std::size_t last = 0; last < clocks; ++last)
    best[last] += last == first ? 0.0 : priced.into(first);
  auto last = static_cast<std::size_t>(std::ranges::min_element(best) - best.begin());
  Round round{best[last], std::vector<std::size_t>(segments.size()),
              std::vector<std::size_t>(segments.size())};
  for (std::size_t s = segments.size(); s-- > 0;) {
    round.last_of_segment[s] = last;
    round.first_of_segment[s] = s == 0 ? first : first_for[s - 1][last];
    if (s > 0) last = last_before[s - 1][round.first_of_segment[s]];
  }
  return round;
}

double priced(const Cost& cost, double price_w) { return cost.energy_j + price_w * cost.time_s; }

// Energy of the launches up to each site, all at one clock: shape [clocks][sites + 1].
std::vector<std::vector<double>> energy_up_to_site(const SwitchingProblem& problem) {
  std::vector<std::vector<double>> sums(problem.per_launch.clocks(), std::vector<double>(1, 0.0));
  for (const Site& site : sites(problem.trace)) {
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const double energy_j = problem.per_launch.energies_j(index(site.kernel))[c];
      sums[c].push_back(sums[c].back() + site.repeat * energy_j);
    }
  }
  return sums;
}

// Moves runs of launches to other clocks while energy falls and the budget holds.
class RunMover {
 public:
  RunMover(const SwitchingProblem& problem, std::vector<ClockId> clocks)
      : problem_(problem), at_clock_(energy_up_to_site(problem)), clocks_(std::move(clocks)) {
    accept(iteration_cost(problem_, clocks_));
  }

  std::vector<ClockId> run(const RunContext& context) {
    bool better = true;
    while (better && !context.stop_requested()) {
      better = false;
      for (std::size_t first = 0; first < clocks_.size(); ++first) {
        for (std::size_t last = first; last < clocks_.size(); ++last) {
          for (std::size_t c = 0; c < at_clock_.size(); ++c)
            better = try_move(first, last, c) || better;
        }
      }
    }
    return clocks_;
  }

 private:
  bool try_move(std::size_t first, std::size_t last, std::size_t c) {
    // At best the move also makes every switch unnecessary.
    const double before_j = current_[last + 1] - current_[first];
    const double after_j = at_clock_[c][last + 1] - at_clock_[c][first];
    if (after_j - before_j >= switching_j_) return false;
    const std::vector<ClockId> kept = clocks_;
    std::fill(clocks_.begin() + static_cast<std::ptrdiff_t>(first),
              clocks_.begin() + static_cast<std::ptrdiff_t>(last) + 1, id_at<ClockId>(c));
    const Cost cost = iteration_cost(problem_, clocks_);
    if (cost.time_s > problem_.budget_s || cost.energy_j >= energy_j_) {
      clocks_ = kept;
      return false;
    }
    accept(cost);
    return true;
  }

  void accept(const Cost& cost) {
    energy_j_ = cost.energy_j;
    current_.assign(1, 0.0);
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      const std::vector<double>& sums = at_clock_[index(clocks_[i])];
      current_.push_back(current_.back() + sums[i + 1] - sums[i]);
    }
    switching_j_ = std::max(energy_j_ - current_.back(), 0.0);
  }

  const SwitchingProblem& problem_;
  std::vector<std::vector<double>> at_clock_;
  std::vector<double> current_;  ///< as at_clock_, at the clocks chosen
  std::vector<ClockId> clocks_;
  double energy_j_ = 0.0;
  double switching_j_ = 0.0;
};

}  // namespace

double SwitchingSolution::gap_frac() const noexcept {
  if (status == SolveStatus::optimal || total.energy_j == 0.0) return 0.0;
  return (total.energy_j - lower_bound) / total.energy_j;
}

Cost iteration_cost(const SwitchingProblem& problem, const std::vector<ClockId>& clock_of_site) {
  CompensatedSum time_s, energy_j;
  const auto change = [&](ClockId from, ClockId to, double times) {
    if (from == to) return;
    time_s.add(times * problem.cost.stall_s);
    energy_j.add(times *
                 (problem.cost.energy_j + problem.cost.stall_s * problem.idle_power_w[index(to)]));
  };
  std::size_t site = 0;
  ClockId before = clock_of_site.back();
  for (const Segment& segment : problem.trace.segments) {
    const std::size_t first = site;
    const double repeat = segment.repeat;
    for (const KernelId kernel : segment.launches) {
      const ClockId clock = clock_of_site[site];
      const Cost launch = problem.per_launch.cost(index(kernel), clock);
      time_s.add(repeat * launch.time_s);
      energy_j.add(repeat * launch.energy_j);
      if (site == first) {
        change(before, clock, 1.0);
      } else {
        change(clock_of_site[site - 1], clock, repeat);
      }
      ++site;
    }
    change(clock_of_site[site - 1], clock_of_site[first], repeat - 1.0);
    before = clock_of_site[site - 1];
  }
  return {time_s.value(), energy_j.value()};
}

std::vector<ClockId> least_priced_plan(const SwitchingProblem& problem, double price_w) {
  const PricedProblem costs(problem, price_w);
  std::vector<SegmentTable> segments;
  for (const Segment& segment : problem.trace.segments) segments.emplace_back(costs, segment);
  Round best;
  for (std::size_t first = 0; first < costs.clocks(); ++first) {
    Round round = best_round(costs, segments, first);
    if (round.cost < best.cost) best = std::move(round);
  }
  std::vector<ClockId> clocks;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    for (const std::size_t c :
         segments[s].path(best.first_of_segment[s], best.last_of_segment[s])) {
      clocks.push_back(id_at<ClockId>(c));
    }
  }
  return clocks;
}

SwitchingSolution solve_switching(const SwitchingProblem& problem, const std::vector<Plan>& starts,
                                  const RunContext& context) {
  constexpr double highest_price_w = 1e7;  // beyond it only time counts
  constexpr int halvings = 40;
  SwitchingSolution solution;
  solution.lower_bound = 0.0;
  std::vector<std::vector<ClockId>> candidates;
  const auto consider = [&](double price_w) {
    std::vector<ClockId> clocks = least_priced_plan(problem, price_w);
    ++solution.evaluations;
    const Cost cost = iteration_cost(problem, clocks);
    solution.lower_bound =
        std::max(solution.lower_bound, priced(cost, price_w) - price_w * problem.budget_s);
    const bool within = cost.time_s <= problem.budget_s;
    if (within) candidates.push_back(std::move(clocks));
    return within;
  };
  double low_w = 0.0, high_w = highest_price_w;
  if (!consider(low_w)) {
    if (!consider(high_w)) return solution;
    for (int i = 0; i < halvings && high_w - low_w > 1e-6 * high_w && !context.stop_requested();
         ++i) {
      // Prices span orders of magnitude, so the middle is the geometric one.
      const double middle_w = std::sqrt(std::max(low_w, 1e-3) * high_w);
      (consider(middle_w) ? high_w : low_w) = middle_w;
    }
  }
  // The last candidate is the cheapest of the search; other starts may lie elsewhere.
  std::vector<std::vector<ClockId>> chosen{candidates.back()};
  for (const Plan& start : starts) {
    if (iteration_cost(problem, start.clock_of_site).time_s <= problem.budget_s)
      chosen.push_back(start.clock_of_site);
  }
  solution.total.energy_j = infinity;
  for (std::vector<ClockId>& clocks : chosen) {
    clocks = RunMover(problem, std::move(clocks)).run(context);
    const Cost cost = iteration_cost(problem, clocks);
    if (cost.energy_j >= solution.total.energy_j) continue;
    solution.total = cost;
    solution.plan.clock_of_site = clocks;
  }
  constexpr double met = 1e-12;
  const bool proven = solution.total.energy_j <= solution.lower_bound * (1.0 + met);
  solution.status = proven ? SolveStatus::optimal : SolveStatus::feasible;
  solution.lower_bound = std::min(solution.lower_bound, solution.total.energy_j);
  return solution;
}

}  // namespace rubato
