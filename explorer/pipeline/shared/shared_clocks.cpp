#include "explorer/pipeline/shared/shared_clocks.hpp"

#include <algorithm>
#include <limits>

#include "common/algorithms/sort_by.hpp"

namespace rubato {

namespace {

constexpr double sum_rounding = 1e-12;  // of sums of times and costs, in another order
constexpr std::size_t most_looked_at =
    30'000'000;  // passes, for one deadline: some tenths of a second

}  // namespace

SharedClocks::SharedClocks(const PipelinePlanner& planner)
    : planner_(planner), work_(planner.work()), rounder_(work_) {
  const std::size_t stages = work_.schedule.shape.stages;
  std::vector<std::size_t> passes(work_.types.size(), 0);
  std::vector<std::size_t> stage_of_type(work_.types.size(), 0);
  for (std::size_t p = 0; p < work_.type_of_pass.size(); ++p) {
    ++passes[index(work_.type_of_pass[p])];
    stage_of_type[index(work_.type_of_pass[p])] = work_.schedule.passes[p].stage;
  }
  types_.resize(stages);
  for (std::size_t t = 0; t < work_.types.size(); ++t) {
    const std::vector<ClockOption>& options = work_.types[t].options;
    const auto fastest = std::ranges::min_element(options, {}, &ClockOption::time_s);
    fastest_.push_back(id_at<OptionId>(static_cast<std::size_t>(fastest - options.begin())));
    if (passes[t] > 0) types_[stage_of_type[t]].push_back(t);
  }
  std::optional<std::size_t> leader;  // first stage that has a choice
  for (const std::vector<std::size_t>& types : types_) {
    std::vector<StageClock>& clocks = clocks_.emplace_back();
    // A pass of one option has no choice, and asks for no other clock.
    const auto chooses = std::ranges::find_if(
        types, [&](std::size_t t) { return work_.types[t].options.size() > 1; });
    const bool has_choice = chooses != types.end();
    if (has_choice && !leader) leader = clocks_.size() - 1;
    const std::size_t first = has_choice ? *chooses : types.front();
    for (const ClockOption& clock : work_.types[first].options) {
      StageClock all{.clock = clock, .option_of_type = {}};
      for (const std::size_t t : types) {
        const std::vector<ClockOption>& options = work_.types[t].options;
        const auto same = std::ranges::find_if(options, [&](const ClockOption& option) {
          return options.size() == 1 || same_clock(option, clock);
        });
        if (same == options.end()) break;
        all.option_of_type.push_back(
            id_at<OptionId>(static_cast<std::size_t>(same - options.begin())));
        all.cost_j += static_cast<double>(passes[t]) *
                      (same->energy_j - work_.blocked_power_w * same->time_s);
      }
      all.has_choice = has_choice;
      if (all.option_of_type.size() == types.size()) clocks.push_back(std::move(all));
    }
  }
  for (std::size_t s = 0; s < stages; ++s) useful_.push_back(unbeaten(values_of(s)));
  for (const StageClock& first : clocks_[leader.value_or(0)]) {
    Chosen chosen;
    for (const std::vector<StageClock>& clocks : clocks_) {
      const auto same = std::ranges::find_if(clocks, [&](const StageClock& one) {
        return !one.has_choice || same_clock(one.clock, first.clock);
      });
      if (same != clocks.end()) chosen.push_back(static_cast<std::size_t>(same - clocks.begin()));
    }
    if (chosen.size() == clocks_.size()) one_clock_.push_back(std::move(chosen));
  }
}

// Of each clock of a stage the cost, and the time of each type.
std::vector<std::vector<double>> SharedClocks::values_of(std::size_t stage) const {
  std::vector<std::vector<double>> values;
  for (const StageClock& clock : clocks_[stage]) {
    std::vector<double>& of_clock = values.emplace_back(1, clock.cost_j);
    for (std::size_t k = 0; k < types_[stage].size(); ++k)
      of_clock.push_back(
          work_.types[types_[stage][k]].options[index(clock.option_of_type[k])].time_s);
  }
  return values;
}

// @param stages  that have their clocks; all passes of the others are at their fastest
PipelinePlan SharedClocks::plan_of(const Chosen& chosen, std::size_t stages) const {
  std::vector<OptionId> option_of_type = fastest_;
  for (std::size_t s = 0; s < stages; ++s) {
    for (std::size_t k = 0; k < types_[s].size(); ++k)
      option_of_type[types_[s][k]] = clocks_[s][chosen[s]].option_of_type[k];
  }
  PipelinePlan plan;
  plan.option_of_pass.reserve(work_.type_of_pass.size());
  for (const PassTypeId type : work_.type_of_pass)
    plan.option_of_pass.push_back(option_of_type[index(type)]);
  return plan;
}

double SharedClocks::cost_j(const Chosen& chosen) const {
  double sum_j = 0.0;
  for (std::size_t s = 0; s < chosen.size(); ++s) sum_j += clocks_[s][chosen[s]].cost_j;
  return sum_j;
}

std::vector<double> SharedClocks::times_of_one_clock() const {
  std::vector<double> times_s;
  for (const Chosen& chosen : one_clock_)
    times_s.push_back(rounder_.time_s(plan_of(chosen, chosen.size())));
  return times_s;
}

// One clock for each stage by one deadline.
class SharedClocks::StageSearch {
 public:
  StageSearch(const SharedClocks& all, double deadline_s, const FrontierPlan* prices,
              const RunContext& context)
      : all_(all), latest_s_(deadline_s * (1.0 + sum_rounding)), context_(context) {
    if (prices != nullptr) read_prices(*prices, deadline_s);
  }

