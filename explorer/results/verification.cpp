#include "explorer/results/verification.hpp"

#include <array>
#include <cmath>
#include <map>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "traces/plausible.hpp"

namespace rubato {

namespace {

// 95 % quantile of Student's t distribution by degrees of freedom, for two-sided 90 % intervals. Up
// to 30 degrees: any table of the distribution. Above: z, the quantile of the normal distribution,
// and the first term of Abramowitz and Stegun 26.7.5.
double student_t_95(std::size_t freedom) {
  static constexpr std::array table{6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860,
                                    1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746,
                                    1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711,
                                    1.708, 1.706, 1.703, 1.701, 1.699, 1.697};
  if (freedom <= table.size()) return table[freedom - 1];
  constexpr double z = 1.6448536269514722;
  return z + (z * z * z + z) / (4.0 * static_cast<double>(freedom));
}

// Mean time and energy of a step in a window.
struct Window {
  double time_s = 0.0, energy_j = 0.0;
};

struct Pair {
  std::optional<Window> by_default, planned;
};

ChangeRange change_over(std::span<const Pair> pairs, double Window::*quantity) {
  std::vector<double> logs;
  for (const Pair& pair : pairs)
    logs.push_back(std::log((*pair.planned).*quantity / (*pair.by_default).*quantity));
  CompensatedSum sum, squares;
  for (const double value : logs) sum.add(value);
  const auto count = static_cast<double>(logs.size());
  const double mean = sum.value() / count;
  for (const double value : logs) squares.add((value - mean) * (value - mean));
  const double half =
      student_t_95(logs.size() - 1) * std::sqrt(squares.value() / (count - 1.0) / count);
  return {std::expm1(mean), std::expm1(mean - half), std::expm1(mean + half)};
}

/// The windows of a file, in pairs, and which plan they were measured under.
struct TimeWindows {
  std::vector<Pair> pairs;
  std::optional<double> plan_id;
  double default_power_w = 0.0, plan_power_w = 0.0;
};

TimeWindows read_windows(const std::filesystem::path& path) {
  const CsvTable table = CsvTable::read(path);
  const std::size_t pair = table.column("pair"), arm = table.column("arm"),
                    steps = table.column("steps"), time = table.column("time_s"),
                    energy = table.column("energy_j");
  const auto plan = table.find_column("plan_id");
  constexpr double most_gpus = 16.0;  // of a node, whose energies are added up
  constexpr Bounds node_power_w{board_power_w.low, most_gpus * board_power_w.high};
  const std::array power_columns{
      ReadColumn{.name = "energy_j", .quantity = Quantity::energy},
      ReadColumn{.name = "time_s", .quantity = Quantity::time, .divides = true}};
  ErrorList errors;
  std::map<double, Pair> pairs;
  TimeWindows windows;
  std::map<bool, Window> sums;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto number = table.number(row, pair, Range::non_negative, errors);
    const auto count = table.number(row, steps, Range::positive, errors);
    const auto time_s = table.number(row, time, Range::positive, errors);
    const auto energy_j = table.number(row, energy, Range::positive, errors);
    const bool planned = table.cell(row, arm) == "plan";
    if (!planned && table.cell(row, arm) != "default") {
      errors.add(fmt::format("{}: arm is '{}'; expected 'default' or 'plan'", table.where(row),
                             table.cell(row, arm)));
    }
    if (!number || !count || !time_s || !energy_j) continue;
    const auto wrong =
        implausible("energy_j over time_s", *energy_j / *time_s, "W", node_power_w, power_columns);
    if (wrong) errors.add(fmt::format("{}: {}", table.where(row), *wrong));
    auto& slot = planned ? pairs[*number].planned : pairs[*number].by_default;
    if (slot) errors.add(fmt::format("{}: the pair has this arm already", table.where(row)));
    slot = Window{*time_s / *count, *energy_j / *count};
    sums[planned].time_s += *time_s;
    sums[planned].energy_j += *energy_j;
    if (planned && plan) {
      const auto id = table.optional_number(row, *plan, Range::positive, errors);
      if (windows.plan_id && id != windows.plan_id)
        errors.add(fmt::format("{}: windows of several plans", table.where(row)));
      windows.plan_id = id;
    }
  }
  errors.throw_if_any();
  for (const auto& [number, one] : pairs) {
    if (one.by_default && one.planned) windows.pairs.push_back(one);
  }
  if (windows.pairs.size() < 2) {
    throw DataError(fmt::format("{}: {} pairs have both arms; expected at least 2", path.string(),
                                windows.pairs.size()),
                    {.in = {}, .hint = "rubato.measure writes such a file (docs/apply.md)"});
  }
  windows.default_power_w = sums[false].energy_j / sums[false].time_s;
  windows.plan_power_w = sums[true].energy_j / sums[true].time_s;
  return windows;
}

ChangeRange promised(const JsonNode& promise, const std::string& quantity) {
  const double value = promise.at(quantity + "_change_pct").number() / percent;
  const auto end = [&](const char* name) {
    const auto pct = promise.optional_number(quantity + name);
    return pct ? *pct / percent : value;
  };
  return {value, end("_change_low_pct"), end("_change_high_pct")};
}

JsonNode plan_measured(const JsonNode& root, const TimeWindows& windows, const std::string& file) {
  const std::vector<JsonNode> plans = root.at("plans").items();
  if (plans.empty()) root.fail("holds no plan");
  if (!windows.plan_id) return plans.front();
  for (const JsonNode& one : plans) {
    if (one.optional_number("plan_id") == windows.plan_id) return one;
  }
  throw DataError(fmt::format("{}: measured under plan {}, which the plan file does not hold", file,
                              format_number(*windows.plan_id)));
}

}  // namespace

