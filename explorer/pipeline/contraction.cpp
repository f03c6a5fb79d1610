#include "explorer/pipeline/contraction.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

// Activities and the arcs into each.
struct ArcsInto {
  std::vector<std::uint32_t> first;
  std::vector<Dependency> arcs;
  std::vector<std::uint32_t> number;  // of each arc in the problem
  std::vector<std::uint32_t> order;   // topological order of the activities
};

std::vector<std::uint32_t> topological(const CrashProblem& problem) {
  const std::size_t count = problem.curve_of_activity.size();
  std::vector<std::uint32_t> waiting_for(count, 0), first_out(count + 1, 0);
  for (const Dependency& d : problem.dependencies) {
    ++waiting_for[index(d.to)];
    ++first_out[index(d.from) + 1];
  }
  std::partial_sum(first_out.begin(), first_out.end(), first_out.begin());
  std::vector<std::uint32_t> out(problem.dependencies.size());
  std::vector<std::uint32_t> next(first_out.begin(), first_out.end() - 1);
  for (const Dependency& d : problem.dependencies) out[next[index(d.from)]++] = d.to.value;
  std::vector<std::uint32_t> order;
  order.reserve(count);
  for (std::uint32_t a = 0; a < count; ++a) {
    if (waiting_for[a] == 0) order.push_back(a);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::uint32_t e = first_out[order[i]]; e < first_out[order[i] + 1]; ++e) {
      if (--waiting_for[out[e]] == 0) order.push_back(out[e]);
    }
  }
  if (order.size() < count) throw DataError("activities wait for each other");
  return order;
}

ArcsInto arcs_into(const CrashProblem& problem) {
  const std::size_t count = problem.curve_of_activity.size();
  ArcsInto in{std::vector<std::uint32_t>(count + 1, 0), {}, {}, topological(problem)};
  for (const Dependency& d : problem.dependencies) ++in.first[index(d.to) + 1];
  std::partial_sum(in.first.begin(), in.first.end(), in.first.begin());
  in.arcs.resize(problem.dependencies.size());
  in.number.resize(problem.dependencies.size());
  std::vector<std::uint32_t> next(in.first.begin(), in.first.end() - 1);
  for (std::uint32_t number = 0; number < problem.dependencies.size(); ++number) {
    const Dependency& d = problem.dependencies[number];
    const std::uint32_t at = next[index(d.to)]++;
    in.arcs[at] = d;
    in.number[at] = number;
  }
  return in;
}

}  // namespace

Contraction::Contraction(const CrashProblem& problem) {
  if (problem.curve_of_activity.empty()) throw DataError("there is no activity to plan");
  for (const std::uint32_t curve : problem.curve_of_activity) {
    if (curve >= problem.curves.size() || problem.curves[curve].empty())
      throw DataError(fmt::format("an activity has no curve {}", curve));
  }
  find_waits(problem);
  find_rows(problem);
  connect_rows();
}

// Keeps, of all waits of an activity, those that can be the last to end.
void Contraction::keep_binding(std::vector<Wait>& waits, const Ends& ends) const {
  for (Wait& wait : waits) {
    if (kept_[wait.from]) continue;
    wait.lag_s += ends.stands_for[wait.from].lag_s;
    wait.from = ends.stands_for[wait.from].from;
  }
  // The wait that ends last with everything at its fastest stays, and those that can end later.
  const auto ready_s = [&](const Wait& wait) { return ends.first_s[wait.from] + wait.lag_s; };
  const auto sure = std::ranges::max_element(waits, {}, ready_s);
  std::iter_swap(waits.begin(), sure);
  const double sure_s = ready_s(waits.front());
  waits.erase(std::remove_if(
                  waits.begin() + 1, waits.end(),
                  [&](const Wait& wait) { return ends.last_s[wait.from] + wait.lag_s <= sure_s; }),
              waits.end());
  // Of several waits for one activity the longest is enough.
  std::ranges::sort(waits, [](const Wait& a, const Wait& b) {
    return std::pair(a.from, -a.lag_s) < std::pair(b.from, -b.lag_s);
  });
  waits.erase(std::unique(waits.begin(), waits.end(),
                          [](const Wait& a, const Wait& b) { return a.from == b.from; }),
              waits.end());
}

