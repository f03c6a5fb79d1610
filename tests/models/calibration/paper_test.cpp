// Is the model close to what was published? The bars are the project's own.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/csv.hpp"
#include "models/calibration/sweep.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/paths.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

// Of all kernels at the clocks of their own least energy: the text of the paper.
constexpr double least_energy_time_change_pct = 84.0, least_energy_change_pct = -36.9;
constexpr std::size_t last_forward_kernel = 15;  // the classifier's loss

struct PaperKernel {
  KernelId kernel;
  double count, auto_time_s, auto_energy_j;
  ClockPair best_clock;
  double best_time_change_pct, best_energy_change_pct;
};

struct PaperPassPoint {
  ClockPair clock;
  double time_change_pct, energy_change_pct;
};

// The published numbers, bound to the trace and to a spec that was fitted to them.
struct Paper {
  explicit Paper(std::string_view gpu = "rtx-3080-ti") : spec(load_gpu_spec(gpu)) {
    const auto number = [](const CsvTable& table, std::size_t row, std::string_view column) {
      ErrorList errors;
      const auto value = table.number(row, table.column(column), Range::any, errors);
      errors.throw_if_any();
      return value.value();
    };
    const auto clock = [&](const CsvTable& table, std::size_t row, std::string_view mem,
                           std::string_view core) {
      return grid[grid.find(table.cell(row, table.column(mem)) + "/" +
                            table.cell(row, table.column(core)))
                      .value()];
    };
    const CsvTable one = CsvTable::read(measured_data("spaan2026/kernels.csv"));
    for (std::size_t row = 0; row < one.rows(); ++row) {
      kernels.push_back(
          {id_at<KernelId>(row), number(one, row, "count"), number(one, row, "auto_time_s"),
           number(one, row, "auto_energy_j"), clock(one, row, "best_mem", "best_core"),
           number(one, row, "best_time_change_pct"), number(one, row, "best_energy_change_pct")});
    }
    const CsvTable pass = CsvTable::read(measured_data("spaan2026/pass_forward_sweep.csv"));
    for (std::size_t row = 0; row < pass.rows(); ++row) {
      forward_pass.push_back({clock(pass, row, "mem_mhz", "core_mhz"),
                              number(pass, row, "time_change_pct"),
                              number(pass, row, "energy_change_pct")});
    }
  }

  GpuSpec spec;
  Trace trace = load_trace("gpt3-xl");
  ClockGrid grid = make_clock_grid(spec, "paper");
  GpuModel model{spec, trace};
  std::vector<PaperKernel> kernels;
  std::vector<PaperPassPoint> forward_pass;
};

// Mean absolute error of the changes at each kernel's published clock, points.
std::pair<double, double> table1_points(const Paper& paper) {
  double time_points = 0.0, energy_points = 0.0;
  for (const PaperKernel& row : paper.kernels) {
    const OperatingPoint base = paper.model.evaluate(row.kernel, paper.spec.default_clock);
    const OperatingPoint best = paper.model.evaluate(row.kernel, row.best_clock);
    time_points += std::abs(100.0 * (best.time_s / base.time_s - 1.0) - row.best_time_change_pct);
    energy_points +=
        std::abs(100.0 * (best.energy_j / base.energy_j - 1.0) - row.best_energy_change_pct);
  }
  return {time_points / 46.0, energy_points / 46.0};
}

// Mean absolute error of the forward pass at the pairs from memory 810 MHz, %.
std::pair<double, double> forward_sweep_pct(const Paper& paper) {
  const auto sums = [&](const ClockPair& clock) {
    double time_s = 0.0, energy_j = 0.0;
    for (std::size_t i = 0; i <= last_forward_kernel; ++i) {
      const PaperKernel& row = paper.kernels[i];
      const OperatingPoint point = paper.model.evaluate(row.kernel, clock);
      time_s += row.count * point.time_s;
      energy_j += row.count * point.energy_j;
    }
    return std::pair(time_s, energy_j);
  };
  const auto [base_s, base_j] = sums(paper.spec.default_clock);
  double time_pct = 0.0, energy_pct = 0.0;
  int pairs = 0;
  for (const PaperPassPoint& row : paper.forward_pass) {
    if (paper.spec.mem_states[index(row.clock.mem)].mem_mhz < 800.0) continue;
    const auto [time_s, energy_j] = sums(row.clock);
    time_pct += 100.0 * std::abs(time_s / base_s / (1.0 + row.time_change_pct / 100.0) - 1.0);
    energy_pct += 100.0 * std::abs(energy_j / base_j / (1.0 + row.energy_change_pct / 100.0) - 1.0);
    ++pairs;
  }
  EXPECT_EQ(pairs, 55);
  return {time_pct / pairs, energy_pct / pairs};
}

