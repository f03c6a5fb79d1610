#include "tools/drawing/validation_page.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tools/drawing/page_parts.hpp"

namespace rubato {

namespace {

std::string table(const std::vector<ErrorSummary>& summaries) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th>group</th><th>points</th><th>time "
      "%</th><th>p50</th>"
      "<th>p90</th><th>worst</th><th>power %</th><th>p50</th><th>p90</th><th>worst</th><th>energy "
      "%</th><th>p50</th><th>p90</th><th>worst</th></tr></thead><tbody>\n";
  for (const ErrorSummary& s : summaries) {
    html += fmt::format("<tr><td>{}</td><td>{}</td>", page_text(s.group),
                        std::max(s.time.count, s.power.count));
    for (const ErrorQuantiles* q : {&s.time, &s.power, &s.energy}) {
      for (const double value : {q->mean, q->p50, q->p90, q->worst})
        html += q->count > 0 ? fmt::format("<td>{:.2f}</td>", value) : "<td>-</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace

std::string validation_page(const GpuSpec& spec, const Sweep& sweep,
                            const ValidationOptions& options,
                            std::span<const ValidatedPoint> points) {
  std::vector<MeasuredPair> times, powers;
  for (const ValidatedPoint& p : points) {
    const std::string label = fmt::format(
        "{}, memory {}, core {}", p.kernel, spec.mem_states[index(p.measured.clock.mem)].name,
        p.measured.clock.core_mhz ? fmt::format("{:g}", *p.measured.clock.core_mhz) : "auto");
    const bool capped = p.predicted.power_limited;
    if (p.measured.time_s) times.push_back({*p.measured.time_s, p.predicted.time_s, capped, label});
    if (p.measured.power_w)
      powers.push_back(
          {*p.measured.power_w, p.predicted.energy_j / p.predicted.time_s, capped, label});
  }
  constexpr double tolerance = 0.05;
  const std::string body = fmt::format(
      "<p>{}: {} held-out points, held out: {}. Blue: free, orange: at the power limit; the band "
      "is 5 %.</p>\n<div class=\"plots\">\n{}{}</div>\n<h2>Absolute errors</h2>\n{}",
      page_text(sweep.file), points.size(), name_of(options.holdout),
      agreement_plot("Time", "s", times, tolerance),
      agreement_plot("Power", "W", powers, tolerance), table(summaries(spec, points)));
  return whole_page("Validation of " + spec.title, body);
}

}  // namespace rubato
