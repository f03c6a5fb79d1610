#pragma once
// Results published by Spaan, Chen, Varbanescu, "Reducing Compute Waste in LLMs
// through Kernel-Level DVFS", arXiv 2601.08539v1, 13 January 2026: GPT-3-xl on an
// RTX 3080 Ti. Table 2 was never fitted on; Table 1 was (docs/models.md).

#include <array>
#include <string_view>

#include "explorer/goal.hpp"

namespace rubato {

/// A row of Table 2: change of time and energy against the default clocks.
struct PublishedTotal {
  Granularity granularity;  ///< the table's "coarse" is pass, its "fine" is kernel
  Aggregation aggregation;
  std::string_view goal;  ///< "edp" or "strict_waste"
  double time_change_pct;
  double energy_change_pct;
};

inline constexpr std::array published_table2{
    PublishedTotal{Granularity::pass, Aggregation::local, "edp", 10.21, -25.42},
    PublishedTotal{Granularity::pass, Aggregation::global, "edp", 10.21, -25.42},
    PublishedTotal{Granularity::pass, Aggregation::local, "strict_waste", -0.20, -1.98},
    PublishedTotal{Granularity::pass, Aggregation::global, "strict_waste", -0.10, -2.07},
    PublishedTotal{Granularity::kernel, Aggregation::local, "edp", 10.03, -27.34},
    PublishedTotal{Granularity::kernel, Aggregation::global, "edp", 10.28, -27.52},
    PublishedTotal{Granularity::kernel, Aggregation::local, "strict_waste", -1.78, -11.54},
    PublishedTotal{Granularity::kernel, Aggregation::global, "strict_waste", 0.00, -15.64},
};

/// A row of Table 1: a kernel's clock in the plan per kernel of least strict waste, one budget for
/// all (global aggregation).
struct PublishedKernel {
  std::string_view label;
  std::string_view clock;  ///< memory/core, as ClockGrid labels
  double time_change_pct;
  double energy_change_pct;
};

/// In the order of the trace's kernels.
inline constexpr std::array published_table1{
    PublishedKernel{"WTE & WPE", "auto/630", 0.32, -33.01},
    PublishedKernel{"Layernorm", "auto/1050", 0.77, -29.2},
    PublishedKernel{"GEMM", "5001/auto", -2.36, -15.41},
    PublishedKernel{"Permute", "9501/1680", 1.52, -10.83},
    PublishedKernel{"GEMM", "9501/auto", -1.78, -2.74},
    PublishedKernel{"Softmax", "9501/1050", -0.03, -11.97},
    PublishedKernel{"GEMM", "9251/auto", -1.27, -4.55},
    PublishedKernel{"Permute", "9251/auto", -1.42, -5.68},
    PublishedKernel{"GEMM", "5001/auto", -2.08, -14.54},
    PublishedKernel{"Residual", "auto/840", 0.59, -30.97},
    PublishedKernel{"GEMM", "5001/auto", -2.67, -15.21},
    PublishedKernel{"GELU", "9501/630", 0.03, -33.21},
    PublishedKernel{"GEMM", "5001/auto", -3.02, -13.77},
    PublishedKernel{"Residual", "9501/1050", 0.43, -32.49},
    PublishedKernel{"GEMM", "5001/auto", -2.6, -15.72},
    PublishedKernel{"Softmax", "9501/1680", 1.98, -26.65},
    PublishedKernel{"GEMM", "9251/auto", -0.96, -7.75},
    PublishedKernel{"GEMM", "5001/1680", 8.98, -29.31},
    PublishedKernel{"bwd Layernorm", "auto/1260", 1.92, -29.05},
    PublishedKernel{"GELU", "9501/630", 0.03, -33.14},
    PublishedKernel{"bwd Bias", "auto/1260", 0.88, -31.87},
    PublishedKernel{"bwd Bias reduce", "auto/auto", 0.0, 0.0},
    PublishedKernel{"GEMM", "5001/auto", -2.73, -15.36},
    PublishedKernel{"bwd GELU", "9501/840", -0.04, -26.88},
    PublishedKernel{"GEMM", "5001/1680", 10.13, -30.8},
    PublishedKernel{"bwd Bias", "auto/1050", 0.42, -31.34},
    PublishedKernel{"GEMM", "5001/auto", -2.68, -13.3},
    PublishedKernel{"GEMM", "9251/auto", -1.65, -6.77},
    PublishedKernel{"bwd Layernorm", "auto/1260", 1.89, -29.42},
    PublishedKernel{"bwd Bias", "9501/1260", 0.88, -32.68},
    PublishedKernel{"bwd Bias reduce", "auto/auto", 0.0, 0.0},
    PublishedKernel{"GEMM", "5001/auto", -2.46, -14.19},
    PublishedKernel{"GEMM", "5001/auto", -2.08, -12.42},
    PublishedKernel{"Permute", "9501/auto", -0.31, -5.99},
    PublishedKernel{"GEMM", "9501/auto", -1.85, -2.7},
    PublishedKernel{"GEMM", "9251/auto", -0.67, -6.11},
    PublishedKernel{"bwd Softmax", "9501/auto", -0.17, -5.23},
    PublishedKernel{"GEMM", "9251/auto", -1.52, -3.51},
    PublishedKernel{"GEMM", "9501/auto", -0.53, -5.55},
    PublishedKernel{"Permute", "9501/1470", 2.62, -18.35},
    PublishedKernel{"bwd Bias", "auto/1260", 0.6, -30.72},
    PublishedKernel{"GEMM", "5001/1680", 9.03, -29.34},
    PublishedKernel{"GEMM", "9501/auto", -1.72, -6.77},
    PublishedKernel{"bwd Layernorm", "9501/1260", 1.86, -30.49},
    PublishedKernel{"bwd WPE", "9501/1260", 2.37, -31.35},
    PublishedKernel{"bwd WTE", "auto/1680", 7.25, -28.37},
};

}  // namespace rubato