std::string_view name_of(PromiseVerdict value) noexcept {
  switch (value) {
    case PromiseVerdict::kept: return "kept";
    case PromiseVerdict::better: return "better";
    case PromiseVerdict::missed: return "missed";
    case PromiseVerdict::undecided: break;
  }
  return "undecided";
}

PromiseVerdict verdict_of(const ChangeRange& promised, const ChangeRange& measured) {
  if (measured.low > promised.high) return PromiseVerdict::missed;
  return measured.high < promised.low ? PromiseVerdict::better : PromiseVerdict::kept;
}

PromiseVerdict saving_verdict(const ChangeRange& promised, const ChangeRange& measured) {
  const PromiseVerdict verdict = verdict_of(promised, measured);
  const bool unsure = promised.value < 0.0 && measured.high >= 0.0;
  return verdict == PromiseVerdict::kept && unsure ? PromiseVerdict::undecided : verdict;
}

bool Verification::came() const noexcept {
  const auto holds = [](PromiseVerdict verdict) {
    return verdict == PromiseVerdict::kept || verdict == PromiseVerdict::better;
  };
  return holds(energy) && holds(time);
}

Verification verify(const std::filesystem::path& plan, const std::filesystem::path& measured) {
  const JsonDocument document = JsonDocument::parse(read_file(plan), plan.string());
  const JsonNode root = document.root();
  const auto format = root.find("format");
  if (!format || !format->is_text() || format->text() != "rubato-plan") {
    throw DataError(fmt::format("{}: is no plan file", plan.string()),
                    {.in = {}, .hint = "'rubato export --plan' writes one"});
  }
  const TimeWindows windows = read_windows(measured);
  const JsonNode played = plan_measured(root, windows, measured.string());
  const JsonNode promise = played.at("promise");
  const auto gpu = root.find("gpu");
  Verification found{.plan_path = plan.string(),
                     .measured_path = measured.string(),
                     .granularity = played.at("granularity").text(),
                     .gpu = gpu ? gpu->at("spec").text() : "unknown",
                     .source = root.at("run").at("work").text(),
                     .plan_time_s = promise.at("time_s").number(Range::positive),
                     .plan_energy_j = promise.at("energy_j").number(Range::positive),
                     .pairs = windows.pairs.size(),
                     .promised_energy = promised(promise, "energy"),
                     .promised_time = promised(promise, "time"),
                     .measured_energy = change_over(windows.pairs, &Window::energy_j),
                     .measured_time = change_over(windows.pairs, &Window::time_s),
                     .default_power_w = windows.default_power_w,
                     .plan_power_w = windows.plan_power_w};
  found.energy = saving_verdict(found.promised_energy, found.measured_energy);
  found.time = verdict_of(found.promised_time, found.measured_time);
  return found;
}

}  // namespace rubato
