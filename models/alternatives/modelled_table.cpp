#include "models/alternatives/modelled_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rubato {

namespace {

// The measured cells as points of the trace's kernels, under the largest power cap.
Sweep points_of(const MeasuredTable& table, const Sweep& sweep) {
  std::optional<double> power_cap_w;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points)
      power_cap_w = std::max(power_cap_w, point.power_cap_w);
  }
  Sweep points{.file = sweep.file,
               .gpu = sweep.gpu,
               .applied_clocks = sweep.applied_clocks,
               .kernels = {},
               .idle = {},
               .left_out = {}};
  for (std::size_t k = 0; k < table.trace.kernels.size(); ++k) {
    SweepKernel kernel{.name = table.trace.kernels[k].name, .points = {}};
    for (const ClockPair& clock : table.clocks) {
      const OperatingPoint* cell = table.cells->find(id_at<KernelId>(k), clock);
      if (cell == nullptr) continue;
      kernel.points.push_back({.clock = clock,
                               .time_s = cell->time_s,
                               .power_w = cell->energy_j / cell->time_s,
                               .power_cap_w = power_cap_w,
                               .dram_bytes = {}});
    }
    points.kernels.push_back(std::move(kernel));
  }
  return points;
}

}  // namespace

ModelledTable modelled_table(const CellModelKind& kind, const MeasuredTable& table,
                             const Sweep& sweep) {
  const Sweep points = points_of(table, sweep);
  Sweep nothing = points;
  nothing.kernels.clear();
  const auto model = fit_cell_model(kind, {table.spec, points, nothing});
  auto cells = std::make_shared<MeasuredCells>(points.kernels.size(), table.clocks);
  ModelledTable out{.cells = {}, .fit = model->fit()};
  for (std::size_t k = 0; k < points.kernels.size(); ++k) {
    const auto id = id_at<KernelId>(k);
    for (const ClockPair& clock : table.clocks) {
      const OperatingPoint point = model->at(k, clock);
      cells->set(id, clock, point);
      const OperatingPoint* measured = table.cells->find(id, clock);
      if (measured == nullptr) continue;
      out.missed_time += std::pow(point.time_s / measured->time_s - 1.0, 2);
      out.missed_energy += std::pow(point.energy_j / measured->energy_j - 1.0, 2);
    }
  }
  const auto count = static_cast<double>(points.points());
  out.missed_time = std::sqrt(out.missed_time / count);
  out.missed_energy = std::sqrt(out.missed_energy / count);
  out.cells = std::move(cells);
  return out;
}

}  // namespace rubato
