#include "tools/commands/published/kareus2026.hpp"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "explorer/published.hpp"
#include "models/gpu/spec.hpp"
#include "sim/sharing/fit.hpp"

namespace rubato {

namespace {

// A row of the table, and what it says of time and energy.
void add_row(PublishedSection& section, const char* predicted, const char* fitted,
             const OverlapErrors& errors, Difference& time, Difference& energy) {
  for (const double error : errors.time) time.add(0.0, percent * error);
  for (const double error : errors.energy) energy.add(0.0, percent * error);
  section.table.add_row({std::string(predicted), std::string(fitted),
                         static_cast<std::int64_t>(errors.time.size()),
                         percent * OverlapErrors::mean_magnitude(errors.time),
                         percent * OverlapErrors::worst_magnitude(errors.time),
                         percent * OverlapErrors::mean_magnitude(errors.energy),
                         percent * OverlapErrors::worst_magnitude(errors.energy)});
}

// Windows drew up to 348 W: what is shipped was fitted with a limit that does not bind.
GpuSpec without_limit(GpuSpec spec) {
  spec.power_limit.limit_w = 500.0;
  return spec;
}

// Errors on the rows at a locked clock, or on the others, of a fit to the rest.
OverlapErrors of_one_clock(const GpuSpec& a100, const std::vector<OverlapRow>& rows, bool locked) {
  std::vector<OverlapRow> held, others;
  for (const OverlapRow& row : rows)
    (row.core_mhz.has_value() == locked ? held : others).push_back(row);
  return overlap_errors(a100, fit_overlap(a100, others), held);
}

}  // namespace

Reproduction reproduce_kareus2026() {
  PublishedSection section{
      .key = "errors",
      .heading =
          "Errors of a block's time and energy, %, by how SMs, window, block size and clock "
          "are left out of the fit",
      .seen = "Fitted: these measurements, but for what a row leaves out.",
      .table = OutputTable({{"predicted"},
                            {"fitted_to", "fitted to"},
                            {"settings"},
                            {"mean_time_error_pct", "time, mean", 2},
                            {"worst_time_error_pct", "worst", 2},
                            {"mean_energy_error_pct", "energy, mean", 2},
                            {"worst_energy_error_pct", "worst", 2}})};
  const GpuSpec a100 = without_limit(load_gpu_spec("a100-sxm4-80gb"));
  const std::vector<OverlapRow> rows = overlap_rows(published_data("overlap"), "overlap.csv");
  const auto of = [](const char* what, SeenByFit seen = SeenByFit::no) {
    return Difference{.what = std::string("Energy of a block beside an all-reduce") + what,
                      .unit = "%",
                      .seen = seen,
                      .headline = seen == SeenByFit::no};
  };
  const auto time_of = [](Difference energy) {
    energy.what.replace(0, std::string_view("Energy").size(), "Time");
    energy.headline = false;
    return energy;
  };
  Difference seen = of("", SeenByFit::yes), settings = of(", other settings fitted"),
             clocks = of(", other clock fitted");
  Difference seen_time = time_of(seen), settings_time = time_of(settings),
             clocks_time = time_of(clocks);
  add_row(section, "all", "all", overlap_errors(a100, fit_overlap(a100, rows), rows), seen_time,
          seen);
  for (const auto& [fold, predicted, fitted] :
       {std::tuple{OverlapFold::comm_sms, "each SM count", "the others"},
        {OverlapFold::window, "each window", "the others"},
        {OverlapFold::block_threads, "each block size", "the other"}})
    add_row(section, predicted, fitted, cross_validated(a100, rows, fold), settings_time, settings);
  add_row(section, "1200 MHz", "auto", of_one_clock(a100, rows, true), clocks_time, clocks);
  add_row(section, "auto", "1200 MHz", of_one_clock(a100, rows, false), clocks_time, clocks);
  section.differences = {settings, clocks, settings_time, clocks_time, seen, seen_time};
  return {.name = "kareus2026",
          .title =
              "Kareus, OSDI 2026: the attention block of a GPT beside an all-reduce on two "
              "A100 (models/data/measured/kareus_a100_overlap).",
          .sections = {std::move(section)}};
}

}  // namespace rubato
