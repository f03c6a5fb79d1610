#include "explorer/pipeline/run_search.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/numbers.hpp"

namespace rubato {

namespace {

// A move must save this share of a stage's cost: below it, sums of costs are noise.
constexpr double least_run_gain = 1e-12;

// A plan that stays late is searched again at a penalty this many times as high.
constexpr double higher_penalty = 4.0;
constexpr int penalties = 6;

// Flow from the pass before it on its stage to a pass, and the longest lag between them.
struct OrderPrice {
  double flow_w = 0.0, lag_s = 0.0;
};

std::vector<OrderPrice> order_prices(const StageClocks& clocks, const FrontierPlan& prices) {
  const PipelineSchedule& schedule = clocks.work().schedule;
  std::vector<std::uint32_t> before(schedule.passes.size(), ~std::uint32_t{0});
  for (std::size_t stage = 0; stage < clocks.stages(); ++stage) {
    const std::vector<PassId>& row = clocks.row(stage);
    for (std::size_t i = 1; i < row.size(); ++i) before[index(row[i])] = row[i - 1].value;
  }
  std::vector<OrderPrice> found(schedule.passes.size());
  for (std::size_t d = 0; d < schedule.dependencies.size(); ++d) {
    const Dependency& dependency = schedule.dependencies[d];
    if (before[index(dependency.to)] != dependency.from.value) continue;
    OrderPrice& price = found[index(dependency.to)];
    price.flow_w += prices.arc_flow_w[d];
    price.lag_s = std::max(price.lag_s, dependency.lag_s);
  }
  return found;
}

// The dynamic program of one stage. Its states are settings: value_ is the least total so far with
// each of them in force.
class StageProgram {
 public:
  StageProgram(const StageClocks& clocks, std::size_t stage, const FrontierPlan& prices,
               const std::vector<OrderPrice>& order)
      : clocks_(clocks), stage_(stage), settings_(clocks.settings(stage)) {
    const std::vector<PassId>& row = clocks.row(stage);
    value_.assign(settings_, 0.0);
    from_.resize(row.size() * settings_);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) change(i, order[index(row[i])]);
      for (std::size_t k = 0; k < settings_; ++k) {
        const SettingCost& cost = clocks.cost(row[i], id_at<SettingId>(k));
        value_[k] += cost.cost_j + prices.flow_w[index(row[i])] * cost.time_s;
      }
    }
  }

  [[nodiscard]] double least_j() const { return *std::ranges::min_element(value_); }

  void trace_back(StagePlan& plan) const {
    auto k = static_cast<std::size_t>(std::ranges::min_element(value_) - value_.begin());
    const std::vector<PassId>& row = clocks_.row(stage_);
    for (std::size_t i = row.size(); i-- > 0;) {
      plan[index(row[i])] = id_at<SettingId>(k);
      k = from_[i * settings_ + k];
    }
  }

 private:
  // Before a pass, each setting stays in force or takes over from another one.
  void change(std::size_t i, const OrderPrice& price) {
    std::uint32_t* from = from_.data() + i * settings_;
    const std::vector<double> before = value_;
    const auto best = static_cast<std::size_t>(std::ranges::min_element(before) - before.begin());
    for (std::size_t k = 0; k < settings_; ++k) {
      from[k] = static_cast<std::uint32_t>(k);
      // Without a memory clock of its own all changes are alike, and the best one is enough.
      const std::size_t first = clocks_.switching().mem ? 0 : best;
      const std::size_t last = clocks_.switching().mem ? settings_ - 1 : best;
      for (std::size_t j = first; j <= last; ++j) {
        if (j == k) continue;
        const SwitchCost cost = clocks_.change(stage_, id_at<SettingId>(j), id_at<SettingId>(k));
        const double changed_j =
            before[j] + cost.energy_j + price.flow_w * std::max(0.0, cost.stall_s - price.lag_s);
        if (changed_j >= value_[k]) continue;
        value_[k] = changed_j;
        from[k] = static_cast<std::uint32_t>(j);
      }
    }
  }

  const StageClocks& clocks_;
  std::size_t stage_, settings_;
  std::vector<double> value_;
  std::vector<std::uint32_t> from_;  // shape [passes of the stage x settings]
};

// The search begins from so many starts, those of least value.
constexpr std::size_t starts_searched = 4;

// Passes that the search may look at from one start at one penalty.
constexpr double search_effort = 2e7;

}  // namespace

PricedPlan price_runs(const StageClocks& clocks, const FrontierPlan& prices) {
  PricedPlan priced{StagePlan(prices.duration_s.size()), 0.0, prices.price_w};
  const std::vector<OrderPrice> order = order_prices(clocks, prices);
  CompensatedSum least_j;
  least_j.add(prices.lag_cost_j);
  for (std::size_t stage = 0; stage < clocks.stages(); ++stage) {
    const StageProgram program(clocks, stage, prices, order);
    least_j.add(program.least_j());
    program.trace_back(priced.plan);
  }
  priced.least_j = least_j.value();
  return priced;
}