void Contraction::set_ends(std::uint32_t activity, const CostCurve& curve, Ends& ends) const {
  double first_s = 0.0, last_s = 0.0;
  for (const Wait& wait : waits_[activity]) {
    first_s = std::max(first_s, ends.first_s[wait.from] + wait.lag_s);
    last_s = std::max(last_s, ends.last_s[wait.from] + wait.lag_s);
  }
  ends.first_s[activity] = first_s + curve.front().time_s;
  ends.last_s[activity] = last_s + curve.back().time_s;
}

// Finds the waits that matter, activity by activity. Two activities without a duration are added.
// The origin is what activities without another wait follow. The end waits for all activities that
// nothing follows.
void Contraction::find_waits(const CrashProblem& problem) {
  const auto count = static_cast<std::uint32_t>(problem.curve_of_activity.size());
  const std::uint32_t origin = count, last = count + 1;
  const ArcsInto in = arcs_into(problem);
  Ends ends{std::vector<double>(count + 2, 0.0), std::vector<double>(count + 2, 0.0),
            std::vector<Wait>(count + 2)};
  std::vector<bool> followed(count, false);
  for (const Dependency& d : problem.dependencies) followed[index(d.from)] = true;
  waits_.resize(count + 2);
  wait_of_gone_.resize(count);
  dependencies_ = problem.dependencies.size();
  kept_.assign(count + 2, true);
  fixed_s_.resize(count);
  std::vector<Wait> of_the_end;
  for (const std::uint32_t a : in.order) {
    std::vector<Wait>& waits = waits_[a];
    for (std::uint32_t e = in.first[a]; e < in.first[a + 1]; ++e) {
      const std::uint32_t from = in.arcs[e].from.value;
      waits.push_back({from, in.arcs[e].lag_s, from, in.number[e]});
    }
    if (waits.empty()) waits.push_back({origin, 0.0, origin, none});
    keep_binding(waits, ends);
    const CostCurve& curve = problem.curves[problem.curve_of_activity[a]];
    fixed_s_[a] = curve.front().time_s;
    if (curve.size() == 1 && waits.size() == 1) {
      ends.stands_for[a] = {waits.front().from, waits.front().lag_s + fixed_s_[a]};
      wait_of_gone_[a] = waits.front();
      gone_.push_back(a);
      kept_[a] = false;
      cost_of_gone_j_ += curve.front().cost_j;
      waits.clear();
    } else {
      set_ends(a, curve, ends);
    }
    if (!followed[a]) of_the_end.push_back({a, 0.0, a, none});
  }
  keep_binding(of_the_end, ends);
  waits_[last] = std::move(of_the_end);
}

// Rows begin where an activity waits for several others, or for one that others wait for too.
void Contraction::find_rows(const CrashProblem& problem) {
  const auto nodes = static_cast<std::uint32_t>(waits_.size());
  std::vector<std::uint32_t> followers(nodes, 0), follower(nodes, none);
  for (std::uint32_t a = 0; a < nodes; ++a) {
    for (const Wait& wait : waits_[a]) {
      ++followers[wait.from];
      follower[wait.from] = a;
    }
  }
  const auto continues = [&](std::uint32_t a) {
    return waits_[a].size() == 1 && followers[waits_[a].front().from] == 1;
  };
  row_of_.assign(nodes, none);
  for (std::uint32_t a = 0; a < nodes; ++a) {
    if (!kept_[a] || continues(a)) continue;
    Row row;
    for (std::uint32_t at = a;;) {
      row.activities.push_back(at);
      if (followers[at] != 1 || !continues(follower[at])) break;
      at = follower[at];
      row.lag_s += waits_[at].front().lag_s;
    }
    add_row(problem, std::move(row));
  }
}

