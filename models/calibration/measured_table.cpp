#include "models/calibration/measured_table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
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

// Measurements of one kernel at one clock.
struct Repeats {
  ClockPair clock;
  std::vector<double> times_s, energies_j;
};

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::string clock_text(const GpuSpec& spec, const ClockPair& clock) {
  return fmt::format("{}/{}", spec.mem_states[index(clock.mem)].name,
                     clock.core_mhz ? fmt::format("{:g}", *clock.core_mhz) : "auto");
}

void expect_agreement(const std::string& kernel, const std::string& clock, std::string_view what,
                      const std::vector<double>& values) {
  constexpr double most = 0.25;
  const auto [low, high] = std::ranges::minmax(values);
  if (high <= (1.0 + most) * low) return;
  throw DataError(
      fmt::format("kernel '{}' at {}: {} from {:g} to {:g} in one cell; expected repeats within "
                  "{:.0f} %",
                  printable(kernel), clock, what, low, high, percent * most),
      {.in = {}, .hint = "rows of several runs or GPUs? choose with --where COLUMN=VALUE"});
}

// Clocks in order of memory state, then core clock; those without a bound last.
bool slower(const ClockPair& a, const ClockPair& b) {
  constexpr double unbounded = 1e9;
  return std::pair(a.mem.value, a.core_mhz.value_or(unbounded)) <
         std::pair(b.mem.value, b.core_mhz.value_or(unbounded));
}

// By clock.
std::vector<Repeats> repeats_of(const SweepKernel& kernel, const GpuSpec& spec) {
  std::map<ClockPair, Repeats, decltype(&slower)> by_clock(&slower);
  for (const SweepPoint& point : kernel.points) {
    if (!point.time_s || !point.power_w) {
      throw DataError(
          fmt::format("kernel '{}' at {}: {} is missing; a table needs time, and energy "
                      "or power",
                      printable(kernel.name), clock_text(spec, point.clock),
                      point.time_s ? "power_w" : "time_s"));
    }
    Repeats& cell = by_clock.try_emplace(point.clock, Repeats{point.clock, {}, {}}).first->second;
    cell.times_s.push_back(*point.time_s);
    cell.energies_j.push_back(*point.time_s * *point.power_w);
  }
  std::vector<Repeats> cells;
  for (auto& [clock, cell] : by_clock) cells.push_back(std::move(cell));
  for (const Repeats& cell : cells) {
    if (cell.times_s.size() == 1) continue;
    expect_agreement(kernel.name, clock_text(spec, cell.clock), "time_s", cell.times_s);
    expect_agreement(kernel.name, clock_text(spec, cell.clock), "energy_j", cell.energies_j);
  }
  return cells;
}

// Pooled over cells.
std::optional<RepeatNoise> noise_of(const std::vector<std::vector<Repeats>>& kernels) {
  RepeatNoise noise;
  const auto squares = [](const std::vector<double>& values) {
    const double middle = mean(values);
    double sum = 0.0;
    for (const double value : values) sum += (value / middle - 1.0) * (value / middle - 1.0);
    return sum;
  };
  for (const auto& cells : kernels) {
    for (const Repeats& cell : cells) {
      noise.repeats += cell.times_s.size() - 1;
      noise.time += squares(cell.times_s);
      noise.energy += squares(cell.energies_j);
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
              .provenance = {.generator = "sweep", .source = sweep.file, .options = ""},
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
          {.in = {}, .hint = "'--missing model' fills the cells that were not measured"});
    if (const std::size_t left = all.clocks().size() - clocks.size(); left > 0) {
      notes.push_back(fmt::format(
          "{} of {} clocks are left out: some kernel was not measured there ('--missing model' "
          "fills such cells)",
          left, all.clocks().size()));
    }
  }
  std::ranges::sort(clocks, slower);
  return clocks;
}

// The default clock, if it can be chosen; else the highest one takes its place.
void keep_default_clock(MeasuredTable& table) {
  if (std::ranges::find(table.clocks, table.spec.default_clock) != table.clocks.end()) return;
  const auto mem_mhz = [&](const ClockPair& clock) {
    return table.spec.mem_states[index(clock.mem)].mem_mhz;
  };
  const ClockPair highest =
      *std::ranges::max_element(table.clocks, [&](const auto& a, const auto& b) {
        return mem_mhz(a) != mem_mhz(b) ? mem_mhz(a) < mem_mhz(b) : slower(a, b);
      });
  table.notes.push_back(fmt::format("the default clock {} was not measured: changes are against {}",
                                    clock_text(table.spec, table.spec.default_clock),
                                    clock_text(table.spec, highest)));
  table.spec.default_clock = highest;
}

// Cells of all kernels of the trace at the clocks of the sweep.
MeasuredCells cells_of(const std::vector<std::vector<Repeats>>& kernels, const GpuSpec& spec) {
  std::set<ClockPair, decltype(&slower)> clocks(&slower);
  for (const auto& cells : kernels) {
    for (const Repeats& cell : cells) clocks.insert(cell.clock);
  }
  MeasuredCells all(kernels.size(), {clocks.begin(), clocks.end()});
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    for (const Repeats& cell : kernels[k]) {
      all.set(id_at<KernelId>(k), cell.clock,
              {.time_s = mean(cell.times_s),
               .energy_j = mean(cell.energies_j),
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

MeasuredTable measured_table(const Sweep& sweep, const GpuSpec& spec,
                             const std::optional<Trace>& trace, MissingCells missing) {
  MeasuredTable table{.trace = trace ? *trace : trace_of(sweep),
                      .spec = spec,
                      .cells = {},
                      .clocks = {},
                      .noise = {},
                      .modelled = 0,
                      .notes = {}};
  const std::vector<std::size_t> position = matched(table.trace, sweep);
  std::vector<std::vector<Repeats>> kernels;
  for (const std::size_t k : position) kernels.push_back(repeats_of(sweep.kernels[k], spec));
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
