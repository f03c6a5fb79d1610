#pragma once
// The fitted numbers of a spec as one vector of natural logarithms, which keeps
// them positive and the voltage from falling.

#include <string>
#include <vector>

#include <Eigen/Core>

#include "models/gpu/spec.hpp"

namespace rubato {

/// One number that all kernels share.
struct SpecParameter {
  std::string name;  ///< "base_power[9501]"
  std::string unit;
  double prior_sigma;    ///< how far physics lets it be from the neutral value, as a logarithm
  bool of_power = true;  ///< voltage, core and base power and their limit; false: times and DRAM
};

/// prior_sigma of a number that the points of a fit cannot tell.
constexpr double held_sigma = 1e-3;

/// Parameters of a spec with these memory states, voltage and crossbar points.
[[nodiscard]] std::vector<SpecParameter> spec_parameters(const GpuSpec& spec);

[[nodiscard]] std::size_t parameter_count(const GpuSpec& spec);

/// Their values, shape [parameters].
[[nodiscard]] Eigen::VectorXd read_parameters(const GpuSpec& spec);

/// The spec with other values.
void write_parameters(const Eigen::VectorXd& logarithms, GpuSpec& spec);

/// The seven coefficients of a kernel as logarithms, in the order of the struct.
constexpr Eigen::Index kernel_parameters = KernelCoefficients::count;
[[nodiscard]] Eigen::VectorXd read_coefficients(const KernelCoefficients& kernel);
[[nodiscard]] KernelCoefficients make_coefficients(
    const Eigen::Ref<const Eigen::VectorXd>& logarithms);

}  // namespace rubato