RunSearch::RunSearch(const StageClocks& clocks, double deadline_s, double price_w, double effort)
    : clocks_(clocks),
      deadline_s_(deadline_s),
      penalty_w_(price_w),
      effort_(effort),
      stage_cost_j_(clocks.stages()),
      end_s_(clocks.work().schedule.passes.size()),
      trial_end_s_(end_s_.size()) {}

void RunSearch::measure() {
  time_s_ = clocks_.time_s(plan_, end_s_);
  latest_s_ = clocks_.latest_end_s(plan_, time_s_);
  for (std::size_t stage = 0; stage < clocks_.stages(); ++stage) {
    stage_cost_j_[stage] = clocks_.stage_cost_j(stage, plan_);
  }
}

double RunSearch::value(const StagePlan& plan) {
  return clocks_.cost_j(plan) +
         penalty_w_ * std::max(0.0, clocks_.time_s(plan, trial_end_s_) - deadline_s_);
}

std::optional<StagePlan> RunSearch::improve(StagePlan start, Clocks among, Order order) {
  among_ = among;
  order_ = order;
  plan_ = std::move(start);
  const double first_penalty_w = penalty_w_;
  for (int i = 0; i < penalties; ++i, penalty_w_ *= higher_penalty) {
    spent_ = 0.0;
    measure();
    while (spent_ < effort_ && descend_once()) {
    }
    if (time_s_ <= deadline_s_) break;
  }
  penalty_w_ = first_penalty_w;
  if (time_s_ > deadline_s_) return std::nullopt;
  return plan_;
}

bool RunSearch::descend_once() {
  bool better = false;
  for (std::size_t stage = 0; stage < clocks_.stages(); ++stage) better |= try_stage(stage);
  return better;
}

bool RunSearch::try_stage(std::size_t stage) {
  bool better = try_kinds(stage);
  const std::vector<PassId>& row = clocks_.row(stage);
  for (Span run; run.first < row.size(); run.first = run.last + 1) {
    if (spent_ >= effort_) break;
    const SettingId setting = plan_[index(row[run.first])];
    run.last = run.first;
    while (run.last + 1 < row.size() && plan_[index(row[run.last + 1])] == setting) ++run.last;
    better |= try_run(stage, run);
  }
  return better;
}

std::vector<SettingId> RunSearch::around(std::size_t stage, SettingId from) const {
  std::vector<SettingId> list = clocks_.around(stage, from, among_);
  if (order_ == Order::near_first) std::ranges::reverse(list);
  return list;
}

bool RunSearch::is_critical(std::size_t stage, const Span& run) const {
  constexpr double tolerance = 1e-9;  // more than the rounding of sums of a thousand terms
  const std::vector<PassId>& row = clocks_.row(stage);
  for (std::size_t i = run.first; i <= run.last; ++i) {
    if (latest_s_[index(row[i])] - end_s_[index(row[i])] <= tolerance * time_s_) return true;
  }
  return false;
}

bool RunSearch::try_run(std::size_t stage, const Span& run) {
  const std::vector<PassId>& row = clocks_.row(stage);
  if (time_s_ > deadline_s_ && !is_critical(stage, run)) return false;
  const auto all = [](std::size_t) { return true; };
  const SettingId now = plan_[index(row[run.first])];
  std::vector<SettingId> list;
  if (run.first > 0) list.push_back(plan_[index(row[run.first - 1])]);
  if (run.last + 1 < row.size()) list.push_back(plan_[index(row[run.last + 1])]);
  const std::size_t beside = list.size();
  for (const SettingId near : around(stage, now)) list.push_back(near);
  const std::size_t middle = (run.first + run.last) / 2;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (try_move(stage, run, list[i], all)) return true;
    if (run.first == run.last) continue;
    std::vector<Span> parts{{run.first, run.first}, {run.last, run.last}};
    if (middle > run.first) parts.push_back({run.first, middle});
    if (middle + 1 < run.last) parts.push_back({middle + 1, run.last});
    for (const Span& part : parts) {
      if (try_move(stage, part, list[i], all)) return true;
    }
    if (i < beside) continue;
    for (std::size_t pass = run.first + 1; pass < run.last; ++pass) {
      if (try_move(stage, {pass, pass}, list[i], all)) return true;
    }
  }
  return false;
}

// Tries to move all passes of a stage that are of one type and run at one setting.
bool RunSearch::try_kinds(std::size_t stage) {
  const std::vector<PassId>& row = clocks_.row(stage);
  const auto& type_of = clocks_.work().type_of_pass;
  std::vector<std::pair<PassTypeId, SettingId>> known;
  for (const PassId pass : row) {
    const std::pair key(type_of[index(pass)], plan_[index(pass)]);
    if (std::ranges::find(known, key) == known.end()) known.push_back(key);
  }
  bool better = false;
  for (const auto& [type, setting] : known) {
    std::vector<SettingId> list = around(stage, setting);
    for (const auto& other : known) {
      if (other.second != setting) list.push_back(other.second);
    }
    const PassTypeId moved = type;
    const SettingId from = setting;
    for (const SettingId to : list) {
      const auto chosen = [&](std::size_t i) {
        return type_of[index(row[i])] == moved && plan_[index(row[i])] == from;
      };
      if (!try_move(stage, {0, row.size() - 1}, to, chosen)) continue;
      better = true;
      break;
    }
  }
  return better;
}

