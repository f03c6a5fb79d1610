#include "models/table/fill.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <tbb/global_control.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tests/uniform.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

// ---- Cells, against the formulas of docs/models.md in long double ----

using Real = long double;

Real voltage(const GpuSpec& spec, const MemState& mem, Real mhz) {
  const auto& [xs, ys] = spec.voltage;
  std::size_t i = 0;
  while (i + 2 < xs.size() && mhz > xs[i + 1]) ++i;
  Real v = ys[i];
  if (mhz > xs[0] && xs.size() > 1)
    v += (mhz - xs[i]) * (static_cast<Real>(ys[i + 1]) - ys[i]) /
         (static_cast<Real>(xs[i + 1]) - xs[i]);
  return 1.0L + (v - 1.0L) * mem.voltage_scale;
}

// Relative to the core side's bytes per cycle, x clock.
Real carried_mhz(const GpuSpec& spec, Real mhz) {
  const auto& [xs, ys] = spec.crossbar;
  if (xs.empty()) return mhz;
  if (mhz <= xs.front()) return ys.front() * mhz;
  if (mhz >= xs.back()) return ys.back() * mhz;
  std::size_t i = 0;
  while (mhz > xs[i + 1]) ++i;
  const Real low = static_cast<Real>(xs[i]) * ys[i],
             high = static_cast<Real>(xs[i + 1]) * ys[i + 1];
  return low + (mhz - xs[i]) * (high - low) / (static_cast<Real>(xs[i + 1]) - xs[i]);
}

// (a^p + b^p)^(1/p) for any sign of p.
Real p_norm(Real a, Real b, Real p) {
  const Real more = std::max(a, b), less = std::min(a, b);
  const Real main = p > 0.0L ? more : less, other = p > 0.0L ? less : more;
  return main * std::pow(1.0L + std::pow(other / main, p), 1.0L / p);
}

Cost expected_cost(const GpuSpec& spec, const MemState& mem, double core_mhz,
                   const KernelCoefficients& c) {
  const Real f = core_mhz, v = voltage(spec, mem, f);
  const Real core_side = 1e6L * spec.shared.crossbar_bytes_per_cycle * carried_mhz(spec, f);
  const Real bytes_per_s = p_norm(1e9L * mem.bandwidth_gbs, core_side,
                                  -static_cast<Real>(spec.shared.bandwidth_exponent));
  const Real p = static_cast<Real>(spec.shared.overlap_exponent) * c.overlap_scale;
  const Real time = p_norm(c.core_cycles / (f * 1e6L), c.dram_bytes / bytes_per_s, p) + c.fixed_s;
  const Real idle =
      mem.base_power_w +
      (spec.shared.leakage_w + static_cast<Real>(spec.shared.clock_w_per_mhz) * f) * v * v;
  const Real energy = idle * c.idle_scale * time + c.core_j * v * v +
                      1e-9L * spec.shared.dram_nj_per_byte * c.dram_bytes;
  return {static_cast<double>(time), static_cast<double>(energy)};
}

double worst_error(const OperatingPoint& found, const Cost& expected) {
  return std::max(std::abs(found.time_s / expected.time_s - 1.0),
                  std::abs(found.energy_j / expected.energy_j - 1.0));
}

TEST(TableCells, FollowTheFormulasOnEveryShippedGpu) {
  const Trace trace = load_trace("gpt3-xl");
  double worst = 0.0;
  for (const std::string& name : shipped_gpu_specs()) {
    const GpuSpec spec = load_gpu_spec(name);
    const GpuModel model(spec, trace);
    for (const MemState& mem : spec.mem_states) {
      for (double mhz = spec.core.min_mhz; mhz <= spec.core.max_mhz; mhz += spec.core.step_mhz) {
        const ClockState state = clock_state(spec, mem, mhz);
        for (std::size_t k = 0; k < model.kernels(); ++k) {
          const KernelCoefficients& c = model.coefficients(id_at<KernelId>(k));
          worst = std::max(
              worst, worst_error(unlimited_point(state, c), expected_cost(spec, mem, mhz, c)));
        }
      }
    }
  }
  RecordProperty("worst", fmt::format("{}", worst));
  EXPECT_LT(worst, 2e-15);
}

