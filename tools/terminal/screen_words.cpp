// Words that lines and tables of a screen share.

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/terminal/screen.hpp"
#include "tools/terminal/screen_parts.hpp"

namespace rubato {

double slack_pct(const Goal& goal) {
  const auto* waste = std::get_if<LeastWaste>(&goal);
  return waste == nullptr ? 0.0 : percent * waste->slack_frac;
}

std::string odds_words(double odds_in_time) {
  return odds_in_time > 0.99   ? "> 99 %"
         : odds_in_time < 0.01 ? "< 1 %"
                               : fmt::format("{:.0f} %", std::floor(percent * odds_in_time));
}

std::string goal_words(const Goal& goal) {
  if (std::holds_alternative<LeastEdp>(goal)) return "least energy x time";
  if (std::holds_alternative<LeastEd2p>(goal)) return "least energy x time^2";
  if (std::holds_alternative<LeastEnergy>(goal)) return "least energy in any time";
  if (const auto* cost = std::get_if<LeastCost>(&goal))
    return fmt::format("least cost at {}", prices_text(cost->prices));
  const auto* time = std::get_if<LeastTime>(&goal);
  if (time == nullptr) return "";
  return time->max_energy_j
             ? fmt::format("least time within {} J", format_number(*time->max_energy_j))
             : fmt::format("least time within {} W", format_number(*time->max_average_power_w));
}

std::string play_text(std::string_view granularity, const Goal& goal, std::string_view db,
                      std::string_view plan_file) {
  if (!plan_file.empty() && plan_file != "-" && !plan_file.ends_with(".json"))
    return fmt::format(" To set: Zeus reads the schedules in {}\n", shell_word(plan_file));
  const std::string_view file = plan_file.empty() ? "plan.json" : plan_file;
  const std::string play =
      fmt::format("sudo -E rubato apply {} -- python3 train.py", shell_word(file));
  if (!plan_file.empty()) return fmt::format(" To set: {}\n", play);
  if (db.empty())
    return fmt::format(" To set: the same with --plan-file {}, then {}\n", file, play);
  return fmt::format(" To set: rubato export --plan latest --per {}{} --db {} -o {}\n {}\n",
                     granularity, std::holds_alternative<LeastCost>(goal) ? " --goal cost" : "",
                     shell_word(db), file, play);
}

std::string shares_text(std::initializer_list<std::pair<double, std::string_view>> parts) {
  constexpr double shown_pct = 0.05;
  std::string text;
  for (const auto& [part_pct, words] : parts) {
    if (part_pct < shown_pct) continue;
    text += fmt::format("{}{:.1f} % {}", text.empty() ? "" : ", ", part_pct, words);
  }
  return text;
}

std::string clock_words(std::string_view label) {
  const std::size_t slash = label.find('/'), comma = label.find(", ");
  if (comma != std::string_view::npos)  // and a power limit
    return fmt::format("{}, at most{}", clock_words(label.substr(0, comma)),
                       label.substr(comma + 1));
  if (label == "auto/auto") return "the driver's choice";
  if (slash == std::string_view::npos) return std::string(label);
  const std::string_view mem = label.substr(0, slash), core = label.substr(slash + 1);
  return fmt::format("memory {}, core {}{}", mem, core, core == "auto" ? "" : " MHz");
}

std::string clocks_text(const ClockGrid& grid, std::span<const ClockId> clocks) {
  const std::set<ClockId> different(clocks.begin(), clocks.end());
  return different.size() == 1 ? grid.label(*different.begin())
                               : fmt::format("{} clocks", different.size());
}

}  // namespace rubato
