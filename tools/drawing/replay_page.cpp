#include "tools/drawing/replay_page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/numbers.hpp"
#include "tools/drawing/page_parts.hpp"

namespace rubato {

namespace {

using Cells = std::vector<std::string>;

std::string ms(double s) { return fmt::format("{:.3f}", s * 1e3); }
std::string change_text(double now, double before) {
  return before > 0.0 ? format_signed(100.0 * (now / before - 1.0), 2) : "-";
}
std::string error_text(const std::optional<ErrorBar>& error) {
  if (!error) return "-";
  std::string text = format_signed(100.0 * error->value, 1);
  if (error->half_width) text += fmt::format(" ± {:.1f}", 100.0 * *error->half_width);
  return text;
}
std::string measured_text(const std::optional<SpanEnergy>& span) {
  return span ? fmt::format("{:.3f}", span->energy_j) : "-";
}

// One line per class: its error with the bar, over the band of the tolerance.
std::string verdict_plot(const std::vector<ReplayRow>& classes) {
  double reach = 2.0 * verdict_tolerance;
  double lines = 0.0;
  for (const ReplayRow& row : classes) {
    if (!row.time_error) continue;
    reach =
        std::max(reach, std::abs(row.time_error->value) + row.time_error->half_width.value_or(0.0));
    lines += 1.0;
  }
  if (lines == 0.0) return {};
  // One class that is far off must not hide the others: it is drawn at the edge, with its number.
  reach = 1.1 * std::min(reach, 3.0 * verdict_tolerance);
  constexpr double width = 430.0, left = 130.0, line = 24.0, top = 8.0;
  const double bottom = top + lines * line;
  const auto x = [&](double error) {
    const double middle = 0.5 * (left + width - 20.0);
    return middle + std::clamp(error / reach, -1.0, 1.0) * (middle - left);
  };
  std::string svg = fmt::format(
      "<figure><figcaption>Error of a class's time</figcaption><svg viewBox=\"0 0 {} {}\" "
      "role=\"img\" aria-label=\"errors by class\">"
      "<rect class=\"band\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>"
      "<line class=\"same\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\"/>",
      width, bottom + 40.0, x(-verdict_tolerance), top,
      x(verdict_tolerance) - x(-verdict_tolerance), bottom - top, x(0.0), top, x(0.0), bottom);
  double y = top + 0.5 * line;
  for (const ReplayRow& row : classes) {
    if (!row.time_error) continue;
    const double error = row.time_error->value, bar = row.time_error->half_width.value_or(0.0);
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>"
        "<line class=\"{}\" stroke=\"currentColor\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
        "y2=\"{:.1f}\"/><circle class=\"mark {}\" r=\"4\" cx=\"{:.1f}\" cy=\"{:.1f}\"><title>{}: "
        "{} "
        "%</title></circle>",
        left - 10.0, y + 4.0, page_text(row.name), "bar", x(error - bar), y, x(error + bar), y,
        verdict_of(row) == Verdict::off ? "capped" : "free", x(error), y, page_text(row.name),
        error_text(row.time_error));
    if (std::abs(error) > reach) {
      svg += fmt::format(
          "<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{} %</text>",
          x(error) + (error > 0.0 ? -9.0 : 9.0), y + 4.0, error > 0.0 ? "end" : "start",
          format_signed(100.0 * error, 0));
    }
    y += line;
  }
  for (const double tick : {-reach / 1.1, 0.0, reach / 1.1}) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{} %</text>",
                       x(tick), bottom + 16.0, tick == 0.0 ? "0" : format_signed(100.0 * tick, 0));
  }
  return svg + "</svg></figure>\n";
}

std::string kernels_plot(const std::vector<ReplayRow>& kernels) {
  std::vector<MeasuredPair> pairs;
  for (const ReplayRow& row : kernels) {
    const auto launches = static_cast<double>(row.launches);
    if (!row.time_error || row.compared_s <= 0.0 || row.predicted_s <= 0.0) continue;
    pairs.push_back({1e3 * row.compared_s / launches, 1e3 * row.predicted_s / launches,
                     verdict_of(row) == Verdict::off, row.name, row.name});
  }
  return agreement_plot("Time of a kernel", "ms", pairs, verdict_tolerance);
}

std::string runs_table(const ReplayRequest& request, const ReplayComparison& comparison) {
  const ReplayTotals& t = comparison.totals;
  const TimeUnit unit = time_unit(t.captured_s);
  const auto row = [&](const std::string& what, double time_s, const std::string& energy) {
    return Cells{what, fmt::format("{:.3f}", unit.per_s * time_s),
                 change_text(time_s, t.captured_s), energy};
  };
  return html_table({"run", fmt::format("time {}", unit.name), "over captured %", "energy J"},
                    {row("captured", t.captured_s, measured_text(comparison.measured)),
                     row("simulated from captured durations", t.reproduced_s,
                         fmt::format("{:.3f}", t.reproduced_j)),
                     row("simulated from the model's durations", t.predicted_s,
                         fmt::format("{:.3f}", t.predicted_j)),
                     row("captured durations brought to " + page_text(request.replayed_clock),
                         t.replayed_s, fmt::format("{:.3f}", t.replayed_j))});
}

