#include "tools/drawing/model_comparison_page.hpp"

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/drawing/page_parts.hpp"

namespace rubato {

namespace {

std::string errors_rows(const ModelComparison& comparison) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>model</th><th>fitted to</th><th>numbers "
      "each</th><th>shared</th><th>tested</th><th>time %</th><th>power %</th><th>energy %</th>"
      "</tr></thead><tbody>\n";
  for (const ComparedModel& model : comparison.models) {
    const ErrorSummary errors = summarise("all", model.held_out);
    const std::string fit =
        model.fit.most_points > 0
            ? fmt::format("<td>{}</td><td>{}</td><td>{}</td>", model.fit.most_points, model.fit.own,
                          model.fit.shared)
            : "<td>-</td><td>-</td><td>-</td>";
    html += fmt::format(
        "<tr><td>{}</td>{}<td>{}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td></tr>\n",
        page_text(model.name), fit, errors.time.count, errors.time.mean, errors.power.mean,
        errors.energy.mean);
  }
  html += "</tbody></table></div>\n<ul>\n";
  for (const ComparedModel& model : comparison.models) {
    if (!model.fit.assumed.empty())
      html += fmt::format("<li>{}: {}</li>\n", page_text(model.name), page_text(model.fit.assumed));
  }
  return html + "</ul>\n";
}

std::string regret_rows(const ModelComparison& comparison,
                        std::span<const std::vector<RegretRow>> regrets) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>model</th><th>plans</th><th>slack %</th>"
      "<th>late</th><th>time %</th><th>late by %</th><th>energy %</th><th>best %</th>"
      "<th>regret</th><th>worst</th></tr></thead><tbody>\n";
  for (std::size_t m = 0; m < regrets.size(); ++m) {
    for (const RegretRow& row : regrets[m]) {
      html += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{:g}</td><td>{} of {}</td><td>{:+.2f}</td><td>{:.2f}</td>"
          "<td>{:+.2f}</td><td>{:+.2f}</td><td>{:.2f}</td><td>{:.2f}</td></tr>\n",
          page_text(comparison.models[m].name), name_of(row.steps), percent * row.slack_frac,
          row.late, row.plans, row.mean.time_pct, row.mean.late_pct, row.mean.energy_pct,
          row.mean.best_energy_pct, row.mean.regret_pct, row.worst_regret_pct);
    }
  }
  return html + "</tbody></table></div>\n";
}

std::string plots(const ModelComparison& comparison) {
  constexpr double tolerance = 0.05;
  std::string html;
  for (const ComparedModel& model : comparison.models) {
    std::vector<MeasuredPair> energies;
    for (const ValidatedPoint& p : model.held_out) {
      energies.push_back({*p.measured.time_s * *p.measured.power_w, p.predicted.energy_j,
                          p.predicted.power_limited, p.kernel});
    }
    html += agreement_plot("Energy, " + page_text(model.name), "J", energies, tolerance);
  }
  return html;
}

}  // namespace

std::string model_comparison_page(const GpuSpec& spec, const ModelComparison& comparison,
                                  const ComparisonOptions& options,
                                  std::span<const std::vector<RegretRow>> regrets) {
  const std::string body = fmt::format(
      "<p>{}: {} kernels, each model fitted to {} points of each{}, tested on the others.</p>\n"
      "<h2>What planning with each costs</h2>\n"
      "<p>Time and energy of the plan as measured, against the default clock; late: takes longer "
      "than the slack allows. Best: the best plan within the slack. Regret: points of energy that "
      "the best plan in the same time saves more. Alone: each kernel a step of its own, means; "
      "one-clock, per-kernel: one step of all kernels.</p>\n{}"
      "<h2>Absolute errors</h2>\n{}<p>The band is 5 %; orange: at the power limit.</p>\n"
      "<div class=\"plots\">\n{}</div>\n",
      page_text(comparison.sweep.file), comparison.sweep.kernels.size(), options.points,
      options.leave_kernels_out ? ", the GPU to other kernels" : "",
      regret_rows(comparison, regrets), errors_rows(comparison), plots(comparison));
  return whole_page("Models of " + spec.title, body);
}

}  // namespace rubato
