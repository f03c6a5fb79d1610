// Models as parts: each recovers what it says itself from a few points of it; tables give back
// their cells; what was held out is not seen.

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/error.hpp"
#include "models/alternatives/cell_model.hpp"
#include "models/alternatives/modelled_table.hpp"
#include "models/alternatives/named_cells.hpp"
#include "models/alternatives/non_negative.hpp"
#include "models/alternatives/textbook.hpp"
#include "models/validation/model_comparison.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

using CostAt = std::function<Eigen::Vector2d(std::size_t kernel, double core_hz, double mem_hz)>;

// What a formula (time in s, power in W) says at every core clock of every memory state of a GPU.
Sweep made_sweep(const GpuSpec& spec, std::size_t kernels, const std::vector<double>& core_mhz,
                 const CostAt& cost) {
  Sweep sweep;
  sweep.file = "made";
  for (std::size_t k = 0; k < kernels; ++k) {
    SweepKernel kernel{.name = "k" + std::to_string(k), .points = {}};
    for (std::size_t m = 0; m < spec.mem_states.size(); ++m) {
      if (spec.mem_states[m].name == "auto" || spec.mem_states[m].max_core_mhz) continue;
      for (const double mhz : core_mhz) {
        const Eigen::Vector2d at = cost(k, mhz * 1e6, spec.mem_states[m].mem_mhz * 1e6);
        kernel.points.push_back({.clock = {id_at<MemStateId>(m), mhz},
                                 .time_s = at[0],
                                 .power_w = at[1],
                                 .power_cap_w = {},
                                 .dram_bytes = {}});
      }
    }
    sweep.kernels.push_back(std::move(kernel));
  }
  return sweep;
}

// Every third point: what a fit may see.
Sweep part_of(Sweep sweep) {
  for (SweepKernel& kernel : sweep.kernels) {
    std::vector<SweepPoint> kept;
    for (std::size_t i = 0; i < kernel.points.size(); i += 3) kept.push_back(kernel.points[i]);
    kernel.points = std::move(kept);
  }
  return sweep;
}

void expect_recovered(std::string_view name, const GpuSpec& spec, const Sweep& sweep,
                      double tolerance, const Sweep& seen) {
  Sweep none = sweep;
  none.kernels.clear();
  const auto model = fit_cell_model(*cell_model_kind(name), {spec, seen, none});
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    for (const SweepPoint& point : sweep.kernels[k].points) {
      const OperatingPoint at = model->at(k, point.clock);
      ASSERT_NEAR(at.time_s / *point.time_s, 1.0, tolerance) << name << " " << k;
      ASSERT_NEAR(at.energy_j / (*point.time_s * *point.power_w), 1.0, tolerance)
          << name << " " << k << " at " << *point.clock.core_mhz;
    }
  }
}

const std::vector<double> clocks{510.0, 600.0, 750.0, 900.0, 1050.0, 1200.0, 1305.0, 1410.0};

TEST(CellModels, LinearRecoversWhatItSays) {
  for (const char* gpu : {"a100-sxm4-80gb", "rtx-3080-ti"}) {
    const GpuSpec spec = load_gpu_spec(gpu);
    const bool with_memory = spec.mem_states.size() > 1;
    const Sweep sweep = made_sweep(spec, 3, clocks, [&](std::size_t k, double f, double m) {
      const auto n = static_cast<double>(k);
      return Eigen::Vector2d(1e-4 * n + 1e6 / f + (with_memory ? 3e5 * n / m : 0.0),
                             40.0 + 1e-7 * (1.0 + n) * f + (with_memory ? 5e-9 * m : 0.0));
    });
    expect_recovered("linear", spec, sweep, 1e-9, part_of(sweep));
  }
}

TEST(CellModels, CmosRecoversWhatItSaysOnBothSidesOfTheRoof) {
  for (const char* gpu : {"a100-sxm4-80gb", "rtx-3080-ti"}) {
    const GpuSpec spec = load_gpu_spec(gpu);
    const bool with_memory = spec.mem_states.size() > 1;
    const Sweep sweep = made_sweep(spec, 4, clocks, [&](std::size_t k, double f, double m) {
      const auto mem = std::ranges::find(spec.mem_states, m / 1e6, &MemState::mem_mhz);
      const double v = relative_voltage(spec, *mem, f / 1e6);
      // The roof's edge at 400, 800, 1200 and 1600 MHz at the highest bandwidth.
      const double bytes =
          1e6 / (4e8 * static_cast<double>(k + 1)) * 1e9 * spec.mem_states.back().bandwidth_gbs;
      return Eigen::Vector2d(std::max(1e6 / f, bytes / (mem->bandwidth_gbs * 1e9)),
                             50.0 + 1e-7 * v * v * f + (with_memory ? 4e-9 * m : 0.0));
    });
    expect_recovered("cmos", spec, sweep, 1e-9, part_of(sweep));
  }
}