TEST(SpaanPaper, ChangesOfTable1AndTheForwardSweepAreMet) {
  const Paper paper;
  const auto [time_points, energy_points] = table1_points(paper);
  EXPECT_LE(time_points, 0.8);
  EXPECT_LE(energy_points, 1.5);
  const auto [time_pct, energy_pct] = forward_sweep_pct(paper);
  EXPECT_LE(time_pct, 2.5);
  EXPECT_LE(energy_pct, 3.0);
}

// The errors that the specs say of themselves are those of their numbers, by today's formulas.
TEST(SpaanPaper, SpecsHaveTheErrorsThatTheySay) {
  for (const char* name : {"rtx-3080-ti", "rtx-3080-ti-without-table1"}) {
    const Paper paper(name);
    const auto& said = paper.spec.fit_errors;
    const auto [time_points, energy_points] = table1_points(paper);
    EXPECT_NEAR(time_points, said.at("table1_time_mae_points"), 1e-3) << name;
    EXPECT_NEAR(energy_points, said.at("table1_energy_mae_points"), 1e-3) << name;
    const auto [time_pct, energy_pct] = forward_sweep_pct(paper);
    EXPECT_NEAR(time_pct, said.at("forward_sweep_time_mape_pct"), 1e-3) << name;
    EXPECT_NEAR(energy_pct, said.at("forward_sweep_energy_mape_pct"), 1e-3) << name;
  }
}

// Most GEMMs take least energy at memory 810 MHz: the one published number about times there
// beside those of the forward pass.
TEST(SpaanPaper, TimeAtLeastEnergyIsMet) {
  for (const char* name : {"rtx-3080-ti", "rtx-3080-ti-without-table1"}) {
    const Paper paper(name);
    double default_s = 0.0, default_j = 0.0, least_s = 0.0, least_j = 0.0;
    for (const PaperKernel& row : paper.kernels) {
      const OperatingPoint base = paper.model.evaluate(row.kernel, paper.spec.default_clock);
      OperatingPoint least = base;
      for (const ClockPair& clock : paper.grid.pairs()) {
        const OperatingPoint point = paper.model.evaluate(row.kernel, clock);
        if (point.energy_j < least.energy_j) least = point;
      }
      default_s += row.count * base.time_s;
      default_j += row.count * base.energy_j;
      least_s += row.count * least.time_s;
      least_j += row.count * least.energy_j;
    }
    EXPECT_NEAR(100.0 * (least_s / default_s - 1.0), least_energy_time_change_pct, 5.0) << name;
    EXPECT_NEAR(100.0 * (least_j / default_j - 1.0), least_energy_change_pct, 0.5) << name;
  }
}

TEST(SpaanPaper, DefaultTimesAndEnergiesAreMet) {
  const Paper paper;
  for (const PaperKernel& row : paper.kernels) {
    const OperatingPoint base = paper.model.evaluate(row.kernel, paper.spec.default_clock);
    EXPECT_NEAR(base.time_s / row.auto_time_s, 1.0, 0.01) << index(row.kernel);
    EXPECT_NEAR(base.energy_j / row.auto_energy_j, 1.0, 0.03) << index(row.kernel);
  }
}

// Memory states of the RTX 3080 Ti: none beyond its sheet (384 bit, two transfers per cycle), and
// low ones no nearer to it than high ones, so that nothing bound by DRAM is faster there than
// physics allows.
TEST(SpaanPaper, LowMemoryClocksReachNoMoreOfTheSheetThanHighOnes) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const auto reached = [&](const char* name) {
    const auto state = std::ranges::find(spec.mem_states, name, &MemState::name);
    return state->bandwidth_gbs * 1e3 / (96.0 * state->mem_mhz);
  };
  for (const MemState& state : spec.mem_states)
    EXPECT_LE(reached(state.name.c_str()), 1.0) << state.name;
  EXPECT_LT(reached("405"), reached("810"));
  EXPECT_LT(reached("810"), reached("9501"));
}

// Streaming kernels of the other card say how the bandwidths of memory states compare.
TEST(SpaanPaper, BandwidthsFollowStreamingKernels) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const auto sweep = read_sweep(measured_data("rtx3080ti_kernels/kernels.csv"), spec).kernels;
  const auto bandwidth = [&](const std::string& name) {
    return std::ranges::find(spec.mem_states, name, &MemState::name)->bandwidth_gbs;
  };
  for (const char* mem : {"810", "5001"}) {
    double longest = 0.0;  // against 9501 MHz, over all kernels: what DRAM alone bounds
    for (const SweepKernel& kernel : sweep) {
      std::optional<double> here, top;
      for (const SweepPoint& point : kernel.points) {
        const std::string& name = spec.mem_states[index(point.clock.mem)].name;
        if (!point.clock.core_mhz || *point.clock.core_mhz < 1850.0) continue;
        if (name == mem) here = point.time_s;
        if (name == "9501") top = point.time_s;
      }
      if (here && top) longest = std::max(longest, *here / *top);
    }
    EXPECT_NEAR(bandwidth("9501") / bandwidth(mem) / longest, 1.0, 0.07) << mem;
  }
}

}  // namespace
}  // namespace rubato
