#include "tools/commands/plans/capture_tables.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr double us_per_ns = 1e-3;

}  // namespace

OutputTable collectives_table(const GraphExploration& found) {
  OutputTable table({{"collective"},
                     {"kind"},
                     {"ranks"},
                     {"last_rank", "last rank"},
                     {"start_skew_us", "skew us", 0},
                     {"transfer_us", "transfer us", 0},
                     {"end_spread_us", "ends apart us", 0}});
  std::vector<const JoinedCollective*> rows;
  for (const JoinedCollective& one : found.run->ranks.collectives) rows.push_back(&one);
  std::ranges::stable_sort(rows, std::greater{}, &JoinedCollective::start_skew_ns);
  for (const JoinedCollective* one : rows) {
    table.add_row({one->name, std::string(name_of(one->kind)),
                   static_cast<std::int64_t>(one->members.size()),
                   static_cast<std::int64_t>(last_rank(*found.run, *one)),
                   us_per_ns * static_cast<double>(one->start_skew_ns()),
                   us_per_ns * static_cast<double>(one->transfer_ns()),
                   us_per_ns * static_cast<double>(one->end_spread_ns())});
  }
  return table;
}

OutputTable comm_sms_table(const GraphExploration& found) {
  OutputTable table({{"comm_sms", "comm SMs", 0},
                     {"default_time_change_pct", "time %", 2},
                     {"default_energy_change_pct", "energy %", 2},
                     {"plans"}});
  if (found.comm_sms.empty()) return table;
  const GraphRun& baseline = found.planner->baseline();
  const auto add = [&](const std::optional<double>& comm_sms, const GraphPlanner& planner) {
    const auto chosen = std::ranges::count_if(found.plans, [&](const GraphPlanOutcome& outcome) {
      return outcome.result.found() && outcome.comm_sms == comm_sms;
    });
    const ClockId clock = planner.grid().default_clock();
    const auto defaults = std::ranges::find(planner.uniform(), clock, &UniformRun::clock);
    table.add_row({comm_sms ? Cell(*comm_sms) : Cell(),
                   change_pct(defaults->span_s, baseline.span_s),
                   change_pct(defaults->energy_j, baseline.total_energy_j),
                   static_cast<std::int64_t>(chosen)});
  };
  add(std::nullopt, *found.planner);
  for (const CommSmsChoice& choice : found.comm_sms) add(choice.comm_sms, *choice.planner);
  return table;
}

}  // namespace rubato
