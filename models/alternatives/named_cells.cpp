#include "models/alternatives/named_cells.hpp"

#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "models/alternatives/measured_table.hpp"

namespace rubato {

NamedCells::NamedCells(std::unique_ptr<CellModel> model, std::span<const std::string> kernels)
    : model_(std::move(model)) {
  for (const std::string& name : kernels) position_.emplace(name, position_.size());
}

std::optional<std::size_t> NamedCells::find(const Kernel& kernel) const {
  auto found = position_.find(kernel.name);
  if (found == position_.end()) found = position_.find(kernel.label);
  return found == position_.end() ? std::nullopt : std::optional(found->second);
}

std::shared_ptr<const NamedCells> named_cells(const Sweep& sweep, const GpuSpec& spec,
                                              const CellModelKind* kind,
                                              std::vector<std::string>& notes) {
  const std::optional<Sweep> moved = at_settable_clocks(sweep, spec, notes);
  const Sweep points = one_setting(moved ? *moved : sweep, spec);
  if (points.kernels.empty())
    throw DataError(fmt::format("{}: no row has time and power (or energy)", sweep.file));
  Sweep nothing = points;
  nothing.kernels.clear();
  const std::vector<std::string> names = kernel_names(points);
  auto model = kind != nullptr ? fit_cell_model(*kind, {spec, points, nothing})
                               : table_model(points, spec, names);
  return std::make_shared<const NamedCells>(std::move(model), names);
}

}  // namespace rubato
