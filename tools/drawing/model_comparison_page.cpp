#include "tools/drawing/model_comparison_page.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/drawing/page_parts.hpp"

namespace rubato {

namespace {

std::string errors_table(const ModelComparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  std::string assumed;
  for (const ComparedModel& model : comparison.models) {
    const ErrorSummary errors = summarise("all", model.held_out);
    const bool fitted = model.fit.most_points > 0;
    const auto count = [&](std::size_t n) { return fitted ? std::to_string(n) : "-"; };
    rows.push_back({page_text(model.name), count(model.fit.most_points), count(model.fit.own),
                    count(model.fit.shared), std::to_string(errors.time.count),
                    fmt::format("{:.2f}", errors.time.mean),
                    fmt::format("{:.2f}", errors.power.mean),
                    fmt::format("{:.2f}", errors.energy.mean)});
    if (!model.fit.assumed.empty()) {
      assumed +=
          fmt::format("<li>{}: {}</li>\n", page_text(model.name), page_text(model.fit.assumed));
    }
  }
  return html_table({"model", "fitted to", "numbers each", "shared", "tested", "time %", "power %",
                     "energy %"},
                    rows) +
         fmt::format("<ul>\n{}</ul>\n", assumed);
}

std::string regret_table(const ModelComparison& comparison,
                         std::span<const std::vector<RegretRow>> regrets) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t m = 0; m < regrets.size(); ++m) {
    for (const RegretRow& row : regrets[m]) {
      rows.push_back(
          {page_text(comparison.models[m].name), std::string(name_of(row.steps)),
           fmt::format("{:g}", percent * row.slack_frac),
           fmt::format("{} of {}", row.late, row.plans), fmt::format("{:+.2f}", row.mean.time_pct),
           fmt::format("{:.2f}", row.mean.late_pct), fmt::format("{:+.2f}", row.mean.energy_pct),
           fmt::format("{:+.2f}", row.mean.best_energy_pct),
           fmt::format("{:.2f}", row.mean.regret_pct),
           fmt::format("{:.2f}", row.worst_regret_pct)});
    }
  }
  return html_table({"model", "plans", "slack %", "late", "time %", "late by %", "energy %",
                     "best %", "regret", "worst"},
                    rows);
}

}  // namespace

Answer comparison_answer(const ModelComparison& comparison) {
  std::vector<std::pair<double, std::string>> errors;
  for (const ComparedModel& model : comparison.models) {
    const ErrorSummary summary = summarise("all", model.held_out);
    if (summary.energy.count > 0) errors.emplace_back(summary.energy.mean, model.name);
  }
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  Answer answer;
  answer.say("Least error of energy: ")
      .lead(fmt::format("{}, {:.2f} %", errors.front().second, errors.front().first));
  for (std::size_t i = 1; i < errors.size(); ++i)
    answer.say(fmt::format(", {} {:.2f} %", errors[i].second, errors[i].first));
  return answer.say(".");
}

namespace {

std::string plots(const ModelComparison& comparison) {
  constexpr double tolerance = 0.05;
  std::string html;
  for (const ComparedModel& model : comparison.models) {
    std::vector<MeasuredPair> energies;
    for (const ValidatedPoint& p : model.held_out) {
      energies.push_back({*p.measured.time_s * *p.measured.power_w, p.predicted.energy_j,
                          p.predicted.power_limited, p.kernel, p.kernel});
    }
    html += agreement_plot("Energy, " + page_text(model.name), "J", energies, tolerance);
  }
  return html;
}

}  // namespace

std::string model_comparison_page(const GpuSpec& spec, const ModelComparison& comparison,
                                  const ComparisonOptions& options,
                                  std::span<const std::vector<RegretRow>> regrets) {
  std::string body = page_section(
      "How sure this is",
      facts_table({{"Tested on",
                    fmt::format("{} kernels, each model fitted to {} points of each{}, tested on "
                                "the others",
                                comparison.sweep.kernels.size(), options.points,
                                options.leave_kernels_out ? ", the GPU to other kernels" : "")},
                   {"Measurements", page_text(comparison.sweep.file)}}));
  body += page_section("Predicted over measured energy",
                       fmt::format("<p>The band is 5 %; orange: at the power limit.</p>\n<div "
                                   "class=\"plots\">\n{}</div>\n",
                                   plots(comparison)));
  body += page_section(
      "What planning with each costs",
      "<p>Time and energy of the plan as measured, against the default clock; late: takes longer "
      "than the slack allows. Best: the best plan within the slack. Regret: points of energy that "
      "the best plan in the same time saves more. Alone: each kernel a step of its own, means; "
      "one-clock, per-kernel: one step of all kernels.</p>\n" +
          regret_table(comparison, regrets));
  body += page_section("Absolute errors", errors_table(comparison));
  return whole_page({"Models beside each other", spec.title, comparison_answer(comparison), ""},
                    body);
}

}  // namespace rubato
