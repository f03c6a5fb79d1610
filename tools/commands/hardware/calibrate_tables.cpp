#include "tools/commands/hardware/calibrate_tables.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// What a spec's errors were found on, the ones that say most of how far to trust it first.
struct FoundOn {
  std::string_view prefix, words;
};
constexpr std::array found_on{
    FoundOn{"k_fold", "points that the fit had not seen"},
    FoundOn{"kernels_left_out_5_points", "kernels it had not seen, by five points of each"},
    FoundOn{"kernels_left_out", "kernels it had not seen"},
    FoundOn{"clocks_left_out", "clocks beyond those it had seen"},
    FoundOn{"other_kernels", "other kernels of the sweep"},
    FoundOn{"forward_sweep", "the sweep of the forward pass"},
    FoundOn{"residual", "what it was fitted to"},
};

std::optional<double> mean_error_pct(const GpuSpec& spec, std::string_view prefix,
                                     std::string_view quantity) {
  const auto found = spec.fit_errors.find(fmt::format("{}_{}_mape_pct", prefix, quantity));
  return found == spec.fit_errors.end() ? std::nullopt : std::optional(found->second);
}

// "time 1.22 %, power 0.63 %"; empty where nothing was found on it.
std::string errors_text(const GpuSpec& spec, std::string_view prefix) {
  std::string errors;
  for (const char* quantity : {"time", "power", "energy"}) {
    const auto error_pct = mean_error_pct(spec, prefix, quantity);
    if (!error_pct) continue;
    errors +=
        fmt::format("{}{} {} %", errors.empty() ? "" : ", ", quantity, format_fixed(*error_pct, 2));
  }
  return errors;
}

}  // namespace

OutputTable error_table(const GpuSpec& spec) {
  OutputTable table({{"error"}, {"value", "", 3}});
  for (const auto& [name, value] : spec.fit_errors) table.add_row({name, value});
  return table;
}

std::string frame_note(const GpuSpec& frame) {
  std::string text = fmt::format("The GPU's own parameters are kept, those of {}", frame.name);
  for (const FoundOn& on : found_on) {
    const std::string errors = errors_text(frame, on.prefix);
    if (errors.empty()) continue;
    return text +
           fmt::format("; the errors of that fit, not of this one: {} on {}.", errors, on.words);
  }
  return text + ".";
}

std::string fit_answer(const GpuSpec& spec) {
  for (const FoundOn& on : found_on) {
    const std::string errors = errors_text(spec, on.prefix);
    if (errors.empty()) continue;
    return std::string()
        .append(fmt::format("Mean absolute error on {}: ", on.words))
        .append(errors)
        .append(".");
  }
  return {};
}

OutputTable mean_errors_table(const GpuSpec& spec) {
  OutputTable table({{.key = "found_on", .title = "mean absolute error on", .whole = true},
                     {"time_pct", "time %", 2},
                     {"power_pct", "power %", 2},
                     {"energy_pct", "energy %", 2}});
  for (const FoundOn& on : found_on) {
    std::vector<Cell> row{std::string(on.words)};
    bool any = false;
    for (const char* quantity : {"time", "power", "energy"}) {
      const auto error_pct = mean_error_pct(spec, on.prefix, quantity);
      any = any || error_pct.has_value();
      row.push_back(error_pct ? Cell(*error_pct) : Cell());
    }
    if (any) table.add_row(std::move(row));
  }
  return table;
}

OutputTable parameter_table(const SweepFit& fit) {
  OutputTable table({{"parameter"},
                     {"value", "", 4},
                     {"low_95", "95 % from"},
                     {"high_95", "to"},
                     {"unit"},
                     {"identified"}});
  for (const FittedParameter& p : fit.parameters)
    table.add_row({p.name, p.value, p.low, p.high, p.unit, p.identified});
  return table;
}

std::string fit_notes(const SweepFit& fit, const std::string& out) {
  std::string text;
  for (const std::string& note : fit.notes) text += note + '\n';
  const auto open = std::ranges::count(fit.parameters, false, &FittedParameter::identified);
  if (open > 0) {
    text += fmt::format(
        "{} of {} parameters are not identified: they rest on the prior, not on these "
        "measurements.\n",
        open, fit.parameters.size());
  }
  return text + fmt::format("next: rubato explore gpt3-xl --gpu {}\n", printable(out));
}

}  // namespace rubato
