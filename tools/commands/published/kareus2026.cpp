#include "tools/commands/published/kareus2026.hpp"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/numbers.hpp"
#include "explorer/published_data.hpp"
#include "models/gpu/spec.hpp"
#include "sim/sharing/fit.hpp"

namespace rubato {

namespace {

void add_row(OutputTable& table, const char* predicted, const char* fitted,
             const OverlapErrors& errors) {
  table.add_row({std::string(predicted), std::string(fitted),
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

// Of the rows at a locked clock, or of the others, by a fit to the rest.
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
  add_row(section.table, "all", "all", overlap_errors(a100, fit_overlap(a100, rows), rows));
  for (const auto& [fold, predicted, fitted] :
       {std::tuple{OverlapFold::comm_sms, "each SM count", "the others"},
        {OverlapFold::window, "each window", "the others"},
        {OverlapFold::block_threads, "each block size", "the other"}})
    add_row(section.table, predicted, fitted, cross_validated(a100, rows, fold));
  add_row(section.table, "1200 MHz", "auto", of_one_clock(a100, rows, true));
  add_row(section.table, "auto", "1200 MHz", of_one_clock(a100, rows, false));
  return {.name = "kareus2026",
          .title =
              "Kareus, OSDI 2026: the attention block of a GPT beside an all-reduce on two "
              "A100 (models/data/measured/kareus_a100_overlap).",
          .sections = {std::move(section)}};
}

}  // namespace rubato
