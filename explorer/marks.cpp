#include "explorer/marks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr std::string_view host_power_kind = "host power counted";

// In the order of MarkKind.
constexpr std::array words_of_marks{
    MarkWords{"limit not reached",
              "draws more than the power limit at the lowest clock: how much, and how long"},
    MarkWords{
        "clocks not fitted",
        "runs at clocks outside the range that the GPU model was fitted to, or the power limit "
        "takes it there"},
    MarkWords{"too large",
              "weights, gradients, optimizer state (if the step runs it) and activations of a "
              "generated step exceed the GPU's memory"},
    MarkWords{"scaled", "kernels measured at other shapes take part of the time"},
    MarkWords{"changes counted",
              "the plan was chosen with the cost of switches, and can be set as it is"},
    MarkWords{"changes ignored",
              "the plan was chosen as if switches were free; the table shows it with their cost"},
    MarkWords{"not applicable", "GPUs cannot be set to the plan as it is, see docs/apply.md"},
    MarkWords{"slack missed",
              "late once switches are counted, or, for captured runs, once one step's clocks are "
              "applied to all steps"},
    MarkWords{"changes for nothing", "one clock for all saves as much, to the last digit shown"},
    MarkWords{host_power_kind, "every energy includes the rest of the node (--host-power)"},
    MarkWords{"two readings",
              "the file does not say whether the host waited for the GPU or worked: what the plan "
              "changes if it worked"},
    MarkWords{"least cost",
              "the time of a captured run's plan follows from your prices, not from a slack"}};
static_assert(words_of_marks.size() == static_cast<std::size_t>(MarkKind::least_cost) + 1);

bool was_fitted(const GpuSpec& spec, double core_mhz) {
  constexpr double same_clock = 0.005;
  return core_mhz >= spec.fitted_range->min_core_mhz * (1.0 - same_clock) &&
         core_mhz <= spec.fitted_range->max_core_mhz * (1.0 + same_clock);
}

// Over the limit by more than the search for the clock at which it holds may round.
bool over_limit(const GpuSpec& spec, const KernelCoefficients& kernel, const OperatingPoint& point,
                double limit_w) {
  constexpr double rounding = 1e-3;
  if (!(kernel.core_cycles > 0.0)) return false;  // measured: whatever the limit was, it was so
  return !within_limit(spec, kernel, point, limit_w * (1.0 + rounding));
}

}  // namespace

std::string_view name_of(MarkKind value) noexcept {
  return words_of_marks[static_cast<std::size_t>(value)].name;
}

std::span<const MarkWords> mark_words() noexcept { return words_of_marks; }

bool is_doubt(MarkKind value) noexcept {
  return value == MarkKind::limit_not_reached || value == MarkKind::clocks_not_fitted ||
         value == MarkKind::too_large || value == MarkKind::scaled;
}

bool has_mark(std::span<const Mark> marks, MarkKind kind) {
  return std::ranges::find(marks, kind, &Mark::kind) != marks.end();
}

std::string kinds_text(std::span<const Mark> marks) {
  std::string text;
  for (const Mark& mark : marks) {
    if (!text.empty()) text += ", ";
    text += name_of(mark.kind);
  }
  return text;
}

namespace {

// The first of each kind.
std::vector<Mark> one_of_each_kind(std::span<const std::vector<Mark>* const> lists) {
  std::vector<Mark> first;
  for (const std::vector<Mark>* marks : lists) {
    for (const Mark& mark : *marks) {
      if (std::ranges::find(first, mark.kind, &Mark::kind) == first.end()) first.push_back(mark);
    }
  }
  return first;
}

}  // namespace

std::string reasons_text(std::span<const std::vector<Mark>* const> lists) {
  std::string text;
  for (const Mark& mark : one_of_each_kind(lists))
    text += fmt::format("{}: {}.\n", name_of(mark.kind), mark.reason);
  return text;
}

