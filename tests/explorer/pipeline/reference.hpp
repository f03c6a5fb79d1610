#pragma once
// The published profiles, the reference frontiers of lowtime, and all plans of small pipelines.

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "explorer/pipeline/frontier.hpp"
#include "sim/pipeline_run.hpp"
#include "tests/paths.hpp"
#include "traces/pipeline/profile.hpp"

namespace rubato {

inline constexpr double a100_blocked_w = 83.64;  // SOSP'24 artifact of Perseus
inline constexpr double a40_blocked_w = 70.38;

/// Column of numbers of a CSV file.
inline std::vector<double> column_of(const CsvTable& table, std::string_view name) {
  std::vector<double> values;
  ErrorList errors;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    values.push_back(*table.number(row, table.column(name), Range::any, errors));
  }
  return values;
}

/// One folder of reference results.
struct Reference {
  std::string folder;
  std::uint32_t stages = 8;
  std::uint32_t microbatches = 12;

  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return measured_data("perseus/lowtime_" + folder) / name;
  }
  [[nodiscard]] PipelineSchedule schedule() const {
    return read_schedule(file("ops.csv"), file("edges.csv"));
  }
  [[nodiscard]] std::vector<std::uint32_t> stage_map() const {
    return stages == 4 ? std::vector<std::uint32_t>{0, 1, 6, 7} : std::vector<std::uint32_t>{};
  }
};

inline const std::vector<Reference>& references() {
  static const std::vector<Reference> list{{"S4_M4", 4, 4}, {"S8_M12", 8, 12}, {"S8_M24", 8, 24}};
  return list;
}

inline PipelineProfile gpt3_a100() {
  return read_pipeline_profile(source_dir() / "docs/examples/gpt3-175b-a100.csv");
}

/// Length of the longest path through the graph, lags included: the makespan, s.
/// @param duration_s  shape [activities]
inline double longest_path_s(const CrashProblem& problem, std::span<const double> duration_s) {
  const std::size_t activities = problem.curve_of_activity.size();
  std::vector<std::vector<std::pair<std::uint32_t, double>>> next(activities);
  std::vector<std::uint32_t> waiting_for(activities);
  for (const Dependency& d : problem.dependencies) {
    next[index(d.from)].emplace_back(d.to.value, d.lag_s);
    ++waiting_for[index(d.to)];
  }
  std::vector<double> start_s(activities);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t a = 0; a < activities; ++a) {
    if (waiting_for[a] == 0) ready.push_back(a);
  }
  double end_s = 0.0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const std::uint32_t a = ready[i];
    const double done_s = start_s[a] + duration_s[a];
    end_s = std::max(end_s, done_s);
    for (const auto& [to, lag_s] : next[a]) {
      start_s[to] = std::max(start_s[to], done_s + lag_s);
      if (--waiting_for[to] == 0) ready.push_back(to);
    }
  }
  return end_s;
}

/// Cost on the line between the vertices of a frontier around a time.
inline double cost_on(const Frontier& frontier, double time_s) {
  if (time_s >= frontier.vertices.front().time_s) return frontier.vertices.front().cost_j;
  for (std::size_t i = 1; i < frontier.vertices.size(); ++i) {
    const FrontierVertex& fast = frontier.vertices[i];
    const FrontierVertex& slow = frontier.vertices[i - 1];
    if (time_s < fast.time_s) continue;
    return slow.cost_j +
           (fast.cost_j - slow.cost_j) * (slow.time_s - time_s) / (slow.time_s - fast.time_s);
  }
  return frontier.vertices.back().cost_j;
}

/// Calls `visit` with every plan there is.
template <class Visit>
void for_each_plan(const PipelineWork& work, Visit visit) {
  PipelinePlan plan = highest_clocks(work);
  std::size_t i = 0;
  while (i < plan.option_of_pass.size()) {
    visit(std::as_const(plan));
    // Counts up in the mixed base of the numbers of options; i is beyond the end after the last.
    for (i = 0; i < plan.option_of_pass.size(); ++i) {
      OptionId& option = plan.option_of_pass[i];
      if (index(option) + 1 < work.type_of(id_at<PassId>(i)).options.size()) {
        option = id_at<OptionId>(index(option) + 1);
        break;
      }
      option = OptionId{0};
    }
  }
}

}  // namespace rubato