// Moves the chosen passes of a span to a setting if that makes the value smaller.
template <class Chosen>
bool RunSearch::try_move(std::size_t stage, const Span& span, SettingId to, Chosen chosen) {
  const std::vector<PassId>& row = clocks_.row(stage);
  std::vector<std::pair<PassId, SettingId>> before;
  for (std::size_t i = span.first; i <= span.last; ++i) {
    if (plan_[index(row[i])] != to && chosen(i)) before.emplace_back(row[i], plan_[index(row[i])]);
  }
  if (before.empty()) return false;
  for (const auto& [pass, setting] : before) plan_[index(pass)] = to;
  const auto undo = [&] {
    for (const auto& [pass, setting] : before) plan_[index(pass)] = setting;
    return false;
  };
  spent_ += static_cast<double>(row.size());
  const double late_s = std::max(0.0, time_s_ - deadline_s_);
  const double cost_j = clocks_.stage_cost_j(stage, plan_);
  const double gain_j = stage_cost_j_[stage] - cost_j;
  const double least_j = least_run_gain * std::abs(stage_cost_j_[stage]);
  if (!(gain_j + penalty_w_ * late_s > least_j)) return undo();
  spent_ += static_cast<double>(plan_.size());
  const double latest_s = deadline_s_ + late_s + gain_j / penalty_w_;
  const double time_s = clocks_.time_s(plan_, trial_end_s_, latest_s);
  const double later_s = std::max(0.0, time_s - deadline_s_) - late_s;
  if (!(gain_j - penalty_w_ * later_s > least_j)) return undo();
  time_s_ = time_s;
  end_s_.swap(trial_end_s_);
  stage_cost_j_[stage] = cost_j;
  if (time_s_ > deadline_s_) latest_s_ = clocks_.latest_end_s(plan_, time_s_);
  return true;
}

FoundRuns search_runs(const StageClocks& clocks, const RunQuestion& question,
                      const std::vector<StagePlan>& starts, const RunContext& context) {
  RunSearch search(clocks, question.target_s, question.price_w, search_effort);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < starts.size(); ++i) order.emplace_back(search.value(starts[i]), i);
  std::ranges::sort(order);
  FoundRuns best;
  double best_j = std::numeric_limits<double>::infinity();
  std::vector<double> end_s(clocks.work().schedule.passes.size());
  const auto consider = [&](const StagePlan& plan) {
    const double time_s = clocks.time_s(plan, end_s);
    const double total_j = clocks.cost_j(plan) + question.waiting_w * time_s;
    if (time_s > question.limit_s || total_j >= best_j) return;
    if (!question.can_be_set(plan)) {
      best.refused = true;
      return;
    }
    best_j = total_j;
    best.plan = plan;
  };
  for (const StagePlan& start : starts) consider(start);
  const double start_j = best_j;
  bool found = false;
  for (const auto clocks_first : {RunSearch::Order::far_first, RunSearch::Order::near_first}) {
    // Near ones rarely find more: one start, unless nothing was found.
    const bool nothing_yet = !(best_j < start_j);
    const std::size_t most = nothing_yet ? starts_searched : 1;
    for (std::size_t i = 0; i < order.size() && (i < most || !found); ++i) {
      if (context.stop_requested()) return best;
      if (i > 0 && order[i].first == order[i - 1].first) continue;  // the same plan, as a rule
      // Few clocks first: their steps are large enough to be worth two changes.
      const StagePlan& start = starts[order[i].second];
      const auto roughly = search.improve(start, Clocks::few, clocks_first);
      const StagePlan& from = roughly ? *roughly : start;
      const auto improved = search.improve(from, Clocks::all, RunSearch::Order::far_first);
      found = found || roughly || improved;
      if (roughly) consider(*roughly);
      if (improved) consider(*improved);
    }
  }
  if (found || question.target_s >= question.limit_s) return best;
  RunQuestion later = question;
  later.target_s = question.limit_s;
  return search_runs(clocks, later, starts, context);
}

std::optional<StagePlan> cheapest_of(const StageClocks& clocks, double waiting_w,
                                     std::optional<StagePlan> a, std::optional<StagePlan> b) {
  if (!a || !b) return a ? std::move(a) : std::move(b);
  std::vector<double> end_s(clocks.work().schedule.passes.size());
  const auto total_j = [&](const StagePlan& plan) {
    return clocks.cost_j(plan) + waiting_w * clocks.time_s(plan, end_s);
  };
  return total_j(*b) < total_j(*a) ? std::move(b) : std::move(a);
}

}  // namespace rubato
