#pragma once
// Models as interchangeable parts: time and energy of a kernel at a clock, whichever model says so.
// Models fill tables, solvers read tables, and a model is chosen by name. docs/models.md,
// section 12.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/calibration/sweep.hpp"
#include "models/kernel/model.hpp"

namespace rubato {

/// What models are fitted to. Points have time and power, one per clock, under one power limit
/// (measured_table.hpp, one_setting).
struct ModelData {
  const GpuSpec& spec;   ///< clocks and memory states; some models use voltage and GPU parameters
  const Sweep& kernels;  ///< what was measured of the kernels that are modelled
  const Sweep& others;   ///< other kernels on the same GPU, for what all share; may hold none
};

/// What a fit rests on.
struct ModelFit {
  std::size_t least_points = 0, most_points = 0;  ///< per kernel; 0: nothing was fitted
  std::size_t own = 0;                            ///< numbers fitted per kernel
  std::size_t shared = 0;                         ///< numbers fitted for all kernels together
  std::string assumed;                            ///< what no point says, in words; may be empty
};

/// A ModelFit with the points counted.
[[nodiscard]] ModelFit fit_to(const ModelData& data, std::size_t own, std::size_t shared,
                              std::string assumed);

/// Time and energy of some kernels on one GPU.
class CellModel {
 public:
  CellModel() = default;
  CellModel(const CellModel&) = delete;
  CellModel& operator=(const CellModel&) = delete;
  virtual ~CellModel() = default;

  /// One launch. @param kernel  its position in ModelData::kernels
  /// @throws DataError if the model has no value there (a table without that cell)
  [[nodiscard]] virtual OperatingPoint at(std::size_t kernel, const ClockPair& clock) const = 0;

  [[nodiscard]] const ModelFit& fit() const noexcept { return fit_; }

 protected:
  ModelFit fit_;
};

/// A model by name.
struct CellModelKind {
  std::string_view name;
  std::string_view help;  ///< one line
  std::size_t points;     ///< least points of each kernel that a fit needs
  std::unique_ptr<CellModel> (*fit)(const ModelData& data);
};

/// All of them; the built-in model first.
[[nodiscard]] std::span<const CellModelKind> cell_model_kinds();

/// The model of that name; null if there is none.
[[nodiscard]] const CellModelKind* cell_model_kind(std::string_view name);

/// @throws DataError if a kernel has fewer points than the model needs
[[nodiscard]] std::unique_ptr<CellModel> fit_cell_model(const CellModelKind& kind,
                                                        const ModelData& data);

/// A table that was measured or that another program wrote. Nothing is fitted.
/// @param table    must hold all kernels, by name
/// @param kernels  the names, in the order of their positions
/// @throws DataError naming kernels that are missing, or the first cell without time or power
[[nodiscard]] std::unique_ptr<CellModel> table_model(const Sweep& table, const GpuSpec& spec,
                                                     std::span<const std::string> kernels);

/// Names of the kernels of a sweep, in order.
[[nodiscard]] std::vector<std::string> kernel_names(const Sweep& sweep);

}  // namespace rubato