std::string rows_table(const std::vector<ReplayRow>& rows, std::size_t most) {
  std::vector<Cells> cells;
  std::vector<std::string> names;
  for (const ReplayRow& row : rows) {
    if (cells.size() == most) break;
    std::string measured = "-";
    if (row.measured_power_w) {
      measured = fmt::format("{:.0f} ± {:.0f}", *row.measured_power_w,
                             1.645 * row.measured_sigma_w.value_or(0.0));
    }
    names.push_back(row.name);
    cells.push_back({page_text(row.name), std::to_string(row.launches), ms(row.captured_s),
                     ms(row.compared_s), row.time_error ? ms(row.predicted_s) : "-",
                     error_text(row.time_error), std::string(name_of(verdict_of(row))),
                     ms(row.replayed_s), fmt::format("{:.0f}", row.predicted_power_w), measured});
  }
  return html_table({"name", "launches", "captured ms", "compared ms", "predicted ms",
                     "time error %", "verdict", "replayed ms", "predicted W", "measured W"},
                    cells, names);
}

std::string steps_table(const std::vector<ReplayStep>& steps) {
  std::vector<Cells> cells;
  for (const ReplayStep& step : steps) {
    cells.push_back({page_text(step.name), std::to_string(step.launches), ms(step.captured_s),
                     ms(step.predicted_s), change_text(step.predicted_s, step.captured_s),
                     ms(step.replayed_s), fmt::format("{:.3f}", step.predicted_j),
                     measured_text(step.measured),
                     step.measured ? change_text(step.predicted_j, step.measured->energy_j) : "-"});
  }
  return html_table({"step", "launches", "captured ms", "predicted ms", "time error %",
                     "replayed ms", "predicted J", "measured J", "energy error %"},
                    cells);
}

}  // namespace

Answer replay_answer(const ReplayComparison& comparison) {
  const ReplayTotals& t = comparison.totals;
  double within_s = 0.0, compared_s = 0.0, all_s = 0.0;
  for (const ReplayRow& row : comparison.kernels) {
    all_s += row.captured_s;
    const Verdict verdict = verdict_of(row);
    if (verdict == Verdict::within) within_s += row.captured_s;
    if (row.time_error) compared_s += row.captured_s;
  }
  const auto share = [&](double s) { return 100.0 * s / std::max(all_s, 1e-12); };
  Answer answer;
  answer
      .say(fmt::format("The model gives the run {}; it took {}: ", time_text(t.predicted_s),
                       time_text(t.captured_s)))
      .lead(change_text(t.predicted_s, t.captured_s) + " %")
      .say(".");
  if (comparison.measured) {
    answer
        .say(fmt::format(" Energy {:.1f} J; the log says {:.1f} J: ", t.predicted_j,
                         comparison.measured->energy_j))
        .lead(change_text(t.predicted_j, comparison.measured->energy_j) + " %")
        .say(".");
  }
  return answer.say(
      fmt::format(" {:.0f} % of the GPU time was compared, {:.0f} % is within {:.0f} %.",
                  share(compared_s), share(within_s), 100.0 * verdict_tolerance));
}

namespace {

// What is known of kernels, as shares of the time in percent; tiny shares are left out.
std::string known_text(std::initializer_list<std::pair<double, const char*>> shares) {
  std::vector<std::string> parts;
  for (const auto& [share_pct, words] : shares) {
    constexpr double shown_pct = 0.05;
    if (share_pct >= shown_pct) parts.push_back(fmt::format("{:.1f} % {}", share_pct, words));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string replay_trust(const ReplayRequest& request, const ReplayComparison& comparison,
                         const std::optional<PowerEvidence>& power, const GpuSpec& spec) {
  const ReplayCoverage& c = comparison.coverage;
  const auto share = [&](double s) { return 100.0 * s / std::max(c.total_s(), 1e-12); };
  std::vector<std::pair<std::string, std::string>> facts{
      {"Clocks of the capture", page_text(request.captured_clock)},
      {"Model error", page_text(model_error_text(spec))},
      {"Times of kernels",
       known_text({{share(c.measured_s), "measured"},
                   {share(c.scaled_s), "scaled from the same kernel at other shapes"},
                   {share(c.derived_s), "derived from FLOPs, bytes and class"},
                   {share(c.guessed_s), "guessed from peak rates"},
                   {share(c.anchored_s), "anchored: not predicted, at their captured times"}})}};
  if (power) {
    facts.emplace_back(
        "Power log", fmt::format("{}: {}", page_text(power->log->file), text_of(power->alignment)));
  }
  return facts_table(facts);
}

}  // namespace

std::string replay_page(const ReplayRequest& request, const CaptureReplay& replay,
                        const ReplayComparison& comparison,
                        const std::optional<PowerEvidence>& power) {
  constexpr std::size_t most_kernels = 60;
  std::string body =
      page_section("How sure this is", replay_trust(request, comparison, power, replay.spec()));
  body += page_section(
      "Predicted over captured",
      fmt::format("<p>The band is {:.0f} %, orange is off by more; bars are 90 % intervals.</p>\n"
                  "<div class=\"plots\">\n{}{}</div>\n",
                  100.0 * verdict_tolerance, kernels_plot(comparison.kernels),
                  verdict_plot(comparison.classes)));
  body += page_section("The run, four times", runs_table(request, comparison));
  body += page_section("Classes", rows_table(comparison.classes, comparison.classes.size()));
  if (!comparison.steps.empty()) body += page_section("Steps", steps_table(comparison.steps));
  body += page_section("Kernels", fmt::format("<p>The {} with most captured time of {}.</p>\n{}",
                                              std::min(most_kernels, comparison.kernels.size()),
                                              comparison.kernels.size(),
                                              rows_table(comparison.kernels, most_kernels)));
  const bool calibrated = replay.spec().calibrated;
  return whole_page(
      {"Replay of " + replay.capture().name,
       fmt::format("{} on {}", request.trace_file, replay.spec().title), replay_answer(comparison),
       calibrated ? "" : "This GPU is not calibrated: its numbers are rough."},
      body);
}

}  // namespace rubato