TEST(CellModels, GuerreiroRecoversItsVoltagesAndUses) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep sweep = made_sweep(spec, 6, clocks, [&](std::size_t k, double f, double) {
    const auto n = static_cast<double>(k);
    const double x = (f - 510e6) / 900e6;
    // Linear between the clocks, as the model is.
    const double v = 1.0 + 0.4 * std::max(0.0, x - 0.2);
    return Eigen::Vector2d(1e6 / f, 20.0 * v + v * v * f * 2e-8 * n + 60.0 + 5.0 * n);
  });
  expect_recovered("guerreiro", spec, sweep, 2e-4, sweep);
}

TEST(CellModels, TheBuiltInRecoversTheFormulas) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  Sweep sweep = made_sweep(spec, 5, clocks,
                           [](std::size_t, double, double) { return Eigen::Vector2d(1.0, 1.0); });
  for (std::size_t k = 0; k < sweep.kernels.size(); ++k) {
    for (SweepPoint& point : sweep.kernels[k].points) {
      const OperatingPoint at = predict(spec, spec.kernels[k].coefficients, point, true);
      point.time_s = at.time_s;
      point.power_w = at.energy_j / at.time_s;
    }
  }
  expect_recovered("builtin", spec, sweep, 0.02, part_of(sweep));
}

TEST(CellModels, NeedPointsAndSayHowMany) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  Sweep one = made_sweep(spec, 1, {1410.0},
                         [](std::size_t, double, double) { return Eigen::Vector2d(1.0, 100.0); });
  const Sweep none{.file = "", .gpu = "", .kernels = {}, .idle = {}, .left_out = {}};
  expect_error<DataError>(
      [&] {
        (void)fit_cell_model(*cell_model_kind("linear"), {spec, one, none});
      },
      "kernel 'k0' has 1 point; model 'linear' needs 2 at least");
  EXPECT_EQ(cell_model_kind("nothing"), nullptr);
}

TEST(TableModels, GiveTheirCellsAndNameWhatTheyLack) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep table = parse_sweep(
      "kernel,core_mhz,time_s,energy_j\n"
      "a,510,2,200\na,1410,1,300\nb,510,3,300\n",
      "other.csv", spec);
  const std::vector<std::string> names{"b", "a"};
  const auto model = table_model(table, spec, names);
  EXPECT_DOUBLE_EQ(model->at(1, {MemStateId{0}, 510.0}).energy_j, 200.0);
  EXPECT_EQ(model->fit().most_points, 0U);
  expect_error<DataError>(
      [&] {
        (void)model->at(0, {MemStateId{0}, 1410.0});
      },
      "other.csv: kernel 'b' has no cell at 1593/1410");
  const std::vector<std::string> others{"a", "c"};
  expect_error<DataError>([&] { (void)table_model(table, spec, others); },
                          "other.csv: 1 of 2 kernels are missing: c");
}

// Karush, Kuhn and Tucker: the gradient is 0 where x is positive, and not negative elsewhere.
RC_GTEST_PROP(NonNegative, IsTheLeastOfNonNegativeChoices, ()) {
  const auto rows = *rc::gen::inRange(1, 7);
  const auto columns = *rc::gen::inRange(1, 4);
  Eigen::MatrixXd a(rows, columns);
  Eigen::VectorXd b(rows);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) a(i, j) = *rc::gen::inRange(-5, 20);
    b[i] = *rc::gen::inRange(-5, 20);
  }
  const Eigen::VectorXd x = non_negative_least_squares(a, b);
  const Eigen::VectorXd gradient = a.transpose() * (a * x - b);
  const double size = 1e-5 * (1.0 + a.squaredNorm() + (a.transpose() * b).norm());
  for (int j = 0; j < columns; ++j) {
    RC_ASSERT(x[j] >= 0.0);
    RC_ASSERT(gradient[j] >= -size);
    RC_ASSERT(x[j] == 0.0 || gradient[j] <= size);
  }
}

