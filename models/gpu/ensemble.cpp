#include "models/gpu/ensemble.hpp"

#include <vector>

#include <Eigen/Core>

#include "models/gpu/spec_parameters.hpp"

namespace rubato {

using Eigen::Index;
using Eigen::VectorXd;

GpuSpec ensemble_member(const GpuSpec& spec, std::size_t i) {
  if (spec.ensemble.empty()) return spec;
  const std::vector<double>& offsets = spec.ensemble[i % spec.ensemble.size()];
  const Eigen::Map<const VectorXd> all(offsets.data(), static_cast<Index>(offsets.size()));
  GpuSpec member = spec;
  const VectorXd shared = read_parameters(spec);
  write_parameters(shared + all.head(shared.size()), member);
  // A card has the clocks it has, whatever a fit says of those it was not seen at.
  for (std::size_t s = 0; s < member.mem_states.size(); ++s)
    member.mem_states[s].boost_mhz = spec.mem_states[s].boost_mhz;
  for (std::size_t k = 0; k < member.kernels.size() && all.size() > shared.size(); ++k) {
    KernelCoefficients& c = member.kernels[k].coefficients;
    c = make_coefficients(
        read_coefficients(c) +
        all.segment(shared.size() + static_cast<Index>(k) * kernel_parameters, kernel_parameters));
  }
  return member;
}

}  // namespace rubato