// log2 of a number far from 1 has an absolute error of half a unit in the last place of the
// exponent, which the overlap turns into a relative one.
RC_GTEST_PROP(TableCells, FollowTheFormulasForAnyCoefficients, ()) {
  static const std::vector<std::string> names = shipped_gpu_specs();
  const GpuSpec spec = load_gpu_spec(names[*rc::gen::inRange<std::size_t>(0, names.size())]);
  const auto any_size = [] { return std::pow(10.0, uniform(-100.0, 100.0)); };
  const bool zero = *rc::gen::inRange(0, 10) == 0;
  const KernelCoefficients c{.core_cycles = zero ? 0.0 : any_size(),
                             .dram_bytes = any_size(),
                             .fixed_s = any_size(),
                             .core_j = any_size(),
                             .limit_scale = 1.0,
                             .overlap_scale = std::exp(uniform(-2.0, 3.0)),
                             .idle_scale = uniform(0.1, 1.0)};
  const MemState& mem = spec.mem_states[*rc::gen::inRange<std::size_t>(0, spec.mem_states.size())];
  const double mhz = uniform(spec.core.min_mhz, 2.0 * spec.core.max_mhz);
  const OperatingPoint found = unlimited_point(clock_state(spec, mem, mhz), c);
  const double error = worst_error(found, expected_cost(spec, mem, mhz, c));
  RC_LOG() << error;
  RC_ASSERT(error < 4e-15);
}

// ---- Tables ----

bool same_bits(const ProfileTable& a, const ProfileTable& b) {
  const std::size_t bytes = a.rows() * a.clocks() * sizeof(double);
  return a.rows() == b.rows() && a.clocks() == b.clocks() &&
         std::memcmp(a.times_s(0).data(), b.times_s(0).data(), bytes) == 0 &&
         std::memcmp(a.energies_j(0).data(), b.energies_j(0).data(), bytes) == 0;
}

ProfileTable one_by_one(const GpuModel& model, const ClockGrid& grid) {
  std::vector<double> time_s, energy_j;
  for (std::size_t k = 0; k < model.kernels(); ++k) {
    for (const ClockPair& clock : grid.pairs()) {
      const OperatingPoint point = model.evaluate(id_at<KernelId>(k), clock);
      time_s.push_back(point.time_s);
      energy_j.push_back(point.energy_j);
    }
  }
  return {model.kernels(), grid.size(), std::move(time_s), std::move(energy_j)};
}

// A grid of arbitrary clocks in arbitrary order: memory states come and go.
ClockGrid arbitrary_grid(const GpuSpec& spec) {
  std::vector<ClockPair> pairs;
  const auto steps = static_cast<int>((spec.core.max_mhz - spec.core.min_mhz) / spec.core.step_mhz);
  const int size = *rc::gen::inRange(1, 200);
  for (int i = 0; i < size; ++i) {
    ClockPair pair{id_at<MemStateId>(*rc::gen::inRange<std::size_t>(0, spec.mem_states.size())),
                   spec.core.min_mhz + spec.core.step_mhz * *rc::gen::inRange(0, steps)};
    if (*rc::gen::inRange(0, 20) == 0) pair.core_mhz.reset();
    if (std::ranges::find(pairs, pair) == pairs.end()) pairs.push_back(pair);
  }
  return {spec, pairs};
}

RC_GTEST_PROP(FillTable, HasTheBitsOfTheSimulatorOnEveryInstructionSet, ()) {
  static const std::vector<std::string> names = shipped_gpu_specs();
  static const Trace trace = load_trace("gpt3-xl");
  const GpuSpec spec = load_gpu_spec(names[*rc::gen::inRange<std::size_t>(0, names.size())]);
  const double limit_w = uniform(spec.power_limit.min_w, spec.power_limit.max_w);
  const GpuModel model(spec, trace, limit_w);
  const ClockGrid grid = arbitrary_grid(spec);
  const ProfileTable expected = one_by_one(model, grid);
  for (const TableCells& loops : table_cells())
    RC_ASSERT(same_bits(fill_profile_table(model, grid, loops), expected));
  const auto points = evaluate_all(model, grid);
  RC_ASSERT(same_bits(profile_table(points, model.kernels(), grid.size()), expected));
}

TEST(FillTable, HasTheSameBitsForAnyNumberOfThreads) {
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), load_trace("gpt3-xl"));
  const ClockGrid grid = make_clock_grid(model.spec(), "full");
  const ProfileTable expected = one_by_one(model, grid);
  for (const std::size_t threads : {1U, 2U, 5U}) {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    for (const TableCells& loops : table_cells())
      EXPECT_TRUE(same_bits(fill_profile_table(model, grid, loops), expected))
          << loops.name << ", " << threads << " threads";
  }
}

