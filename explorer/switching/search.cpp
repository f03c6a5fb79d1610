#include "explorer/switching/search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "explorer/switching/clock_sweep.hpp"
#include "explorer/switching/launch_dp.hpp"
#include "explorer/switching/run_crossing.hpp"

namespace rubato {

namespace {

// A plan with its totals.
struct Candidate {
  std::vector<ClockRun> runs;
  Cost total;
};

class SwitchingSearch {
 public:
  SwitchingSearch(const SwitchingProblem& problem, double gap_frac, const RunContext& context)
      : sequence_(problem), enough_(std::max(rounding_gap, gap_frac)), context_(context) {
    // Sums of the same times in different orders differ by rounding.
    constexpr double rounding = 1e-12;
    budget_s_ = problem.budget_s * (1.0 + rounding);
    // With more launches x clocks a program takes long: few prices are tried and few plans joined.
    constexpr std::size_t fine_cells = 4'000'000;
    fine_ = sequence_.size() * sequence_.clocks() <= fine_cells;
  }

  SwitchingSolution run(std::span<const std::vector<ClockRun>> starts) {
    for (const std::vector<ClockRun>& start : starts) consider(start);
    consider_one_clock();
    if (best_ && !changes_fit()) {
      lower_bound_ = best_->total.energy_j;
      return solution();
    }
    if (!bracket_by_sample()) {
      const AtPrice fastest = at_price({0.0, 1.0});
      if (fastest.bound > budget_s_) return {};
      const AtPrice cheapest = at_price({1.0, 0.0});
      raise_bound(cheapest.bound, 0.0);
      slow_ = cheapest.best;
      quick_ = fastest.best;
    }
    if (slow_ && slow_->total.time_s > budget_s_ && quick_ && quick_->total.time_s <= budget_s_)
      find_price();
    join_plans(nearest_plans());
    return solution();
  }

  /// The price of time that gave the best bound of the relaxation, W.
  [[nodiscard]] double price_w() const noexcept { return price_w_; }

 private:
  // A lower bound on the value of all plans at a price, and the cheapest plan found.
  struct AtPrice {
    double bound = 0.0;
    std::optional<Candidate> best;
  };

  void consider(const std::vector<ClockRun>& runs) {
    if (const auto total = iteration_cost(sequence_, runs)) consider({runs, *total});
  }
  void consider(const Candidate& candidate) {
    seen_.push_back(candidate);
    if (candidate.total.time_s > budget_s_) return;
    if (!best_ || candidate.total.energy_j < best_->total.energy_j) best_ = candidate;
  }

  // The bound leaves out the change back to the first clock.
  [[nodiscard]] AtPrice looked_up(Price price) const {
    PricedRuns open =
        cheapest_open(PricedSequence(sequence_, price, useful_clocks(sequence_, price)));
    AtPrice found{.bound = open.value, .best = {}};
    std::vector<ClockRun> runs = closed(sequence_, std::move(open.runs));
    if (const auto total = iteration_cost(sequence_, runs))
      found.best = Candidate{std::move(runs), *total};
    return found;
  }
  AtPrice at_price(Price price) {
    AtPrice found = looked_up(price);
    note(found);
    return found;
  }
  void note(const AtPrice& found) {
    ++prices_;
    if (found.best) consider(*found.best);
  }

  // The plan of least energy within the budget that has the same clock all the time.
  void consider_one_clock() {
    const ProfileTable& table = sequence_.problem().per_launch;
    std::vector<double> counts(table.rows(), 0.0);
    for (const std::uint32_t row : sequence_.rows()) counts[row] += 1.0;
    std::optional<std::uint32_t> best;
    double least_j = ClockSweep::infinity;
    for (std::uint32_t c = 0; c < sequence_.clocks(); ++c) {
      CompensatedSum time_s, energy_j;
      for (std::size_t row = 0; row < table.rows(); ++row) {
        time_s.add(counts[row] * table.times_s(row)[c]);
        energy_j.add(counts[row] * table.energies_j(row)[c]);
      }
      if (time_s.value() > budget_s_ || energy_j.value() >= least_j) continue;
      least_j = energy_j.value();
      best = c;
    }
    if (best) consider(std::vector{ClockRun{*best, sequence_.size()}});
  }

