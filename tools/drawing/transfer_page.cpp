#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/transfer.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

namespace {

std::string number(std::optional<double> value) {
  return value ? format_fixed(*value, 2) : std::string("-");
}

}  // namespace

Answer transfer_answer(std::span<const DrawnTransfer> transfers) {
  double energy = 0.0, time = 0.0, regret = 0.0;
  std::size_t count = 0, with_deadline = 0, kept = 0, with_regret = 0;
  const DrawnTransfer* worst = nullptr;
  bool same_time = false;
  const auto regret_of = [](const Transfer& t) {
    return t.own_in_time ? t.equal_time_regret_points() : t.regret_points();
  };
  for (const DrawnTransfer& drawn : transfers) {
    if (drawn.source) continue;
    const Transfer& t = drawn.transfer;
    ++count;
    energy -= t.saving_pct();
    time += t.time_pct();
    with_deadline += t.deadline_s.has_value();
    kept += t.in_time();
    const auto lost = regret_of(t);
    if (!lost) continue;
    ++with_regret;
    regret += *lost;
    same_time |= t.own_in_time.has_value();
    if (worst == nullptr || *lost > *regret_of(worst->transfer)) worst = &drawn;
  }
  if (count == 0) return Answer().say("Nothing but the trace it was found on.");
  const auto mean = [](double sum, std::size_t n) { return sum / static_cast<double>(n); };
  const bool one = count == 1;
  Answer answer;
  answer
      .say(one ? "There the plan changes energy by "
               : fmt::format("On {} {} the plan changes energy by ", count,
                             with_deadline > 0 ? "captured runs" : "other traces"))
      .lead(change_words(mean(energy, count)))
      .say(" and time by ")
      .lead(change_words(mean(time, count)))
      .say(one ? "" : " in the mean");
  if (with_deadline > 0) {
    answer.say(one ? fmt::format("; the deadline is {}", kept == 1 ? "kept" : "missed")
                   : fmt::format("; the deadline is kept on {}", kept));
  }
  answer.say(".");
  if (with_regret > 0) {
    answer.say(fmt::format(
        " {} would save {} points more{}{}.", one ? "A plan of its own" : "Plans of their own",
        format_fixed(mean(regret, with_regret), 2),
        same_time ? " in the same time"
        : one     ? ""
                  : " in the mean",
        same_time && !one
            ? fmt::format("; most, {}, on {}", format_fixed(*regret_of(worst->transfer), 2),
                          worst->transfer.run)
            : ""));
  }
  return answer;
}

namespace {

std::string transfer_numbers(std::span<const DrawnTransfer> transfers) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [t, panel, batch, source] : transfers) {
    const auto own = t.own_saving_pct();
    rows.push_back({page_text(t.run), number(-t.saving_pct()), number(t.time_pct()),
                    number(own ? std::optional(-*own) : own), number(t.own_time_pct()),
                    number(t.regret_points()), number(t.equal_time_regret_points()),
                    fmt::format("{:.0f}", power_w(t.baseline)),
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
