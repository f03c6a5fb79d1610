#include "models/measured/measured_table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/calibration/sweep_fit.hpp"
#include "models/gpu/clock_grid.hpp"

namespace rubato {

namespace {

// Clocks in order of memory state, then core clock, then power limit; those without a bound last.
bool slower(const ClockPair& a, const ClockPair& b) {
  static constexpr double unbounded = 1e9;
  const auto key = [](const ClockPair& clock) {
    return std::tuple(clock.mem.value, clock.core_mhz.value_or(unbounded),
                      clock.power_limit_w.value_or(unbounded));
  };
  return key(a) < key(b);
}

// Where several power limits were measured, each is a setting of its own, but the spec's.
// @param notes  say which limits the card did not keep
Sweep with_limits(Sweep sweep, const GpuSpec& spec, std::vector<std::string>& notes) {
  constexpr double kept = 1.02;  // of the limit: readings pass one that is kept by a little
  const double usual_w = spec.power_limit.limit_w;
  std::set<double> limits_w;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points)
      limits_w.insert(point.power_cap_w.value_or(usual_w));
  }
  if (limits_w.size() < 2) return sweep;
  std::map<double, double> drawn_w;  // the most under each limit
  for (SweepKernel& kernel : sweep.kernels) {
    for (SweepPoint& point : kernel.points) {
      const double limit_w = point.power_cap_w.value_or(usual_w);
      drawn_w[limit_w] = std::max(drawn_w[limit_w], point.power_w.value_or(0.0));
      if (limit_w != usual_w) point.clock.power_limit_w = limit_w;
    }
  }
  for (const auto& [limit_w, most_w] : drawn_w) {
    if (most_w > kept * limit_w)
      notes.push_back(
          fmt::format("a limit of {:g} W is not kept: up to {:.0f} W were drawn; it "
                      "counts with what was drawn",
                      limit_w, most_w));
  }
  return sweep;
}

// Mean of a quantity over the repeats of a cell, and the sum of their squared relative deviations.
struct Repeated {
  double mean = 0.0, squares = 0.0;
};

// @param values  of one cell, at least one
Repeated repeated(const SweepKernel& kernel, const std::string& clock, std::string_view what,
                  std::span<const double> values) {
  if (values.size() == 1) return {values.front(), 0.0};
  constexpr double most = 0.25;
  const auto [low, high] = std::ranges::minmax(values);
  if (high > (1.0 + most) * low) {
    throw DataError(
        fmt::format("kernel '{}' at {}: {} from {:g} to {:g} in one cell; expected repeats within "
                    "{:.0f} %",
                    printable(kernel.name), clock, what, low, high, percent * most),
        {.in = {},
         .hint = "rows of several runs or GPUs? choose with 'where' in the table's description "
                 "(TOML)"});
  }
  Repeated out{.mean = sum(values) / static_cast<double>(values.size()), .squares = 0.0};
  for (const double value : values)
    out.squares += (value / out.mean - 1.0) * (value / out.mean - 1.0);
  return out;
}

CellMean mean_of(const SweepKernel& kernel, const GpuSpec& spec,
                 std::span<const SweepPoint* const> points) {
  const ClockPair& clock = points.front()->clock;
  std::vector<double> times_s, energies_j;
  for (const SweepPoint* point : points) {
    times_s.push_back(*point->time_s);
    energies_j.push_back(*point->time_s * *point->power_w);
  }
  const std::string at = points.size() > 1 ? clock_text(spec, clock) : std::string{};
  const Repeated time = repeated(kernel, at, "time_s", times_s);
  const Repeated energy = repeated(kernel, at, "energy_j", energies_j);
  return {.clock = clock,
          .time_s = time.mean,
          .energy_j = energy.mean,
          .repeats = points.size() - 1,
          .time_squares = time.squares,
          .energy_squares = energy.squares};
}