// A point that was held out may be anything: no fit saw it.
TEST(ModelComparison, FitsDoNotSeeWhatIsHeldOut) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  Sweep sweep = made_sweep(spec, 4, clocks, [](std::size_t k, double f, double) {
    return Eigen::Vector2d(1e6 / f + 1e-4 * static_cast<double>(k), 60.0 + 1.5e-7 * f);
  });
  std::vector<ModelChoice> models;
  for (const CellModelKind& kind : cell_model_kinds())
    models.push_back({.name = std::string(kind.name), .kind = &kind, .table = {}});
  const ModelComparison before = compare_models(spec, sweep, models, {.points = 4});
  ASSERT_EQ(before.models.front().held_out.size(), 4U * (clocks.size() - 4));
  for (const ValidatedPoint& held_out : before.models.front().held_out) {
    auto kernel = std::ranges::find(sweep.kernels, held_out.kernel, &SweepKernel::name);
    auto point = std::ranges::find(kernel->points, held_out.measured.clock, &SweepPoint::clock);
    *point->time_s *= 3.0;
    *point->power_w *= 1.1;
  }
  const ModelComparison after = compare_models(spec, sweep, models, {.points = 4});
  for (std::size_t m = 0; m < models.size(); ++m) {
    for (std::size_t i = 0; i < before.models[m].held_out.size(); ++i) {
      EXPECT_EQ(before.models[m].held_out[i].predicted.energy_j,
                after.models[m].held_out[i].predicted.energy_j)
          << models[m].name;
      EXPECT_EQ(*after.models[m].held_out[i].measured.time_s,
                3.0 * *before.models[m].held_out[i].measured.time_s);
    }
  }
}

TEST(ModelComparison, LeavesOutRepeatsCapsAndKernelsOfFewPoints) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep sweep = parse_sweep(
      "kernel,core_mhz,power_cap_w,time_s,power_w\n"
      "a,510,400,2,100\na,510,400,2.2,100\na,1005,400,1.2,150\na,1410,400,1,200\n"
      "a,1410,200,1.1,150\nb,510,400,1,100\nb,1410,400,1,100\n",
      "few.csv", spec);
  const std::vector<ModelChoice> models{{.name = "measured", .kind = nullptr, .table = sweep}};
  const ModelComparison found = compare_models(
      spec, one_setting(sweep, spec),
      std::vector<ModelChoice>{{.name = "linear", .kind = cell_model_kind("linear"), .table = {}}},
      {.points = 2});
  ASSERT_EQ(found.sweep.kernels.size(), 1U);
  ASSERT_EQ(found.sweep.kernels[0].points.size(), 3U);
  EXPECT_DOUBLE_EQ(*found.sweep.kernels[0].points[0].time_s, 2.1);
  EXPECT_DOUBLE_EQ(*found.sweep.kernels[0].points[2].time_s, 1.0);  // not under 200 W
  EXPECT_EQ(found.models[0].held_out.size(), 1U);
  EXPECT_EQ(found.models[0].fit.most_points, 2U);
  // What is compared and the table that is the model are brought to the same setting.
  const ModelComparison itself = compare_models(spec, sweep, models, {.points = 2});
  ASSERT_EQ(itself.models[0].cells[0].size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    const SweepPoint& point = itself.sweep.kernels[0].points[i];
    EXPECT_DOUBLE_EQ(itself.models[0].cells[0][i].time_s, *point.time_s);
    EXPECT_DOUBLE_EQ(itself.models[0].cells[0][i].energy_j, *point.time_s * *point.power_w);
  }
  expect_error<UsageError>([&] { (void)compare_models(spec, sweep, models, {.points = 5}); },
                           "no kernel has more than 5 points", "fewer --points");
}

double squared_errors(const Roofline& roofline, std::span<const ClockTerms> terms,
                      std::span<const double> time_s) {
  double sum = 0.0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const double error = roofline.time_s(terms[i]) / time_s[i] - 1.0;
    sum += error * error;
  }
  return sum;
}