  // Changes come in pairs at least, since the next iteration begins as this one did. Where two do
  // not fit beside the fastest launches, no plan with changes does.
  [[nodiscard]] bool changes_fit() const {
    const ProfileTable& table = sequence_.problem().per_launch;
    CompensatedSum fastest_s;
    for (const std::uint32_t row : sequence_.rows())
      fastest_s.add(std::ranges::min(table.times_s(row)));
    double change_s = ClockSweep::infinity;
    for (const ChangeKind& kind : sequence_.kinds()) {
      for (const Cost& into : kind.into) change_s = std::min(change_s, into.time_s);
    }
    return fastest_s.value() + 2.0 * change_s <= budget_s_;
  }

  // A sample of a long sequence gives the price to a few percent. One program over all launches on
  // either side of that replaces the search for the price. False if that has to be made after all.
  bool bracket_by_sample() {
    constexpr std::size_t sample_size = 8'000, chunks = 16;
    if (fine_ || sequence_.size() < 8 * sample_size || !best_) return false;
    const double hint_w = price_of_sample(sample_size, chunks);
    if (!(hint_w > 0.0)) return false;
    // One price on each side; then two further away, on the side where no plan is found yet.
    constexpr int most_tries = 4;
    double width = 0.006;
    std::array<double, 2> prices_w{hint_w / (1.0 + width), hint_w * (1.0 + width)};
    for (int i = 0; i < most_tries; ++i) {
      std::array<AtPrice, 2> found;
      parallel_for(prices_w.size(), [&](std::size_t side) {
        found[side] = looked_up({1.0, prices_w[side]});
      });
      for (std::size_t side = 0; side < found.size(); ++side) {
        note(found[side]);
        raise_bound(found[side].bound, prices_w[side]);
        if (found[side].best) keep_nearest(*found[side].best);
      }
      if (slow_ && quick_) return true;
      const double nearer = 1.0 + 4.0 * width, farther = 1.0 + 16.0 * width;
      prices_w = slow_ ? std::array{hint_w * nearer, hint_w * farther}
                       : std::array{hint_w / nearer, hint_w / farther};
      width *= 16.0;
    }
    return false;
  }

  void keep_nearest(const Candidate& plan) {
    const bool misses = plan.total.time_s > budget_s_;
    std::optional<Candidate>& kept = misses ? slow_ : quick_;
    if (!kept || (plan.total.time_s < kept->total.time_s) == misses) kept = plan;
  }

  [[nodiscard]] double price_of_sample(std::size_t size, std::size_t chunks) const {
    const SwitchingProblem& whole = sequence_.problem();
    std::vector<double> fastest_s;  // of each table row
    for (std::size_t row = 0; row < whole.per_launch.rows(); ++row)
      fastest_s.push_back(std::ranges::min(whole.per_launch.times_s(row)));
    CompensatedSum sample_s, whole_s;
    for (const std::uint32_t row : sequence_.rows()) whole_s.add(fastest_s[row]);
    Trace sample;
    Segment& segment = sample.segments.emplace_back(Segment{.name = "sample", .launches = {}});
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t first = sequence_.size() / chunks * chunk;
      for (std::size_t i = 0; i < size / chunks; ++i) {
        const std::uint32_t row = sequence_.rows()[first + i];
        segment.launches.push_back(KernelId{row});
        sample_s.add(fastest_s[row]);
      }
    }
    SwitchingProblem problem{.trace = sample,
                             .per_launch = whole.per_launch,
                             .clocks = whole.clocks,
                             .idle_power_w = whole.idle_power_w,
                             .switching = whole.switching,
                             .budget_s = whole.budget_s * sample_s.value() / whole_s.value()};
    SwitchingSearch search(problem, 0.0, context_);
    (void)search.run({});
    return search.price_w();
  }

  void raise_bound(double value, double price_w) {
    const double bound = value - price_w * budget_s_;
    lower_bound_ = std::max(lower_bound_, bound);
    if (bound <= dual_bound_) return;
    dual_bound_ = bound;
    price_w_ = price_w;
  }

