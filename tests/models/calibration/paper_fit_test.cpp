#include "models/calibration/paper_fit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "common/error.hpp"
#include "models/calibration/paper_parameters.hpp"
#include "models/calibration/paper_problem.hpp"
#include "models/linear/levenberg_marquardt.hpp"
#include "models/linear/linear_algebra.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/expect_error.hpp"
#include "tests/models/calibration/paper_inputs.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

// Kernels move together and only what a kernel changes is made again: as if each parameter moved
// alone, to the last bit.
TEST(Calibration, SlopesAreThoseOfOneParameterAtATime) {
  constexpr double difference = 1e-5;
  const PaperInputs paper;
  ASSERT_GT(std::ranges::count(paper.data.in_forward_pass, false), 0);
  for (const bool use_table1 : {true, false}) {
    const CalibrationProblem problem(paper.spec, paper.trace, paper.grid, paper.data, paper.sweep,
                                     use_table1);
    const Eigen::VectorXd point = problem.start(), base = problem.residuals(point);
    const Eigen::MatrixXd slopes = problem.slopes(point).dense();
    ASSERT_EQ(slopes.cols(), point.size());
    for (Eigen::Index p = 0; p < point.size(); ++p) {
      Eigen::VectorXd moved = point;
      moved[p] += difference;
      const Eigen::VectorXd expected = (problem.residuals(moved) - base) / difference;
      EXPECT_TRUE(slopes.col(p) == expected) << "parameter " << p;
    }
  }
}

// Kernels eliminated block by block, and the sum over all of them as an unknown of its own: the
// step of the dense normal equations, to rounding.
TEST(Calibration, StepsAreThoseOfTheDenseNormalEquations) {
  const PaperInputs paper;
  const CalibrationProblem problem(paper.spec, paper.trace, paper.grid, paper.data, paper.sweep,
                                   true);
  const Eigen::VectorXd point = problem.start(), residuals = problem.residuals(point);
  for (const PaperFitted fitted : {PaperFitted::all, PaperFitted::not_in_specs}) {
    const Eigen::MatrixXd slopes = problem.slopes(point, fitted).dense();
    const Eigen::MatrixXd normal = slopes.transpose() * slopes;
    const Eigen::VectorXd gradient = slopes.transpose() * residuals;
    const DampedStep step = problem.least_squares(fitted).step(point, residuals);
    for (const double damping : {1e-4, 1.0}) {
      Eigen::MatrixXd damped = normal;
      damped.diagonal() += added_to_diagonal(normal.diagonal(), damping);
      const Eigen::VectorXd expected = damped.ldlt().solve(-gradient);
      const double difference = (step(damping) - expected).norm();
      EXPECT_LT(difference, 1e-7 * expected.norm()) << damping;
    }
  }
}

// The shipped spec must be what the code in this repository makes of the data, from nothing: it is
// not among the earlier fits here.
TEST(Calibration, MakesTheShippedSpec) {
  const PaperInputs paper;
  const auto& [shipped, trace, grid, data, sweep] = paper;
  const GpuSpec fitted = calibrate(shipped, trace, grid, data, sweep, {.estimate_errors = false});
  const double best = misfit(shipped, trace, grid, data, sweep, true).value();
  EXPECT_NEAR(misfit(fitted, trace, grid, data, sweep, true).value(), best,
              2.0 * alike_frac * best);
  // The minimum is flat and other processors round otherwise on the way, so the coefficients of a
  // kernel may end elsewhere: what counts is what the model says, and how well it fits.
  const GpuModel ours(shipped, trace), theirs(fitted, trace);
  std::vector<double> differences;
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    for (std::size_t c = 0; c < grid.size(); ++c) {
      const OperatingPoint a = ours.evaluate(id_at<KernelId>(k), grid[id_at<ClockId>(c)]);
      const OperatingPoint b = theirs.evaluate(id_at<KernelId>(k), grid[id_at<ClockId>(c)]);
      differences.push_back(std::abs(a.time_s / b.time_s - 1.0));
      differences.push_back(std::abs(a.energy_j / b.energy_j - 1.0));
    }
  }
  std::ranges::sort(differences);
  EXPECT_LT(differences[differences.size() / 2], 0.01);
  EXPECT_LT(differences[differences.size() * 95 / 100], 0.08);
  for (const auto& [name, error] : shipped.fit_errors) {
    if (name.starts_with("own_")) continue;
    EXPECT_LT(fitted.fit_errors.at(name), 1.4 * error) << name;
  }
}

// What a fit starts from is in the spec that comes out of it, to rounding.
TEST(SharedLayout, FindsTheParametersOfItsOwnSpecs) {
  const GpuSpec frame = load_gpu_spec("rtx-3080-ti");
  const SharedLayout layout(frame);
  Eigen::VectorXd x = layout.start();
  for (Eigen::Index i = 0; i < x.size(); ++i) x[i] += 0.01 * std::sin(static_cast<double>(i));
  const auto found = layout.parameters_of(layout.spec(frame, x));
  ASSERT_TRUE(found.has_value());
  const std::vector<bool> in_specs = layout.in_specs();
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const bool in = in_specs[static_cast<std::size_t>(i)];
    EXPECT_NEAR((*found)[i], in ? x[i] : layout.start()[i], 1e-9) << i;
  }
  EXPECT_EQ(std::ranges::count(in_specs, false), 3);
  EXPECT_FALSE(layout.parameters_of(load_gpu_spec("v100-sxm2")).has_value());
}

TEST(Calibration, RefusesBadSweeps) {
  const TemporaryFolder folder;
  const auto path =
      folder.file("bad_sweep.csv",
                  "workload,kernel,core_mhz,mem_mhz,time_s,power_w\nw,k,1470,9501,-0.1,"
                  "200\nw,k,1470,9500,0.1,200\n");
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  expect_error<DataError>([&] { (void)read_sweep(path, spec); },
                          "time_s is '-0.1'; expected a number > 0");
  expect_error<DataError>([&] { (void)read_sweep(path, spec); },
                          "mem_mhz '9500' is no memory state of rtx-3080-ti");
}

}  // namespace
}  // namespace rubato
