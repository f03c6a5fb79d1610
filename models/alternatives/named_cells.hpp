#pragma once
// A model whose kernels are found by name: for runs that hold other kernels as well.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/alternatives/cell_model.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// A model, and the position of each of its kernels by name.
class NamedCells {
 public:
  /// @param kernels  names of the model's kernels, in the order of their positions
  NamedCells(std::unique_ptr<CellModel> model, std::span<const std::string> kernels);

  /// Position of the kernel of that name, else label. Nothing: the model does not know it.
  [[nodiscard]] std::optional<std::size_t> find(const Kernel& kernel) const;

  /// @throws what CellModel::at throws
  [[nodiscard]] OperatingPoint at(std::size_t kernel, const ClockPair& clock) const {
    return model_->at(kernel, clock);
  }

 private:
  std::unique_ptr<CellModel> model_;
  std::map<std::string, std::size_t> position_;
};

/// A sweep's cells, or what a model fitted to them says of its kernels.
/// @param kind   null: the cells themselves
/// @param notes  gets what a reader must know, a line each
/// @throws DataError if no row has time and power; what fit_cell_model and table_model throw
[[nodiscard]] std::shared_ptr<const NamedCells> named_cells(const Sweep& sweep, const GpuSpec& spec,
                                                            const CellModelKind* kind,
                                                            std::vector<std::string>& notes);

}  // namespace rubato
