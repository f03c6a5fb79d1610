#include "tools/commands/published/spaan2026_figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "explorer/published.hpp"
#include "models/table/gpu_model.hpp"

namespace rubato {

namespace {

// Fig. 3's forward pass ends with the loss, see models/calibration/paper_data.cpp.
constexpr std::size_t last_forward_kernel = 15;

// Relative errors of ours, %.
struct Errors {
  std::vector<double> time, energy;
  [[nodiscard]] static double mean(const std::vector<double>& errors) {
    double sum = 0.0;
    for (const double error : errors) sum += std::abs(error) / static_cast<double>(errors.size());
    return sum;
  }
  [[nodiscard]] static double worst(const std::vector<double>& errors) {
    return *std::ranges::max_element(errors, {}, [](double e) { return std::abs(e); });
  }
};

// The forward pass at one clock pair, all of its kernels.
Cost forward_pass(const GpuModel& model, const Trace& trace, const ClockPair& clock) {
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  Cost sum{0.0, 0.0};
  for (std::size_t k = 0; k <= last_forward_kernel; ++k) {
    const OperatingPoint point = model.evaluate(id_at<KernelId>(k), clock);
    sum.time_s += static_cast<double>(counts[k]) * point.time_s;
    sum.energy_j += static_cast<double>(counts[k]) * point.energy_j;
  }
  return sum;
}

// The errors by memory clock, in their order.
OutputTable error_summary(const std::vector<std::string>& memories,
                          const std::map<std::string, Errors>& errors) {
  OutputTable summary({{"memory", "memory MHz"},
                       {"clocks"},
                       {"time_mape_pct", "time, mean", 2},
                       {"time_worst_pct", "worst", 2},
                       {"energy_mape_pct", "energy, mean", 2},
                       {"energy_worst_pct", "worst", 2}});
  for (const std::string& memory : memories) {
    const Errors& e = errors.at(memory);
    summary.add_row({memory, static_cast<std::int64_t>(e.time.size()), Errors::mean(e.time),
                     Errors::worst(e.time), Errors::mean(e.energy), Errors::worst(e.energy)});
  }
  return summary;
}

}  // namespace

PublishedSection spaan2026_figure3(const ExplorationInput& input, const ExplorationInput& blind) {
  PublishedSection section{
      .key = "figure3",
      .heading = "Figure 3: the forward pass at all 66 clock pairs, error of ours in %",
      .seen = "Fitted: both specs have seen this sweep (memory 405 MHz least).",
      .table = OutputTable({{"clock"},
                            {"published_time_pct", "paper time %", 2},
                            {"time_pct", "ours", 2},
                            {"time_without_table1_pct", "blind", 2},
                            {"published_energy_pct", "paper energy %", 2},
                            {"energy_pct", "ours", 2},
                            {"energy_without_table1_pct", "blind", 2}})};
  const PublishedTable sweep("pass_forward_sweep");
  const GpuModel ours(input.spec, input.trace), without(blind.spec, blind.trace);
  const Cost base = forward_pass(ours, input.trace, input.spec.default_clock),
             blind_base = forward_pass(without, blind.trace, blind.spec.default_clock);
  std::map<std::string, Errors> errors;
  Difference off{
      .what = "Energy of the forward pass at 66 clocks", .unit = "points", .seen = SeenByFit::yes};
  std::vector<std::string> memories;
  for (std::size_t row = 0; row < sweep.rows(); ++row) {
    const std::string &mem = sweep.text(row, "mem_mhz"), &core = sweep.text(row, "core_mhz");
    const ClockPair clock = parse_clock_pair(input.spec, fmt::format("{}/{}", mem, core));
    const Cost here = forward_pass(ours, input.trace, clock),
               blind_here = forward_pass(without, blind.trace, clock);
    const double time_pct = sweep.number(row, "time_change_pct"),
                 energy_pct = sweep.number(row, "energy_change_pct");
    const Cost found{change_pct(here.time_s, base.time_s),
                     change_pct(here.energy_j, base.energy_j)};
    section.table.add_row({fmt::format("{}/{}", mem, core), time_pct, found.time_s,
                           change_pct(blind_here.time_s, blind_base.time_s), energy_pct,
                           found.energy_j, change_pct(blind_here.energy_j, blind_base.energy_j)});
    off.add(energy_pct, found.energy_j);
    errors[mem].time.push_back(change_pct(100.0 + found.time_s, 100.0 + time_pct));
    errors[mem].energy.push_back(change_pct(100.0 + found.energy_j, 100.0 + energy_pct));
    if (memories.empty() || memories.back() != mem) memories.push_back(mem);
  }
  section.differences = {off};
  section.summary = error_summary(memories, errors);
  section.charts =
      R"([{"title": "Energy over time", "pairs": [["time_pct", "energy_pct", "ours"],
        ["published_time_pct", "published_energy_pct", "published"]]}])";
  return section;
}