  // Keeps a plan that ends in time and takes less.
  void consider(const Chosen& chosen) {
    const double time = time_s(chosen, chosen.size());
    if (time > latest_s_) return;
    const double energy_j = all_.cost_j(chosen) + all_.planner_.waiting_power_w() * time;
    if (best_ && energy_j >= best_j_) return;
    best_ = chosen;
    best_j_ = energy_j;
  }

  // The clocks of least total where a second costs more and more, until they end in time.
  void begin() {
    Chosen chosen(all_.clocks_.size());
    for (double factor = 1.0; !flow_j_.empty() && factor < 1e6; factor *= 1.1) {
      for (std::size_t s = 0; s < chosen.size(); ++s) {
        chosen[s] = *std::ranges::min_element(all_.useful_[s], {}, [&](std::size_t clock) {
          return all_.clocks_[s][clock].cost_j + factor * flow_j_[s][clock];
        });
      }
      consider(chosen);
      if (time_s(chosen, chosen.size()) <= latest_s_) return;
    }
  }

  // Stage by stage the clock that takes least.
  void improve() {
    for (double before_j = std::numeric_limits<double>::infinity();
         best_j_ < before_j && !context_.stop_requested();) {
      before_j = best_j_;
      for (std::size_t s = 0; s < all_.clocks_.size(); ++s) {
        Chosen chosen = *best_;
        for (const std::size_t clock : all_.useful_[s]) {
          chosen[s] = clock;
          consider(chosen);
        }
      }
    }
  }

  /// Branch and bound. @return whether no other plan takes less
  bool run() {
    if (all_.clocks_.empty() || flow_j_.empty()) return false;
    Chosen chosen(all_.clocks_.size());
    branch(0, fixed_j_, chosen);
    return looked_at_ <= most_looked_at && !context_.stop_requested();
  }

  [[nodiscard]] const std::optional<Chosen>& best() const { return best_; }
  /// No plan in time takes less, J.
  [[nodiscard]] double bound_j() const {
    return flow_j_.empty() ? 0.0 : fixed_j_ + least_after_j_.front();
  }

