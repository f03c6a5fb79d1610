#include "tools/options/model.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "common/suggest.hpp"
#include "common/text.hpp"
#include "tools/options/sweep.hpp"

namespace rubato {

std::string model_names() {
  std::string names;
  for (const CellModelKind& kind : cell_model_kinds())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
  return names;
}

UsageError unknown_model(const std::string& name_or_file) {
  std::vector<std::string> known{std::string(measured_model)};
  for (const CellModelKind& kind : cell_model_kinds()) known.emplace_back(kind.name);
  return UsageError(
      fmt::format("--model '{}' is neither a model nor a file{}", printable(name_or_file),
                  did_you_mean(name_or_file, known)),
      {.in = {},
       .hint = fmt::format("{}, {}, or a CSV with kernel, core_mhz, time_s and power_w or energy_j",
                           model_names(), measured_model)});
}

ModelChoice model_choice(const std::string& name_or_file, const GpuSpec& spec, const Sweep& own) {
  if (name_or_file == measured_model) return {.name = name_or_file, .kind = nullptr, .table = own};
  if (const CellModelKind* kind = cell_model_kind(name_or_file))
    return {.name = name_or_file, .kind = kind, .table = {}};
  if (std::filesystem::exists(name_or_file)) {
    SweepOptions table;
    table.file = name_or_file;
    return {.name = name_or_file, .kind = nullptr, .table = load_sweep(table, spec)};
  }
  throw unknown_model(name_or_file);
}

}  // namespace rubato