// The least of a fine grid of rooflines, none better than the fit. In the first case it lies where
// core and memory bound a point alike.
void expect_best_roofline(const std::vector<double>& core_hz, const std::vector<double>& time_s) {
  std::vector<ClockTerms> terms;
  for (const double hz : core_hz)
    terms.push_back({.core_hz = hz, .mem_hz = 1.0, .dram_bytes_per_s = 1.0});
  const double fitted = squared_errors(fit_roofline(terms, time_s), terms, time_s);
  double least = std::numeric_limits<double>::infinity();
  constexpr int steps = 400;
  for (int c = 0; c <= steps; ++c) {
    for (int b = 0; b <= steps; ++b)
      least = std::min(least, squared_errors({.cycles = 2.0 * c / steps, .bytes = 2.0 * b / steps},
                                             terms, time_s));
  }
  EXPECT_LE(fitted, least);
  EXPECT_LE(least, fitted + 1e-3);  // the grid's step
}

TEST(Rooflines, AreTheBest) {
  const std::vector<double> clocks_hz{0.5, 0.75, 1.0, 1.25, 1.5};
  const std::vector<double> kink_s{1.9017, 1.2686, 0.8467, 0.9667, 0.9304};
  expect_best_roofline(clocks_hz, kink_s);
  std::vector<ClockTerms> terms;
  for (const double hz : clocks_hz)
    terms.push_back({.core_hz = hz, .mem_hz = 1.0, .dram_bytes_per_s = 1.0});
  EXPECT_NEAR(squared_errors(fit_roofline(terms, kink_s), terms, kink_s), 0.0120, 5e-5);
  expect_best_roofline(clocks_hz, {2.0, 1.4, 1.0, 0.9, 0.9});
  expect_best_roofline(clocks_hz, {1.0, 1.2, 0.7, 1.1, 0.8});
}

// Kernels with a time but no power leave nothing to fit.
TEST(NamedCells, NeedTimeAndPower) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep times = parse_sweep("kernel,core_mhz,time_s\na,510,2\na,1410,1\n", "t.csv", spec);
  for (const char* model : {"guerreiro", "cmos", "linear", "builtin", "measured"}) {
    std::vector<std::string> notes;
    expect_error<DataError>([&] { (void)named_cells(times, spec, cell_model_kind(model), notes); },
                            "t.csv: no row has time and power (or energy)");
  }
  Sweep none = times;
  none.kernels.clear();
  expect_error<DataError>(
      [&] {
        (void)fit_cell_model(*cell_model_kind("guerreiro"), {spec, none, none});
      },
      "model 'guerreiro' has no kernel to be fitted to");
}

// As explore takes them: 1 MHz beside a clock that can be set is that clock.
TEST(NamedCells, LieAtClocksThatCanBeSet) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep sweep =
      parse_sweep("kernel,core_mhz,time_s,power_w\na,512,2,100\na,1409,1,200\n", "t.csv", spec);
  std::vector<std::string> notes;
  const auto cells = named_cells(sweep, spec, nullptr, notes);
  EXPECT_DOUBLE_EQ(cells->at(0, {MemStateId{0}, 510.0}).time_s, 2.0);
  EXPECT_DOUBLE_EQ(cells->at(0, {MemStateId{0}, 1410.0}).time_s, 1.0);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("2 of 2 rows were observed beside"), std::string::npos) << notes[0];
}

// Planning on a model means planning on its cells, also where others were measured.
TEST(ModelledTables, HoldTheModelsCells) {
  const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  const Sweep sweep = parse_sweep(
      "kernel,core_mhz,time_s,power_w\n"
      "a,510,2,100\na,1005,1.3,110\na,1410,1,200\nb,510,4,100\nb,1005,3,150\nb,1410,2.9,200\n",
      "t.csv", spec);
  const MeasuredTable table = measured_table(sweep, spec, {}, MissingCells::leave_out);
  const ModelledTable modelled = modelled_table(*cell_model_kind("linear"), table, sweep);
  EXPECT_EQ(modelled.fit.most_points, 3U);
  EXPECT_GT(modelled.missed_energy, 0.01);
  // Three points, two numbers: the middle power is not met, but between the others.
  const OperatingPoint* middle = modelled.cells->find(KernelId{0}, {MemStateId{0}, 1005.0});
  const double power_w = middle->energy_j / middle->time_s;
  EXPECT_GT(power_w, 120.0);
  EXPECT_LT(power_w, 170.0);
}

}  // namespace
}  // namespace rubato