// Pooled over cells.
std::optional<RepeatNoise> noise_of(const std::vector<std::vector<CellMean>>& kernels) {
  RepeatNoise noise;
  for (const auto& cells : kernels) {
    for (const CellMean& cell : cells) {
      noise.repeats += cell.repeats;
      noise.time += cell.time_squares;
      noise.energy += cell.energy_squares;
    }
  }
  if (noise.repeats == 0) return std::nullopt;
  const auto freedom = static_cast<double>(noise.repeats);
  noise.time = std::sqrt(noise.time / freedom);
  noise.energy = std::sqrt(noise.energy / freedom);
  return noise;
}

Trace trace_of(const Sweep& sweep) {
  Trace trace{.name = sweep.file,
              .provenance = {.generator = table_generator, .source = sweep.file, .options = ""},
              .captured = {},
              .kernels = {},
              .segments = {}};
  for (const SweepKernel& measured : sweep.kernels) {
    Kernel kernel;
    kernel.name = kernel.label = measured.name;
    kernel.pass = measured.pass;
    trace.segments.push_back({.name = measured.name,
                              .repeat = measured.count,
                              .launches = {id_at<KernelId>(trace.kernels.size())}});
    trace.kernels.push_back(std::move(kernel));
  }
  return trace;
}

// Which kernel of the sweep each kernel of the trace is.
std::vector<std::size_t> matched(const Trace& trace, const Sweep& sweep) {
  std::map<std::string_view, std::size_t> position;
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) position.emplace(sweep.kernels[k].name, k);
  std::vector<std::size_t> found;
  std::vector<std::string> missing;
  for (const Kernel& kernel : trace.kernels) {
    auto at = position.find(kernel.name);
    if (at == position.end()) at = position.find(kernel.label);
    if (at == position.end())
      missing.push_back(printable(kernel.name));
    else
      found.push_back(at->second);
  }
  if (missing.empty()) return found;
  constexpr std::size_t few = 5;
  const std::size_t count = missing.size();
  if (count > few) missing.resize(few);
  throw DataError(
      fmt::format("{}: {} of {} kernels of the trace were not measured: {}{}", sweep.file, count,
                  trace.kernels.size(), fmt::join(missing, ", "), count > few ? ", ..." : ""),
      {.in = {}, .hint = "the table's column 'kernel' holds the names or labels of the trace"});
}

// The clocks to choose from; notes say what became of the others.
std::vector<ClockPair> chosen_clocks(const MeasuredCells& all, MissingCells missing,
                                     std::vector<std::string>& notes) {
  std::vector<ClockPair> clocks(all.clocks().begin(), all.clocks().end());
  if (missing == MissingCells::leave_out) {
    std::erase_if(clocks, [&](const ClockPair& c) { return all.measured_at(c) < all.kernels(); });
    if (clocks.empty())
      throw DataError(
          "no clock has all kernels measured",
          {.in = {}, .hint = "missing = \"model\" in the table's description (TOML) fills them"});
    if (const std::size_t left = all.clocks().size() - clocks.size(); left > 0) {
      notes.push_back(fmt::format(
          "{} of {} clocks are left out: some kernel was not measured there (missing = \"model\" "
          "in the table's description fills such cells)",
          left, all.clocks().size()));
    }
  }
  std::ranges::sort(clocks, slower);
  return clocks;
}

// The default clock, if it can be chosen; else the highest one takes its place.
void keep_default_clock(MeasuredTable& table) {
  const ClockPair highest = usual_clock(table.spec, table.clocks);
  if (highest == table.spec.default_clock) return;
  table.notes.push_back(fmt::format("the default clock {} was not measured: changes are against {}",
                                    clock_text(table.spec, table.spec.default_clock),
                                    clock_text(table.spec, highest)));
  table.spec.default_clock = highest;
}

