#include "models/measured/named_cells.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

NamedCells::NamedCells(const Sweep& sweep, const GpuSpec& spec) : spec_(spec), file_(sweep.file) {
  for (const SweepKernel& kernel : sweep.kernels) {
    position_.emplace(kernel.name, names_.size());
    names_.push_back(kernel.name);
    cells_.push_back(cell_means(kernel, spec));
  }
}

std::optional<std::size_t> NamedCells::find(const Kernel& kernel) const {
  auto found = position_.find(kernel.name);
  if (found == position_.end()) found = position_.find(kernel.label);
  return found == position_.end() ? std::nullopt : std::optional(found->second);
}

OperatingPoint NamedCells::at(std::size_t kernel, const ClockPair& clock) const {
  const auto found = std::ranges::find(cells_[kernel], clock, &CellMean::clock);
  if (found == cells_[kernel].end()) {
    throw DataError(
        fmt::format("{}: kernel '{}' has no cell at {}", printable(file_),
                    printable(names_[kernel]), clock_text(spec_, clock)),
        {.in = {}, .hint = "the table must hold the kernel at every clock that is asked for"});
  }
  return {.time_s = found->time_s,
          .energy_j = found->energy_j,
          .core_mhz = clock.core_mhz.value_or(effective_core_mhz(spec_, clock)),
          .power_limited = false};
}

std::shared_ptr<const NamedCells> named_cells(const Sweep& sweep, const GpuSpec& spec,
                                              std::vector<std::string>& notes) {
  const std::optional<Sweep> moved = at_settable_clocks(sweep, spec, notes);
  const Sweep points = one_setting(moved ? *moved : sweep, spec);
  if (points.kernels.empty())
    throw DataError(fmt::format("{}: no row has time and power (or energy)", sweep.file));
  return std::make_shared<const NamedCells>(points, spec);
}

}  // namespace rubato