PublishedSection spaan2026_figure5(const ExplorationInput& input, const ClockGrid& grid) {
  PublishedSection section{
      .key = "figure5",
      .heading =
          "Figure 5: time and energy of each kernel, default, least and most over 66 clock pairs, "
          "error of ours in %",
      .seen = "Fitted: both specs have seen these numbers.",
      .table = OutputTable({{"kernel"},
                            {"quantity"},
                            {"published", "", 7},
                            {"ours", "", 7},
                            {"error_pct", "error %", 2}}),
      .summary = OutputTable(
          {{"quantity"}, {"kernels"}, {"mape_pct", "mean error %", 2}, {"worst_pct", "worst", 2}})};
  const PublishedTable kernels("kernels");
  const GpuModel model(input.spec, input.trace);
  std::map<std::string, std::vector<double>> errors;
  for (std::size_t k = 0; k < kernels.rows(); ++k) {
    const auto kernel = id_at<KernelId>(k);
    const OperatingPoint at_default = model.evaluate(kernel, input.spec.default_clock);
    OperatingPoint least = at_default, most = at_default;
    for (const ClockPair& clock : grid.pairs()) {
      const OperatingPoint point = model.evaluate(kernel, clock);
      least.time_s = std::min(least.time_s, point.time_s);
      least.energy_j = std::min(least.energy_j, point.energy_j);
      most.time_s = std::max(most.time_s, point.time_s);
      most.energy_j = std::max(most.energy_j, point.energy_j);
    }
    for (const auto& [column, ours] : {std::pair{"auto_time_s", at_default.time_s},
                                       {"min_time_s", least.time_s},
                                       {"max_time_s", most.time_s},
                                       {"auto_energy_j", at_default.energy_j},
                                       {"min_energy_j", least.energy_j},
                                       {"max_energy_j", most.energy_j}}) {
      const double published = kernels.number(k, column);
      const std::string& name = input.trace.kernels[k].name;
      section.table.add_row(
          {name, std::string(column), published, ours, change_pct(ours, published)});
      errors[column].push_back(change_pct(ours, published));
    }
  }
  for (const char* column : {"auto_time_s", "min_time_s", "max_time_s", "auto_energy_j",
                             "min_energy_j", "max_energy_j"}) {
    section.summary->add_row({std::string(column), static_cast<std::int64_t>(errors[column].size()),
                              Errors::mean(errors[column]), Errors::worst(errors[column])});
  }
  section.charts =
      R"([{"title": "Times, s", "pairs": [["published", "ours", "time"]], "where": ["quantity", "time"],
        "by": "quantity", "log": "xy", "diagonal": true, "band": 5}, {"title": "Energies, J",
        "pairs": [["published", "ours", "energy"]], "where": ["quantity", "energy"], "by": "quantity",
        "log": "xy", "diagonal": true, "band": 5}])";
  return section;
}

}  // namespace rubato