std::string doubts_text(std::span<const std::vector<Mark>* const> lists) {
  std::vector<Mark> doubts = one_of_each_kind(lists);
  std::erase_if(doubts, [](const Mark& mark) { return !is_doubt(mark.kind); });
  return doubts.empty() ? "" : fmt::format(" [{}]", kinds_text(doubts));
}

void ClockUse::Part::add(const Part& other) {
  time_s += other.time_s;
  least = std::min(least, other.least);
  most = std::max(most, other.most);
}

std::string ClockUse::Part::range(std::string_view unit) const {
  const std::string last = fmt::format("{:.0f} {}", most, unit);
  return most - least < 0.5 ? last : fmt::format("{:.0f} to {}", least, last);
}

std::string ClockUse::Part::share_of(double all_s) const {
  const double share_pct = percent * time_s / all_s;
  return share_pct < 1.0 ? "less than 1 %" : fmt::format("{:.0f} %", share_pct);
}

void ClockUse::add(const GpuSpec& spec, double power_limit_w, const KernelCoefficients& kernel,
                   const OperatingPoint& point, double time_s) {
  all_s_ += time_s;
  if (over_limit(spec, kernel, point, power_limit_w)) {
    const double power_w = point.energy_j / point.time_s;
    over_.add({time_s, power_w, power_w});
    limit_w_ = std::max(limit_w_, power_limit_w);
  }
  const bool known_range = spec.fitted_range && point.core_mhz > 0.0;
  if (known_range && !was_fitted(spec, point.core_mhz))
    beyond_.add({time_s, point.core_mhz, point.core_mhz});
}

void ClockUse::add(const ClockUse& other) {
  all_s_ += other.all_s_;
  limit_w_ = std::max(limit_w_, other.limit_w_);
  over_.add(other.over_);
  beyond_.add(other.beyond_);
}

std::vector<Mark> ClockUse::marks(const GpuSpec& spec) const {
  std::vector<Mark> marks;
  if (over_.time_s > 0.0) {
    std::string reason = fmt::format(
        "{} of the time draws {} at the lowest clock, {} MHz, more than the limit of "
        "{} W; there is no lower clock to enforce it",
        over_.share_of(all_s_), over_.range("W"), format_number(spec.core.min_mhz),
        format_number(limit_w_));
    if (spec.fitted_range && !was_fitted(spec, spec.core.min_mhz)) {
      reason +=
          fmt::format("; power below {:.0f} MHz is a guess, and the limit may be reached there",
                      spec.fitted_range->min_core_mhz);
    }
    marks.push_back({MarkKind::limit_not_reached, std::move(reason)});
  }
  if (beyond_.time_s > 0.0) {
    marks.push_back(
        {MarkKind::clocks_not_fitted,
         fmt::format("{} of the time at {}; {} was measured from {:.0f} to {:.0f} MHz",
                     beyond_.share_of(all_s_), beyond_.range("MHz"), spec.name,
                     spec.fitted_range->min_core_mhz, spec.fitted_range->max_core_mhz)});
  }
  return marks;
}

std::vector<Mark> marks_of_clocks(const Trace& trace, const GpuModel& model, const ClockGrid& grid,
                                  const Plan& plan, std::span<const OperatingPoint> cells) {
  ClockUse use;
  const std::vector<Site> launches = sites(trace, plan);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const KernelId kernel = launches[i].kernel;
    const ClockId clock = plan.clock_of_site[i];
    const OperatingPoint& point = cells[index(kernel) * grid.size() + index(clock)];
    use.add(model.spec(), grid[clock].power_limit_w.value_or(model.power_limit_w()),
            model.coefficients(kernel), point, point.time_s * launches[i].repeat);
  }
  return use.marks(model.spec());
}

std::optional<Mark> mark_of_memory(const Trace& trace, const GpuSpec& spec) {
  const std::optional<HeldMemory> held = held_memory(trace);
  return held ? mark_of_memory(*held, spec) : std::nullopt;
}