// Fits fill kernels of no trace, at requested clocks and at applied ones.
TEST(FillTable, CellsOfAnyKernelsHaveTheSameBits) {
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), load_trace("gpt3-xl"));
  const GpuSpec& spec = model.spec();
  const ClockGrid grid = make_clock_grid(spec, "paper");
  const double limit_w = spec.power_limit.limit_w;
  std::vector<double> time_s(model.kernels() * grid.size()), energy_j(time_s.size());
  for (const bool applied : {false, true}) {
    EXPECT_TRUE(fill_cells({spec, model.coefficients(), limit_w}, {grid.pairs(), applied},
                           time_s.data(), energy_j.data()));
    std::size_t limited = 0;
    for (std::size_t i = 0; i < time_s.size(); ++i) {
      const KernelCoefficients& kernel = model.coefficients()[i / grid.size()];
      const ClockPair& clock = grid.pairs()[i % grid.size()];
      const OperatingPoint expected = applied ? applied_point(spec, kernel, clock)
                                              : operating_point(spec, kernel, clock, limit_w);
      ASSERT_EQ(time_s[i], expected.time_s) << i;
      ASSERT_EQ(energy_j[i], expected.energy_j) << i;
      limited += expected.power_limited ? 1 : 0;
    }
    EXPECT_GT(limited, 0U);
  }
}

// What a fit tries may be no cell at all: it is told, not stopped.
TEST(FillTable, CellsMayBeAnything) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const ClockGrid grid = make_clock_grid(spec, "paper");
  const KernelCoefficients bad{.core_cycles = 1e6, .dram_bytes = 1e6, .fixed_s = std::nan("")};
  std::vector<double> time_s(grid.size()), energy_j(grid.size());
  EXPECT_FALSE(
      fill_cells({spec, {&bad, 1}, 300.0}, {grid.pairs()}, time_s.data(), energy_j.data()));
  EXPECT_TRUE(std::isnan(time_s.front()));
}

TEST(FillTable, NamesTheFirstBadCell) {
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), load_trace("gpt3-xl"));
  const ClockGrid grid = make_clock_grid(model.spec(), "paper");
  const double nan = std::nan("7"), infinity = std::numeric_limits<double>::infinity();
  const auto with = [&](double KernelCoefficients::*coefficient, double value) {
    std::vector<KernelCoefficients> c;
    for (std::size_t k = 0; k < model.kernels(); ++k)
      c.push_back(model.coefficients(id_at<KernelId>(k)));
    c[5].*coefficient = value;
    return model.with(std::move(c));
  };
  using K = KernelCoefficients;
  for (const auto& [coefficient, value] : {std::pair{&K::core_cycles, nan},
                                           {&K::core_cycles, infinity},
                                           {&K::core_cycles, -1e9},
                                           {&K::dram_bytes, nan},
                                           {&K::dram_bytes, -1.0},
                                           {&K::fixed_s, nan},
                                           {&K::fixed_s, -1.0},
                                           {&K::core_j, nan},
                                           {&K::core_j, -1e9},
                                           {&K::overlap_scale, nan},
                                           {&K::overlap_scale, 0.0},
                                           {&K::overlap_scale, 1e-9},
                                           {&K::idle_scale, infinity}}) {
    const GpuModel bad = with(coefficient, value);
    for (const TableCells& loops : table_cells())
      expect_error<DataError>([&] { (void)fill_profile_table(bad, grid, loops); },
                              "profile table: row 5, clock ");
  }
}

TEST(FillTable, CopiesShareTheNumbersAndOutliveTheOriginal) {
  const GpuModel model(load_gpu_spec("a100-sxm4-80gb"), load_trace("gpt3-xl"));
  const ClockGrid grid = make_clock_grid(model.spec(), {});
  auto table = std::make_unique<ProfileTable>(fill_profile_table(model, grid));
  const double* const numbers = table->times_s(0).data();
  const ProfileTable copy = *table;
  table.reset();
  EXPECT_EQ(copy.times_s(0).data(), numbers);
  EXPECT_EQ(copy.cost(1, ClockId{0}).energy_j,
            model.evaluate(KernelId{1}, grid[ClockId{0}]).energy_j);
}

}  // namespace
}  // namespace rubato