// Cells of all kernels of the trace at the clocks of the sweep.
MeasuredCells cells_of(const std::vector<std::vector<CellMean>>& kernels, const GpuSpec& spec) {
  std::set<ClockPair, decltype(&slower)> clocks(&slower);
  for (const auto& cells : kernels) {
    for (const CellMean& cell : cells) clocks.insert(cell.clock);
  }
  MeasuredCells all(kernels.size(), {clocks.begin(), clocks.end()});
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    for (const CellMean& cell : kernels[k]) {
      all.set(id_at<KernelId>(k), cell.clock,
              {.time_s = cell.time_s,
               .energy_j = cell.energy_j,
               .core_mhz = effective_core_mhz(spec, cell.clock),
               .power_limited = false});
    }
  }
  return all;
}

// The spec with each kernel of the trace fitted to its own points.
void fit_missing(const Sweep& sweep, const std::vector<std::size_t>& position,
                 MeasuredTable& table) {
  Sweep own = sweep;
  own.kernels.clear();
  for (std::size_t k = 0; k < position.size(); ++k) {
    own.kernels.push_back(sweep.kernels[position[k]]);
    own.kernels.back().name = table.trace.kernels[k].name;
  }
  for (CalibratedKernel& kernel : fit_kernels(table.spec, own)) {
    std::erase_if(table.spec.kernels,
                  [&](const CalibratedKernel& old) { return old.name == kernel.name; });
    table.spec.kernels.push_back(std::move(kernel));
  }
}

}  // namespace

std::string clock_text(const GpuSpec& spec, const ClockPair& clock) {
  return fmt::format("{}/{}{}", spec.mem_states[index(clock.mem)].name,
                     clock.core_mhz ? fmt::format("{:g}", *clock.core_mhz) : "auto",
                     clock.power_limit_w ? fmt::format(", {:g} W", *clock.power_limit_w) : "");
}

std::vector<CellMean> cell_means(const SweepKernel& kernel, const GpuSpec& spec) {
  std::vector<const SweepPoint*> by_clock;
  for (const SweepPoint& point : kernel.points) {
    if (!point.time_s || !point.power_w) {
      throw DataError(
          fmt::format("kernel '{}' at {}: {} is missing; a table needs time, and energy "
                      "or power",
                      printable(kernel.name), clock_text(spec, point.clock),
                      point.time_s ? "power_w" : "time_s"));
    }
    by_clock.push_back(&point);
  }
  const auto earlier = [](const SweepPoint* a, const SweepPoint* b) {
    return slower(a->clock, b->clock);
  };
  if (!std::ranges::is_sorted(by_clock, earlier)) std::ranges::stable_sort(by_clock, earlier);
  std::vector<CellMean> cells;
  for (std::size_t first = 0, end = 0; first < by_clock.size(); first = end) {
    while (end < by_clock.size() && by_clock[end]->clock == by_clock[first]->clock) ++end;
    cells.push_back(mean_of(kernel, spec, std::span(by_clock).subspan(first, end - first)));
  }
  return cells;
}

Sweep one_setting(const Sweep& sweep, const GpuSpec& spec) {
  std::optional<double> largest_w;
  for (const SweepKernel& kernel : sweep.kernels) {
    for (const SweepPoint& point : kernel.points)
      largest_w = std::max(largest_w, point.power_cap_w);
  }
  Sweep out = sweep;
  for (SweepKernel& kernel : out.kernels) {
    std::erase_if(kernel.points, [&](const SweepPoint& point) {
      return !point.time_s || !point.power_w ||
             (largest_w && point.power_cap_w.value_or(*largest_w) < *largest_w);
    });
    std::vector<SweepPoint> means;
    for (const CellMean& cell : cell_means(kernel, spec)) {
      const auto first = std::ranges::find(kernel.points, cell.clock, &SweepPoint::clock);
      means.push_back(*first);
      means.back().time_s = cell.time_s;
      means.back().power_w = cell.energy_j / cell.time_s;
    }
    kernel.points = std::move(means);
  }
  std::erase_if(out.kernels, [](const SweepKernel& kernel) { return kernel.points.empty(); });
  return out;
}

