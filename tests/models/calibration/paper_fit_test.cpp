#include "models/calibration/paper_fit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "common/error.hpp"
#include "models/calibration/levenberg_marquardt.hpp"
#include "models/calibration/linear_algebra.hpp"
#include "models/calibration/paper_parameters.hpp"
#include "models/calibration/paper_problem.hpp"
#include "models/linear/dense_loops.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/expect_error.hpp"
#include "tests/paths.hpp"
#include "tests/temporary_folder.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

// y = a exp(b x): the minimum is known because the data follow it exactly.
TEST(LevenbergMarquardt, FindsTheParametersOfAnExponential) {
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(20, 0.0, 2.0);
  const Eigen::VectorXd y = 3.0 * (0.7 * x.array()).exp();
  const LeastSquaresProblem problem{.residuals = [&](const Eigen::VectorXd& p) -> Eigen::VectorXd {
                                      return (p[0] * (p[1] * x.array()).exp()).matrix() - y;
                                    },
                                    .jacobian =
                                        [&](const Eigen::VectorXd& p, const Eigen::VectorXd&) {
                                          Eigen::MatrixXd j(x.size(), 2);
                                          j.col(0) = (p[1] * x.array()).exp();
                                          j.col(1) = p[0] * x.array() * (p[1] * x.array()).exp();
                                          return j;
                                        }};
  const Eigen::VectorXd found = levenberg_marquardt(problem, Eigen::Vector2d(1.0, 0.0), 100, 1.0);
  EXPECT_NEAR(found[0], 3.0, 1e-4);
  EXPECT_NEAR(found[1], 0.7, 1e-4);
}

// Rows of blocks, and rows of all, as in a fit; more rows than one chunk holds.
TEST(LinearAlgebra, SparseNormalIsTheProduct) {
  constexpr Eigen::Index rows = 1300, columns = 23, shared = 5;
  Eigen::MatrixXd a = Eigen::MatrixXd::Zero(rows, columns);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const Eigen::Index own = shared + (r / 100) % (columns - shared);
    for (Eigen::Index c = 0; c < columns; ++c) {
      if (c < shared || c == own || r % 10 == 0)
        a(r, c) = std::sin(static_cast<double>(7 * r + 3 * c + 1));
    }
  }
  const Eigen::MatrixXd expected = a.transpose() * a, found = sparse_normal(a);
  EXPECT_LT((found - expected).cwiseAbs().maxCoeff(), 1e-12 * expected.cwiseAbs().maxCoeff());
  EXPECT_EQ(found, found.transpose());
}

// Sizes around those where panels begin and sums are broken; a matrix that is not definite, and one
// of less than full rank.
TEST(LinearAlgebra, SolvesAsEigenDoesToTheLastBit) {
  for (const Eigen::Index size : {3, 64, 77, 127, 128, 129, 145, 300}) {
    Eigen::MatrixXd a(size, size), b(size, 2);
    for (Eigen::Index c = 0; c < size; ++c) {
      for (Eigen::Index r = 0; r < size; ++r)
        a(r, c) = std::sin(static_cast<double>(r * r + 5 * c + 1)) / static_cast<double>(1 + c % 9);
      b(c, 0) = std::cos(static_cast<double>(c));
      b(c, 1) = static_cast<double>(c % 7);
    }
    const Eigen::MatrixXd definite = a.transpose() * a, mixed = a + a.transpose();
    Eigen::MatrixXd singular = definite;
    singular.row(size / 2).setZero();
    singular.col(size / 2).setZero();
    for (const Eigen::MatrixXd& matrix : {definite, mixed, singular}) {
      const Eigen::MatrixXd expected = matrix.ldlt().solve(b);
      EXPECT_EQ(solve_symmetric(matrix, b), expected) << size;
    }
  }
}

TEST(DenseLoops, AllInstructionSetsGiveTheSameBits) {
  constexpr std::size_t stride = 3 * dense_padding;
  std::vector<double> a(5 * stride), row(stride, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<double>(i + 1));
  std::copy_n(a.begin(), dense_block, row.begin() + dense_block);
  std::copy_n(a.begin(), dense_block, row.begin() + 4 * dense_block);
  const std::vector<std::size_t> blocks{1, 4};
  std::vector<double> first_sum, first_column;
  for (const DenseLoops& loops : dense_loops()) {
    std::vector<double> sum(stride * stride, 0.1), column(stride, 0.3);
    loops.add_square(row.data(), blocks, stride, sum.data());
    loops.subtract(a.data(), stride, a.data() + 7, 5, dense_padding, stride, column.data());
    if (first_sum.empty()) {
      first_sum = sum;
      first_column = column;
    }
    EXPECT_EQ(sum, first_sum) << loops.name;
    EXPECT_EQ(column, first_column) << loops.name;
  }
  EXPECT_EQ(first_sum[dense_block * stride + 4 * dense_block], 0.1 + a[0] * a[0]);
  EXPECT_EQ(first_sum[2 * dense_block * stride + 4 * dense_block], 0.1);  // a block that is zero
  double expected = 0.0;
  for (std::size_t j = 0; j < 5; ++j) expected += a[j * stride + 20] * a[7 + j];
  EXPECT_EQ(first_column[20], 0.3 - expected);
  EXPECT_EQ(first_column[dense_padding - 1], 0.3);
}

// Kernels move together and only what a kernel changes is made again: as if each parameter moved
// alone, to the last bit.
TEST(Calibration, SlopesAreThoseOfOneParameterAtATime) {
  constexpr double difference = 1e-5;
  const GpuSpec frame = load_gpu_spec("rtx-3080-ti");
  const Trace trace = load_trace("gpt3-xl");
  const ClockGrid grid = make_clock_grid(frame, "paper");
  const PaperData paper = read_paper_data(measured_data("spaan2026"), grid, trace);
  ASSERT_GT(std::ranges::count(paper.in_forward_pass, false), 0);
  const auto sweep = read_sweep(measured_data("rtx3080ti_kernels/kernels.csv"), frame).kernels;
  for (const bool use_table1 : {true, false}) {
    const CalibrationProblem problem(frame, trace, grid, paper, sweep, use_table1);
    const Eigen::VectorXd point = problem.start(), base = problem.residuals(point);
    const Eigen::MatrixXd slopes = problem.jacobian(point, base);
    ASSERT_EQ(slopes.cols(), point.size());
    for (Eigen::Index p = 0; p < point.size(); ++p) {
      Eigen::VectorXd moved = point;
      moved[p] += difference;
      const Eigen::VectorXd expected = (problem.residuals(moved) - base) / difference;
      EXPECT_TRUE(slopes.col(p) == expected) << "parameter " << p;
    }
  }
}

// The shipped spec must be what the code in this repository makes of the data, from nothing: it is
// not among the earlier fits here.
TEST(Calibration, MakesTheShippedSpec) {
  const GpuSpec shipped = load_gpu_spec("rtx-3080-ti");
  const Trace trace = load_trace("gpt3-xl");
  const ClockGrid grid = make_clock_grid(shipped, "paper");
  const PaperData paper = read_paper_data(measured_data("spaan2026"), grid, trace);
  const auto sweep = read_sweep(measured_data("rtx3080ti_kernels/kernels.csv"), shipped).kernels;
  const GpuSpec fitted = calibrate(shipped, trace, grid, paper, sweep, {.estimate_errors = false});
  const double best = misfit(shipped, trace, grid, paper, sweep, true).value();
  EXPECT_NEAR(misfit(fitted, trace, grid, paper, sweep, true).value(), best,
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
