#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/transfer.hpp"
#include "tools/drawing/transfer_values.hpp"

namespace rubato {

namespace {

std::string number(std::optional<double> value) {
  return value ? format_fixed(*value, 2) : std::string("-");
}

}  // namespace

Answer transfer_answer(std::span<const DrawnTransfer> transfers) {
  double saved = 0.0, time = 0.0, regret = 0.0, worst = 0.0;
  std::size_t count = 0, with_regret = 0;
  std::string worst_trace;
  for (const DrawnTransfer& drawn : transfers) {
    if (drawn.source) continue;
    ++count;
    saved += *plan_saving_pct(drawn.transfer);
    time += *plan_time_pct(drawn.transfer);
    const auto lost = regret_points(drawn.transfer);
    if (!lost) continue;
    ++with_regret;
    regret += *lost;
    if (worst_trace.empty() || *lost > worst) {
      worst = *lost;
      worst_trace = drawn.transfer.trace;
    }
  }
  if (count == 0) return Answer().say("Nothing but the trace it was found on.");
  const auto mean = [](double sum, std::size_t n) { return sum / static_cast<double>(n); };
  Answer answer;
  answer.say(fmt::format("On {} other traces the plan changes energy by ", count))
      .lead(format_signed(-mean(saved, count), 2) + " %")
      .say(" and time by ")
      .lead(format_signed(mean(time, count), 2) + " %")
      .say(" in the mean.");
  if (with_regret > 0) {
    answer.say(fmt::format(
        " Plans of their own would save {:.2f} points more in the same time; most, {:.2f}, on {}.",
        mean(regret, with_regret), worst, worst_trace));
  }
  return answer;
}

namespace {

std::string transfer_numbers(std::span<const DrawnTransfer> transfers) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [t, panel, batch, source] : transfers) {
    const auto own = own_saving_pct(t);
    rows.push_back({page_text(t.trace), number(-*plan_saving_pct(t)), number(plan_time_pct(t)),
                    number(own ? std::optional(-*own) : own), number(own_time_pct(t)),
                    number(own ? std::optional(100.0 * t.regret_frac()) : own),
                    number(regret_points(t)), fmt::format("{:.0f}", t.baseline.average_power_w()),
                    fmt::format("{:.1f}", 100.0 * t.limited_frac),
                    fmt::format("{:.1f}", 100.0 * t.known_frac)});
  }
  return html_table({"trace", "energy %", "time %", "own energy %", "own time %", "regret",
                     "at equal time", "default W", "at the limit %", "known time %"},
                    rows);
}

}  // namespace

std::string transfer_page(const TransferCaption& caption,
                          std::span<const DrawnTransfer> transfers) {
  double least_known = 1.0;
  for (const DrawnTransfer& drawn : transfers)
    least_known = std::min(least_known, drawn.transfer.known_frac);
  std::string body = page_section(
      "How sure this is",
      facts_table({{"Model error", page_text(caption.model_error)},
                   {"Kernels",
                    fmt::format("at least {:.0f} % of a trace's time is in kernels that the plan "
                                "knows; the others keep the default clocks",
                                100.0 * least_known)},
                   {"Numbers",
                    "all of the simulator, against the default clocks of each trace; bars are "
                    "90 % intervals of the transferred plan"}}));
  body += page_section("Saving, regret, time",
                       two_pictures(transfer_svg(caption, transfers),
                                    transfer_svg(caption, transfers, Screen::phone)));
  body += page_section(
      "Numbers",
      "<p>Regret is what a trace's own plan for the same question would save beyond the "
      "transferred one; at equal time, in the time the transferred one takes.</p>\n" +
          transfer_numbers(transfers));
  return whole_page(
      {"A plan on other traces",
       fmt::format("{}, found on {}; {}, {:g} W, clocks '{}'", caption.plan, caption.found_on,
                   caption.gpu, caption.power_limit_w, caption.clocks),
       transfer_answer(transfers), ""},
      body);
}

}  // namespace rubato
