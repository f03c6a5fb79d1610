#pragma once
// The fitted numbers of a spec as one vector of natural logarithms. Logarithms keep the numbers
// positive. The voltage curve is held as the steps between its points and the bandwidth of the core
// side as slopes, so neither can fall.

#include <string>
#include <vector>

#include <Eigen/Core>

#include "models/gpu/spec.hpp"

namespace rubato {

/// One number that all kernels share.
struct SpecParameter {
  std::string name;  ///< "base_power[9501]"
  std::string unit;
  double prior_sigma;    ///< prior standard deviation of its logarithm around the start of a fit
  bool of_power = true;  ///< voltage, core and base power and their limit; false: times and DRAM
};

/// prior_sigma of a number that the points of a fit cannot tell: it stays where it starts.
constexpr double held_sigma = 1e-3;

/// Parameters of a spec with these memory states, voltage and crossbar points.
[[nodiscard]] std::vector<SpecParameter> spec_parameters(const GpuSpec& spec);

[[nodiscard]] std::size_t parameter_count(const GpuSpec& spec);

/// Natural logarithms of their values, shape [parameters].
[[nodiscard]] Eigen::VectorXd read_parameters(const GpuSpec& spec);

/// Sets them, so that the spec keeps the laws (spec_laws.hpp): clocks in effect and bandwidths that
/// would be out of order come down to the next ones, and boost ceilings are not below the lowest
/// clock.
/// @param logarithms  shape [parameters]
void write_parameters(const Eigen::VectorXd& logarithms, GpuSpec& spec);

/// The voltage of an architecture as a curve up to the highest clock: flat up to the knee, as all
/// measured ones are, then straight.
[[nodiscard]] VoltageCurve curve_of(const VoltagePrior& prior, const CoreClocks& core);

/// The seven coefficients of a kernel as logarithms, in the order of the struct.
constexpr Eigen::Index kernel_parameters = KernelCoefficients::count;
[[nodiscard]] Eigen::VectorXd read_coefficients(const KernelCoefficients& kernel);
[[nodiscard]] KernelCoefficients make_coefficients(
    const Eigen::Ref<const Eigen::VectorXd>& logarithms);

}  // namespace rubato
