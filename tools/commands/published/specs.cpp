#include "tools/commands/published/specs.hpp"

#include "models/validation/shipped_fits.hpp"

namespace rubato {

Reproduction held_out_errors() {
  PublishedSection section{.key = "specs",
                           .heading = "Mean absolute errors on points that the fit had not seen, %",
                           .seen =
                               "k-fold: all is fitted without a fifth of every kernel's points. "
                               "Left out: the GPU is fitted "
                               "without a fifth of the kernels, which then get five points each.",
                           .table = OutputTable({{.key = "spec", .whole = true},
                                                 {"measured"},
                                                 {"k_fold_time_pct", "k-fold time", 2},
                                                 {"k_fold_power_pct", "power", 2},
                                                 {"k_fold_energy_pct", "energy", 2},
                                                 {"left_out_time_pct", "left out time", 2},
                                                 {"left_out_power_pct", "power", 2},
                                                 {"left_out_energy_pct", "energy", 2}})};
  Difference off{.what = "Energy of kernels that the fit left out, of each spec",
                 .unit = "%",
                 .headline = true};
  for (const ShippedFit& fit : shipped_fits()) {
    const GpuSpec spec = load_gpu_spec(fit.spec);
    std::vector<Cell> row{std::string(fit.spec), std::string(fit.data)};
    for (const char* error :
         {"k_fold_time_mape_pct", "k_fold_power_mape_pct", "k_fold_energy_mape_pct",
          "kernels_left_out_5_points_time_mape_pct", "kernels_left_out_5_points_power_mape_pct",
          "kernels_left_out_5_points_energy_mape_pct"}) {
      auto found = spec.fit_errors.find(error);
      if (found == spec.fit_errors.end() &&
          std::string_view(error).ends_with("points_power_mape_pct"))
        found = spec.fit_errors.find("kernels_left_out_power_mape_pct");
      const bool known = found != spec.fit_errors.end();
      if (known && std::string_view(error) == "kernels_left_out_5_points_energy_mape_pct")
        off.add(0.0, found->second);
      row.push_back(known ? Cell(found->second) : Cell());
    }
    section.table.add_row(std::move(row));
  }
  section.differences = {off};
  section.notes =
      "As the specs carry them; `rubato calibrate --shipped all` makes them again. Kernels of "
      "utilisation "
      "specs (power only) are left out without points of their own.\n";
  return {
      .name = "measurements",
      .title =
          "Specs made from public measurements: sources in models/data/measured and docs/gpus.md.",
      .sections = {section}};
}

}  // namespace rubato