ClockPair usual_clock(const GpuSpec& spec, std::span<const ClockPair> clocks) {
  if (std::ranges::find(clocks, spec.default_clock) != clocks.end()) return spec.default_clock;
  const auto mem_mhz = [&](const ClockPair& clock) {
    return spec.mem_states[index(clock.mem)].mem_mhz;
  };
  return *std::ranges::max_element(clocks, [&](const auto& a, const auto& b) {
    return mem_mhz(a) != mem_mhz(b) ? mem_mhz(a) < mem_mhz(b) : slower(a, b);
  });
}

std::optional<Sweep> at_settable_clocks(const Sweep& sweep, const GpuSpec& spec,
                                        std::vector<std::string>& notes) {
  if (!sweep.applied_clocks) return std::nullopt;
  std::optional<Sweep> moved;
  std::size_t count = 0;
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    for (std::size_t i = 0; i < sweep.kernels[k].points.size(); ++i) {
      const std::optional<double> observed = sweep.kernels[k].points[i].clock.core_mhz;
      if (!observed) continue;
      const double nearest = nearest_step_mhz(spec, *observed);
      // A clock of 1102.5 MHz is written 1102 or 1103 where it is set.
      const bool settable = *observed >= std::floor(nearest) && *observed <= std::ceil(nearest) &&
                            (*observed == nearest || *observed == std::floor(*observed));
      if (settable || std::abs(*observed - nearest) > 0.5 * spec.core.step_mhz) continue;
      if (!moved) moved = sweep;
      moved->kernels[k].points[i].clock.core_mhz = nearest;
      ++count;
    }
  }
  if (count > 0) {
    notes.push_back(fmt::format(
        "{} of {} rows were observed beside the clocks that can be set ({:g} MHz apart): "
        "taken as the nearest of those",
        count, sweep.points(), spec.core.step_mhz));
  }
  return moved;
}

MeasuredTable measured_table(const Sweep& read, const GpuSpec& spec,
                             const std::optional<Trace>& trace, MissingCells missing) {
  std::vector<std::string> notes;
  const std::optional<Sweep> moved = at_settable_clocks(read, spec, notes);
  const Sweep sweep = with_limits(moved ? *moved : read, spec, notes);
  MeasuredTable table{.trace = trace ? *trace : trace_of(sweep),
                      .spec = spec,
                      .cells = {},
                      .clocks = {},
                      .noise = {},
                      .modelled = 0,
                      .notes = std::move(notes)};
  const std::vector<std::size_t> position = matched(table.trace, sweep);
  std::vector<std::vector<CellMean>> kernels;
  for (const std::size_t k : position) kernels.push_back(cell_means(sweep.kernels[k], spec));
  if (kernels.size() < sweep.kernels.size() && trace) {
    table.notes.push_back(fmt::format("{} of {} kernels of the table are not in the trace",
                                      sweep.kernels.size() - kernels.size(), sweep.kernels.size()));
  }
  table.noise = noise_of(kernels);
  const MeasuredCells all = cells_of(kernels, spec);
  table.clocks = chosen_clocks(all, missing, table.notes);
  keep_default_clock(table);
  auto cells = std::make_shared<MeasuredCells>(kernels.size(), table.clocks);
  for (const ClockPair& clock : table.clocks) {
    table.modelled += all.kernels() - all.measured_at(clock);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const auto id = id_at<KernelId>(k);
      if (const OperatingPoint* cell = all.find(id, clock)) cells->set(id, clock, *cell);
    }
  }
  table.cells = std::move(cells);
  if (table.modelled > 0) {
    fit_missing(sweep, position, table);
    const std::size_t count = table.clocks.size() * kernels.size();
    table.notes.push_back(fmt::format(
        "{} of {} cells ({:.1f} %) were not measured: the model, fitted to the same kernel, fills "
        "them",
        table.modelled, count,
        percent * static_cast<double>(table.modelled) / static_cast<double>(count)));
  }
  return table;
}

}  // namespace rubato
