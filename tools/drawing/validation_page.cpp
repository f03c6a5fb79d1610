#include "tools/drawing/validation_page.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "tools/drawing/page_parts.hpp"

namespace rubato {

namespace {

std::string errors_table(const std::vector<ErrorSummary>& summaries) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> groups;
  for (const ErrorSummary& s : summaries) {
    groups.push_back(s.group);
    rows.push_back({page_text(s.group), std::to_string(std::max(s.time.count, s.power.count))});
    for (const ErrorQuantiles* q : {&s.time, &s.power, &s.energy}) {
      for (const double value : {q->mean, q->p50, q->p90, q->worst})
        rows.back().push_back(q->count > 0 ? fmt::format("{:.2f}", value) : "-");
    }
  }
  return html_table(
      {"group", "points", "time: mean %", "50 % below", "90 % below", "worst", "power: mean %",
       "50 % below", "90 % below", "worst", "energy: mean %", "50 % below", "90 % below", "worst"},
      rows, groups);
}

struct Plots {
  std::vector<MeasuredPair> times, powers;
  std::vector<ErrorPoint> time_errors, power_errors;
};

Plots plotted(const GpuSpec& spec, std::span<const ValidatedPoint> points) {
  Plots plots;
  for (const ValidatedPoint& p : points) {
    const std::optional<double>& core = p.measured.clock.core_mhz;
    const std::string label = fmt::format("{}, memory {}, core {}", p.kernel,
                                          spec.mem_states[index(p.measured.clock.mem)].name,
                                          core ? fmt::format("{:g}", *core) : "auto");
    const bool capped = p.predicted.power_limited;
    const auto add = [&](std::vector<MeasuredPair>& pairs, std::vector<ErrorPoint>& errors,
                         double measured, double predicted) {
      pairs.push_back({measured, predicted, capped, label, p.kernel});
      if (core) errors.push_back({*core, predicted / measured - 1.0, capped, label, p.kernel});
    };
    if (p.measured.time_s)
      add(plots.times, plots.time_errors, *p.measured.time_s, p.predicted.time_s);
    if (p.measured.power_w)
      add(plots.powers, plots.power_errors, *p.measured.power_w,
          p.predicted.energy_j / p.predicted.time_s);
  }
  return plots;
}

}  // namespace

Answer validation_answer(const GpuSpec& spec, std::span<const ValidatedPoint> points) {
  const std::vector<ErrorSummary> groups = summaries(spec, points);
  const ErrorSummary& all = groups.front();
  Answer answer;
  for (const auto& [what, errors] : {std::pair{"time", all.time}, std::pair{"power", all.power},
                                     std::pair{"energy", all.energy}}) {
    if (errors.count == 0) continue;
    answer.say(answer.lines.empty() ? "Mean absolute error: " : ", ")
        .lead(fmt::format("{} {:.2f} %", what, errors.mean))
        .say(fmt::format(" (worst {:.1f} %)", errors.worst));
  }
  return answer.lines.empty() ? answer : answer.say(".");
}

std::string validation_page(const GpuSpec& spec, const Sweep& sweep,
                            const ValidationOptions& options,
                            std::span<const ValidatedPoint> points) {
  const Plots plots = plotted(spec, points);
  const std::vector<ErrorSummary> groups = summaries(spec, points);
  constexpr double tolerance = 0.05;
  const std::string core = "core clock as set, MHz";
  std::vector<std::pair<std::string, std::string>> facts{
      {"Tested on", fmt::format("{} points that the fit had not seen; held out: {}", points.size(),
                                name_of(options.holdout))}};
  const ErrorSummary& all = groups.front();
  if (all.time.inside_pct && all.energy.inside_pct) {
    facts.emplace_back("Intervals",
                       fmt::format("90 % ones hold {:.0f} % of the points' times and {:.0f} % of "
                                   "their energies",
                                   *all.time.inside_pct, *all.energy.inside_pct));
  }
  facts.emplace_back("Measurements", page_text(sweep.file));
  std::string body = page_section("How sure this is", facts_table(facts));
  body +=
      page_section("Predicted over measured",
                   fmt::format("<p>Blue: free, orange: at the power limit; the band is 5 %.</p>\n"
                               "<div class=\"plots\">\n{}{}</div>\n",
                               agreement_plot("Time", "s", plots.times, tolerance),
                               agreement_plot("Power", "W", plots.powers, tolerance)));
  body += page_section(
      "Error over the clock",
      fmt::format("<p>The line is the mean of the kernels at a clock: away from zero, the model "
                  "is wrong there in the same way for all.</p>\n<div "
                  "class=\"plots\">\n{}{}</div>\n",
                  error_plot("Error of time", core, plots.time_errors, tolerance),
                  error_plot("Error of power", core, plots.power_errors, tolerance)));
  body += page_section("Absolute errors", errors_table(groups));
  return whole_page({"How right the model is on held-out points", spec.title,
                     validation_answer(spec, points), ""},
                    body);
}

}  // namespace rubato