 private:
  void read_prices(const FrontierPlan& prices, double deadline_s) {
    const PipelineWork& work = all_.work_;
    std::vector<double> flow_w(work.types.size(), 0.0);
    for (std::size_t p = 0; p < prices.flow_w.size(); ++p)
      flow_w[index(work.type_of_pass[p])] += prices.flow_w[p];
    const double waiting_w = all_.planner_.waiting_power_w();
    // (waiting power - price) x time is least at the deadline or at the least time.
    const double at_s = prices.price_w >= waiting_w
                            ? deadline_s
                            : std::min(deadline_s, all_.planner_.least_time_s());
    fixed_j_ = prices.lag_cost_j + (waiting_w - prices.price_w) * at_s;
    least_after_j_.assign(all_.clocks_.size() + 1, 0.0);
    for (std::size_t s = 0; s < all_.clocks_.size(); ++s) {
      std::vector<double>& of_stage = flow_j_.emplace_back();
      for (const StageClock& clock : all_.clocks_[s]) {
        double sum_j = 0.0;
        for (std::size_t k = 0; k < all_.types_[s].size(); ++k) {
          const std::size_t t = all_.types_[s][k];
          sum_j += flow_w[t] * work.types[t].options[index(clock.option_of_type[k])].time_s;
        }
        of_stage.push_back(sum_j);
      }
    }
    for (std::size_t s = all_.clocks_.size(); s-- > 0;) {
      double least_j = std::numeric_limits<double>::infinity();
      for (const std::size_t c : all_.useful_[s]) least_j = std::min(least_j, priced_j(s, c));
      least_after_j_[s] = least_after_j_[s + 1] + least_j;
      std::vector<std::size_t>& order = order_.emplace_back(all_.useful_[s]);
      sort_by(order, [&](std::size_t c) { return priced_j(s, c); });
    }
    std::ranges::reverse(order_);
  }

  [[nodiscard]] double priced_j(std::size_t stage, std::size_t clock) const {
    return all_.clocks_[stage][clock].cost_j + flow_j_[stage][clock];
  }

  // Time with the clocks of the first stages, the others as fast as can be.
  double time_s(const Chosen& chosen, std::size_t stages) {
    looked_at_ += all_.work_.type_of_pass.size();
    return all_.rounder_.time_s(all_.plan_of(chosen, stages));
  }

  void branch(std::size_t stage, double before_j, Chosen& chosen) {
    for (const std::size_t clock : order_[stage]) {
      if (looked_at_ > most_looked_at || context_.stop_requested()) return;
      const double now_j = before_j + priced_j(stage, clock);
      if (best_ && now_j + least_after_j_[stage + 1] >= best_j_ * (1.0 - sum_rounding)) return;
      chosen[stage] = clock;
      if (stage + 1 == chosen.size()) {
        consider(chosen);
      } else if (time_s(chosen, stage + 1) <= latest_s_) {
        branch(stage + 1, now_j, chosen);
      }
    }
  }

  const SharedClocks& all_;
  double latest_s_;
  const RunContext& context_;
  std::vector<std::vector<double>> flow_j_;      // prices of the passes, shape [stages][clocks]
  std::vector<std::vector<std::size_t>> order_;  // clocks of a stage, least first
  std::vector<double> least_after_j_;            // of this stage and all behind it
  double fixed_j_ = 0.0;
  std::optional<Chosen> best_;
  double best_j_ = std::numeric_limits<double>::infinity();
  std::size_t looked_at_ = 0;  // passes
};

std::vector<PipelineResult> SharedClocks::plan(Granularity granularity,
                                               std::span<const double> deadlines_s,
                                               const RunContext& context) const {
  std::optional<std::vector<FrontierPlan>> prices;
  if (granularity != Granularity::run) {
    std::vector<double> times_s;
    for (const double deadline_s : deadlines_s) {
      times_s.push_back(
          std::max(std::min(deadline_s, planner_.cheapest_time_s()), planner_.least_time_s()));
    }
    prices = planner_.durations(std::move(times_s), context);
  }
  std::vector<PipelineResult> results;
  for (std::size_t d = 0; d < deadlines_s.size(); ++d) {
    StageSearch search(*this, deadlines_s[d], prices ? &(*prices)[d] : nullptr, context);
    for (const Chosen& chosen : one_clock_) search.consider(chosen);
    bool exact = granularity == Granularity::run;
    if (!exact) {
      search.begin();
      search.improve();
      exact = search.run();
    }
    std::optional<PipelinePlan> plan;
    if (search.best()) plan = plan_of(*search.best(), search.best()->size());
    PipelineResult& result =
        results.emplace_back(planner_.result_of(deadlines_s[d], std::move(plan), search.bound_j()));
    result.granularity = granularity;
    if (!exact || !result.found()) continue;
    result.status = SolveStatus::optimal;
    result.lower_bound_j = result.energy_j;
    result.gap_frac = 0.0;
  }
  return results;
}

}  // namespace rubato
