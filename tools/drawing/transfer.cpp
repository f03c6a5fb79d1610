#include "tools/drawing/transfer.hpp"

#include <optional>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

std::string transfer_answer(std::span<const DrawnTransfer> transfers) {
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
  if (count == 0) return std::string().append("Nothing but the trace it was found on.");
  const auto mean = [](double sum, std::size_t n) { return sum / static_cast<double>(n); };
  const bool one = count == 1;
  std::string answer;
  answer
      .append(one ? "There the plan changes energy by "
                  : fmt::format("On {} {} the plan changes energy by ", count,
                                with_deadline > 0 ? "captured runs" : "other traces"))
      .append(change_words(mean(energy, count)))
      .append(" and time by ")
      .append(change_words(mean(time, count)))
      .append(one ? "" : " in the mean");
  if (with_deadline > 0) {
    answer.append(one ? fmt::format("; the deadline is {}", kept == 1 ? "kept" : "missed")
                      : fmt::format("; the deadline is kept on {}", kept));
  }
  answer.append(".");
  if (with_regret > 0) {
    answer.append(fmt::format(
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

}  // namespace rubato