std::optional<Mark> mark_of_memory(const HeldMemory& held, const GpuSpec& spec) {
  constexpr double bytes_per_gb = 1e9;
  if (!spec.memory_gb || held.bytes <= *spec.memory_gb * bytes_per_gb) return std::nullopt;
  const auto what = [&]() -> std::string_view {
    if (held.activations)
      return held.optimizer ? "weights, gradients, optimizer state and activations are"
                            : "weights, gradients and activations are";
    return held.optimizer ? "weights, gradients and optimizer state alone are"
                          : "weights and gradients alone are";
  };
  return Mark{MarkKind::too_large,
              fmt::format("{} {:.0f} GB, {} has {:.0f} GB", what(), held.bytes / bytes_per_gb,
                          spec.title, *spec.memory_gb)};
}

std::optional<Mark> mark_of_scaled(std::span<const CoefficientSource> sources,
                                   std::span<const Totals> by_kernel) {
  double scaled_s = 0.0, all_s = 0.0;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    all_s += by_kernel[k].time_s;
    if (sources[k] == CoefficientSource::scaled) scaled_s += by_kernel[k].time_s;
  }
  const double share_pct = all_s > 0.0 ? percent * scaled_s / all_s : 0.0;
  if (share_pct < 1.0) return std::nullopt;
  return Mark{MarkKind::scaled,
              fmt::format("{:.0f} % of the time is of kernels that were measured at other shapes",
                          share_pct)};
}

Mark mark_of_counted_changes(std::string_view change) {
  return {MarkKind::changes_counted,
          fmt::format("chosen with the cost of switches, each of {}", change)};
}

Mark mark_of_host_power(double host_power_w) {
  return {MarkKind::host_power_counted,
          fmt::format("{} W per GPU, the rest of the node, are in every energy",
                      format_number(host_power_w))};
}

double host_power_w_of(std::string_view kind, std::string_view reason) {
  if (kind != host_power_kind) return 0.0;
  return parse_number(reason.substr(0, reason.find(' '))).value_or(0.0);
}

std::string prices_text(const Prices& prices) {
  return fmt::format("{} per kWh, PUE {}, {} per GPU hour: time is worth {:.0f} W per GPU",
                     format_number(prices.per_kwh), format_number(prices.pue),
                     format_number(prices.per_gpu_hour), prices.time_worth_w());
}

Mark mark_of_least_cost(const Prices& prices) {
  return {MarkKind::least_cost, "its time is the cheapest at " + prices_text(prices)};
}

std::vector<Mark> marks_of_changes(const CountedPlan& plan) {
  constexpr double shown = 5e-5;  // half of the last digit shown of a saving: 0.005 %
  constexpr double rounding = 1e-9;
  std::vector<Mark> marks;
  const auto add = [&](MarkKind kind, std::string_view reason) {
    marks.push_back({kind, std::string(reason)});
  };
  const Totals& real = plan.counted ? *plan.counted : plan.planned;
  if (plan.counted) {
    add(MarkKind::changes_ignored,
        fmt::format("chosen as if switches were free; the table has the same plan with the cost of "
                    "its switches, each of {}; plans per segment are chosen with that cost",
                    plan.change));
  }
  if (const auto* waste = std::get_if<LeastWaste>(&plan.goal)) {
    const double budget_s =
        (1.0 + waste->slack_frac + waste->tolerance_frac) * plan.baseline.time_s;
    if (real.time_s > budget_s * (1.0 + rounding))
      add(MarkKind::slack_missed, "takes longer than the slack allows once switches are counted");
  }
  const bool no_better =
      plan.best_one_clock_j && plan.planned.energy_j > *plan.best_one_clock_j * (1.0 - shown);
  if (no_better && plan.planned.clock_switches > 0)
    add(MarkKind::changes_for_nothing, "one clock for all saves as much to the last digit shown");
  return marks;
}

}  // namespace rubato