void Contraction::add_row(const CrashProblem& problem, Row row) {
  const auto number = static_cast<std::uint32_t>(rows_.size());
  row.fastest_s = row.lag_s;
  double cost_j = 0.0;
  for (const std::uint32_t a : row.activities) {
    row_of_[a] = number;
    if (a >= fixed_s_.size()) continue;  // origin and end
    const CostCurve& curve = problem.curves[problem.curve_of_activity[a]];
    row.fastest_s += curve.front().time_s;
    cost_j += curve.front().cost_j;
    for (std::size_t k = 1; k < curve.size(); ++k) {
      row.segments.push_back(
          {a, curve[k].time_s - curve[k - 1].time_s, curve[k - 1].cost_j - curve[k].cost_j});
    }
  }
  sort_down_by(row.segments, &Segment::slope_w);
  CostCurve curve{{row.fastest_s, cost_j}};
  constexpr double same_slope = 1e-12;  // slopes of equal kernels differ by less than this share
  double slope_w = 0.0;
  for (const Segment& segment : row.segments) {
    const CurvePoint next{curve.back().time_s + segment.time_s,
                          curve.back().cost_j - segment.saved_j};
    if (curve.size() > 1 && segment.slope_w() >= slope_w * (1.0 - same_slope)) {
      curve.back() = next;
    } else {
      curve.push_back(next);
      slope_w = segment.slope_w();
    }
  }
  small_.curve_of_activity.push_back(static_cast<std::uint32_t>(small_.curves.size()));
  small_.curves.push_back(std::move(curve));
  rows_.push_back(std::move(row));
}

void Contraction::connect_rows() {
  for (const Row& row : rows_) {
    const std::uint32_t first = row.activities.front();
    for (const Wait& wait : waits_[first]) {
      small_.dependencies.push_back(
          {PassId{row_of_[wait.from]}, PassId{row_of_[first]}, wait.lag_s});
    }
  }
}

Frontier Contraction::expanded(Frontier frontier) const {
  frontier.least_cost_j += cost_of_gone_j_;
  for (FrontierVertex& vertex : frontier.vertices) {
    vertex.cost_j += cost_of_gone_j_;
    vertex.lower_bound_j += cost_of_gone_j_;
  }
  for (FrontierPlan& plan : frontier.plans) expand(plan);
  return frontier;
}

void Contraction::expand(FrontierPlan& plan) const {
  if (plan.duration_s.empty()) return;  // interrupted before its time
  std::vector<double> arc_flow_w = arc_flows_w(plan);
  std::vector<double> duration_s = fixed_s_, flow_w(fixed_s_.size(), 0.0);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    double left_s = plan.duration_s[r] - row.fastest_s;
    for (const Segment& segment : row.segments) {
      if (left_s <= 0.0) break;
      duration_s[segment.activity] += std::min(segment.time_s, left_s);
      left_s -= segment.time_s;
    }
    for (const std::uint32_t a : row.activities) {
      if (a < flow_w.size()) flow_w[a] = plan.flow_w[r];
    }
    plan.lag_cost_j += plan.flow_w[r] * row.lag_s;
  }
  plan.duration_s = std::move(duration_s);
  plan.flow_w = std::move(flow_w);
  plan.arc_flow_w = std::move(arc_flow_w);
  plan.cost_j += cost_of_gone_j_;
  plan.lower_bound_j += cost_of_gone_j_;
}

// Flow of the dependencies of the whole problem. The flow along a wait goes along the dependency
// that it stands for, and on through the activities that went before it.
std::vector<double> Contraction::arc_flows_w(const FrontierPlan& plan) const {
  std::vector<double> flow_w(dependencies_, 0.0), through_w(kept_.size(), 0.0);
  const auto add = [&](const Wait& wait, double more_w) {
    if (wait.dependency != none) flow_w[wait.dependency] += more_w;
    if (!kept_[wait.by]) through_w[wait.by] += more_w;
  };
  std::size_t between = 0;  // number of the arc between rows
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const std::vector<std::uint32_t>& row = rows_[r].activities;
    for (const Wait& wait : waits_[row.front()]) add(wait, plan.arc_flow_w[between++]);
    for (std::size_t k = 1; k < row.size(); ++k) add(waits_[row[k]].front(), plan.flow_w[r]);
  }
  for (auto a = gone_.rbegin(); a != gone_.rend(); ++a) add(wait_of_gone_[*a], through_w[*a]);
  return flow_w;
}

}  // namespace rubato
