#include "explorer/given_plan.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "common/csv.hpp"
#include "common/error.hpp"
#include "common/suggest.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

StoredPlan parse_given_plan(std::string_view csv, const std::string& name, const GpuSpec& spec,
                            const std::string& grid) {
  const CsvTable table = CsvTable::parse(csv, name);
  table.expect_columns({"kernel", "mem", "core"});
  const std::size_t kernel = table.column("kernel"), mem = table.column("mem"),
                    core = table.column("core");
  const ClockGrid clocks = make_clock_grid(spec, grid);
  StoredPlan plan{.plan_id = 0,
                  .trace = name,
                  .question = {Granularity::kernel, Aggregation::global, LeastWaste{}},
                  .clock_of_kernel = {},
                  .spec = spec,
                  .grid = grid_name(spec, grid),
                  .power_limit_w = spec.power_limit.limit_w,
                  .switching = {}};
  ErrorList errors;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string clock = fmt::format("{}/{}", table.cell(row, mem), table.cell(row, core));
    if (!clocks.find(clock)) {
      errors.add(fmt::format("{}: {} has no clock {} among '{}'", table.where(row), spec.name,
                             clock, plan.grid));
      continue;
    }
    if (!plan.clock_of_kernel.emplace(table.cell(row, kernel), clock).second)
      errors.add(fmt::format("{}: kernel '{}' has a clock in an earlier row", table.where(row),
                             table.cell(row, kernel)));
  }
  errors.throw_if_any({.in = {}, .hint = "--clocks says which clocks there are, e.g. full"});
  if (plan.clock_of_kernel.empty()) throw DataError(fmt::format("{} has no kernels", name));
  return plan;
}

void require_known_kernels(const StoredPlan& plan, std::span<const Trace> traces) {
  std::set<std::string> names;
  for (const Trace& trace : traces)
    for (const Kernel& kernel : trace.kernels) names.insert(kernel.name);
  for (const auto& [kernel, clock] : plan.clock_of_kernel) {
    if (names.contains(kernel)) continue;
    throw UsageError(
        fmt::format("{}: kernel '{}' is in none of the traces{}", plan.trace, kernel,
                    did_you_mean(kernel, std::vector<std::string>(names.begin(), names.end()))));
  }
}

}  // namespace rubato