  // Cutting planes on the concave Lagrangian dual: slow_ misses the budget, quick_ keeps it.
  void find_price() {
    constexpr int most_cuts = 100;
    constexpr double met = 1e-9, long_gap = 1e-5;
    for (int cut = 0; cut < most_cuts && !context_.stop_requested(); ++cut) {
      const double price_w = (quick_->total.energy_j - slow_->total.energy_j) /
                             (slow_->total.time_s - quick_->total.time_s);
      // Joined plans of a long sequence come so near that the price need not be exact.
      if (!fine_) join_plans(nearest_plans());
      if (!(price_w > 0.0) || within(fine_ ? enough_ : std::max(long_gap, enough_))) break;
      const Price price{1.0, price_w};
      const AtPrice found = at_price(price);
      raise_bound(found.bound, price_w);
      if (!found.best || price.of(found.best->total) >= price.of(quick_->total) * (1.0 - met))
        break;
      (found.best->total.time_s > budget_s_ ? slow_ : quick_) = found.best;
    }
  }

  // The plans whose times are nearest to the budget, on both sides of it.
  [[nodiscard]] std::vector<Candidate> nearest_plans() {
    constexpr std::size_t most_plans = 16;
    std::vector<Candidate> plans = std::exchange(seen_, {});
    if (!fine_) {
      plans.clear();
      for (const std::optional<Candidate>* side : {&slow_, &quick_}) {
        if (*side) plans.push_back(**side);
      }
    }
    std::ranges::sort(plans, {}, [&](const Candidate& plan) {
      return std::pair(std::abs(plan.total.time_s - budget_s_), plan.total.energy_j);
    });
    const auto same = [](const Candidate& a, const Candidate& b) { return a.runs == b.runs; };
    plans.erase(std::unique(plans.begin(), plans.end(), same), plans.end());
    plans.resize(std::min(plans.size(), most_plans));
    return plans;
  }

  // Joins the first launches of one plan and the last of another, for all pairs.
  void join_plans(std::span<const Candidate> plans) {
    for (const Candidate& before : plans) {
      for (const Candidate& after : plans) {
        if (&before == &after || within(enough_)) continue;
        const auto joined = join(sequence_, before.runs, after.runs, budget_s_);
        if (!joined.empty()) consider(joined);
      }
    }
  }

  [[nodiscard]] bool within(double gap) const {
    return best_ && best_->total.energy_j - lower_bound_ <= gap * best_->total.energy_j;
  }

  [[nodiscard]] SwitchingSolution solution() const {
    SwitchingSolution solution;
    solution.prices = prices_;
    solution.status = SolveStatus::time_limit;
    if (!best_) return solution;
    solution.runs = best_->runs;
    solution.total = best_->total;
    const bool proven = within(2.0 * rounding_gap);
    solution.status = context_.stop_requested() ? SolveStatus::time_limit : SolveStatus::feasible;
    if (proven) solution.status = SolveStatus::optimal;
    solution.lower_bound =
        proven ? solution.total.energy_j : std::min(lower_bound_, solution.total.energy_j);
    return solution;
  }

  // What counts as no gap: rounding of long sums.
  static constexpr double rounding_gap = 1e-9;

  LaunchSequence sequence_;
  double enough_;  ///< a gap that is small enough
  const RunContext& context_;
  double budget_s_ = 0.0;
  bool fine_ = false;
  std::optional<Candidate> best_;
  std::optional<Candidate> slow_, quick_;  ///< on either side of the budget
  std::vector<Candidate> seen_;
  double lower_bound_ = 0.0;
  double dual_bound_ = -ClockSweep::infinity;
  double price_w_ = 0.0;  ///< the price behind dual_bound_
  std::uint64_t prices_ = 0;
};

}  // namespace

double SwitchingSolution::gap_frac() const noexcept {
  if (status == SolveStatus::optimal || total.energy_j == 0.0) return 0.0;
  return (total.energy_j - lower_bound) / total.energy_j;
}

SwitchingSolution solve_switching(const SwitchingProblem& problem,
                                  std::span<const std::vector<ClockRun>> starts, double gap_frac,
                                  const RunContext& context) {
  const std::size_t clocks = problem.per_launch.clocks();
  if (problem.clocks.size() != clocks || problem.idle_power_w.size() != clocks)
    throw DataError("a switching problem needs a clock pair and an idle power for every clock");
  return SwitchingSearch(problem, gap_frac, context).run(starts);
}

}  // namespace rubato
