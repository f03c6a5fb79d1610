#include "models/alternatives/cell_model.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "models/alternatives/measured_table.hpp"
#include "models/alternatives/textbook.hpp"
#include "models/alternatives/utilisation.hpp"
#include "models/calibration/sweep_fit.hpp"

namespace rubato {

namespace {

// The formulas of docs/models.md with the GPU's parameters from the spec.
class BuiltInModel final : public CellModel {
 public:
  explicit BuiltInModel(const ModelData& data)
      : spec_(data.spec),
        kernels_(fit_kernels(data.spec, data.kernels)),
        applied_clocks_(data.kernels.applied_clocks) {
    for (const SweepKernel& kernel : data.kernels.kernels)
      power_caps_w_.push_back(kernel.points.front().power_cap_w);
    fit_ =
        fit_to(data, KernelCoefficients::count, 0,
               "the GPU's parameters are the spec's; what points leave open of a kernel is as of "
               "those the spec knows");
  }

  [[nodiscard]] OperatingPoint at(std::size_t kernel, const ClockPair& clock) const override {
    SweepPoint point;
    point.clock = clock;
    point.power_cap_w = power_caps_w_[kernel];
    return predict(spec_, kernels_[kernel].coefficients, point, applied_clocks_);
  }

 private:
  GpuSpec spec_;
  std::vector<CalibratedKernel> kernels_;
  std::vector<std::optional<double>> power_caps_w_;
  bool applied_clocks_;
};

// Cells as they are written.
class TableModel final : public CellModel {
 public:
  TableModel(const Sweep& table, const GpuSpec& spec, std::span<const std::string> kernels)
      : spec_(spec), file_(table.file), names_(kernels.begin(), kernels.end()) {
    std::map<std::string_view, const SweepKernel*> known;
    for (const SweepKernel& kernel : table.kernels) known.emplace(kernel.name, &kernel);
    std::vector<std::string> missing;
    for (const std::string& name : kernels) {
      const auto found = known.find(name);
      if (found == known.end())
        missing.push_back(printable(name));
      else
        cells_.push_back(cell_means(*found->second, spec));
    }
    if (missing.empty()) return;
    constexpr std::size_t few = 5;
    const std::size_t count = missing.size();
    if (count > few) missing.resize(few);
    throw DataError(
        fmt::format("{}: {} of {} kernels are missing: {}{}", printable(file_), count,
                    kernels.size(), fmt::join(missing, ", "), count > few ? ", ..." : ""),
        {.in = {}, .hint = "the table's column 'kernel' holds the names of the sweep"});
  }

  [[nodiscard]] OperatingPoint at(std::size_t kernel, const ClockPair& clock) const override {
    const std::vector<CellMean>& cells = cells_[kernel];
    const auto found = std::ranges::find(cells, clock, &CellMean::clock);
    if (found == cells.end()) {
      throw DataError(fmt::format("{}: kernel '{}' has no cell at {}", printable(file_),
                                  printable(names_[kernel]), clock_text(spec_, clock)),
                      {.in = {},
                       .hint = "a table used as a model holds every kernel at every "
                               "clock that is asked for"});
    }
    return {.time_s = found->time_s,
            .energy_j = found->energy_j,
            .core_mhz = clock.core_mhz.value_or(effective_core_mhz(spec_, clock)),
            .power_limited = false};
  }

 private:
  const GpuSpec spec_;
  std::string file_;
  std::vector<std::string> names_;
  std::vector<std::vector<CellMean>> cells_;
};

template <class Model>
std::unique_ptr<CellModel> made(const ModelData& data) {
  return std::make_unique<Model>(data);
}

constexpr std::array kinds{
    CellModelKind{"builtin", "Rubato's own: core and DRAM time that overlap, energy by voltage", 1,
                  &made<BuiltInModel>},
    CellModelKind{"cmos", "P = c f V^2 + constant, V the spec's; time by roofline", 2,
                  &made<CmosModel>},
    CellModelKind{"guerreiro",
                  "power by use of core and memory, V fitted (Guerreiro et al., HPCA 2018); time "
                  "by roofline",
                  2, &made<UtilisationPowerModel>},
    CellModelKind{"linear", "time linear in 1/f, power linear in f", 2, &made<LinearModel>}};

}  // namespace

ModelFit fit_to(const ModelData& data, std::size_t own, std::size_t shared, std::string assumed) {
  ModelFit fit{.own = own, .shared = shared, .assumed = std::move(assumed)};
  const auto by_points = [](const SweepKernel& kernel) { return kernel.points.size(); };
  if (data.kernels.kernels.empty()) return fit;
  fit.least_points = by_points(*std::ranges::min_element(data.kernels.kernels, {}, by_points));
  fit.most_points = by_points(*std::ranges::max_element(data.kernels.kernels, {}, by_points));
  return fit;
}

std::span<const CellModelKind> cell_model_kinds() { return kinds; }

const CellModelKind* cell_model_kind(std::string_view name) {
  const auto found = std::ranges::find(kinds, name, &CellModelKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

std::unique_ptr<CellModel> fit_cell_model(const CellModelKind& kind, const ModelData& data) {
  if (data.kernels.kernels.empty())
    throw DataError(fmt::format("model '{}' has no kernel to be fitted to", kind.name));
  for (const SweepKernel& kernel : data.kernels.kernels) {
    if (kernel.points.size() >= kind.points) continue;
    throw DataError(fmt::format("kernel '{}' has {} point{}; model '{}' needs {} at least",
                                printable(kernel.name), kernel.points.size(),
                                kernel.points.size() == 1 ? "" : "s", kind.name, kind.points));
  }
  return kind.fit(data);
}

std::unique_ptr<CellModel> table_model(const Sweep& table, const GpuSpec& spec,
                                       std::span<const std::string> kernels) {
  return std::make_unique<TableModel>(table, spec, kernels);
}

std::vector<std::string> kernel_names(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const SweepKernel& kernel : sweep.kernels) names.push_back(kernel.name);
  return names;
}

}  // namespace rubato
