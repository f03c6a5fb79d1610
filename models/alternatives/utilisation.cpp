#include "models/alternatives/utilisation.hpp"

#include <algorithm>
#include <cmath>

#include "models/alternatives/non_negative.hpp"
#include "models/linear/levenberg_marquardt.hpp"

namespace rubato {

namespace {

using Eigen::Index;
using Eigen::VectorXd;

// At most twelve of the clocks, evenly spread by rank.
std::vector<double> knots_of(const std::vector<SeenPoints>& all) {
  constexpr std::size_t most = 12;
  std::vector<double> clocks;
  for (const SeenPoints& seen : all) {
    for (const ClockTerms& at : seen.terms) clocks.push_back(at.core_hz);
  }
  std::ranges::sort(clocks);
  clocks.erase(std::unique(clocks.begin(), clocks.end()), clocks.end());
  if (clocks.size() <= most) return clocks;
  std::vector<double> knots;
  for (std::size_t i = 0; i < most; ++i)
    knots.push_back(clocks[i * (clocks.size() - 1) / (most - 1)]);
  return knots;
}

Eigen::Vector3d power_terms(const ClockTerms& at, double volts) {
  return {1.0, volts * volts * at.core_hz, at.mem_hz};
}

// What is left of a point's power for the kernel's own terms; b must not take all of it.
double own_power_w(double power_w, double watts_per_volt, double volts) {
  return power_w - watts_per_volt * volts;
}

}  // namespace

UtilisationPowerModel::UtilisationPowerModel(const ModelData& data) : clocks_(data) {
  std::vector<SeenPoints> all;
  double least_w = 1e9;
  for (const Sweep* sweep : {&data.kernels, &data.others}) {
    for (const SweepKernel& kernel : sweep->kernels) {
      all.push_back(seen_points(kernel, clocks_));
      least_w = std::min(least_w, std::ranges::min(all.back().power_w));
    }
  }
  knot_hz_ = knots_of(all);
  constexpr double first_step = 0.03, first_share = 0.05, difference = 1e-6;
  // Logarithms: of b, then of the rise of V from knot to knot.
  VectorXd shared = VectorXd::Constant(static_cast<Index>(knot_hz_.size()), std::log(first_step));
  shared[0] = std::log(first_share * least_w);
  const LeastSquaresProblem problem{
      .residuals = [&](const VectorXd& at) { return residuals(at, all); },
      .jacobian =
          [&](const VectorXd& at, const VectorXd& now) {
            Eigen::MatrixXd jacobian(now.size(), at.size());
            for (Index j = 0; j < at.size(); ++j) {
              VectorXd moved = at;
              moved[j] += difference;
              jacobian.col(j) = (residuals(moved, all) - now) / difference;
            }
            return jacobian;
          }};
  constexpr int iterations = 100;
  constexpr double max_step = 2.0;
  set_shared(levenberg_marquardt(problem, shared, iterations, max_step));
  for (std::size_t k = 0; k < data.kernels.kernels.size(); ++k)
    kernels_.push_back({fit_roofline(all[k].terms, all[k].time_s), best_power(all[k])});
  fit_ = fit_to(data, clocks_.memory_varies() ? 5 : 4, knot_hz_.size(),
                "no power limit, V of memory constant; use of units is fitted, not counted; "
                "bandwidths are the spec's");
}

double UtilisationPowerModel::volts(double core_hz) const {
  const auto upper = std::ranges::upper_bound(knot_hz_, core_hz);
  if (upper == knot_hz_.begin()) return knot_v_.front();
  if (upper == knot_hz_.end()) return knot_v_.back();
  const auto i = static_cast<std::size_t>(upper - knot_hz_.begin());
  const double share = (core_hz - knot_hz_[i - 1]) / (knot_hz_[i] - knot_hz_[i - 1]);
  return std::lerp(knot_v_[i - 1], knot_v_[i], share);
}

void UtilisationPowerModel::set_shared(const VectorXd& shared) {
  watts_per_volt_ = std::exp(shared[0]);
  knot_v_.assign(1, 1.0);
  for (Index i = 1; i < shared.size(); ++i) knot_v_.push_back(knot_v_.back() + std::exp(shared[i]));
}

Eigen::Vector3d UtilisationPowerModel::best_power(const SeenPoints& seen) const {
  const auto points = static_cast<Index>(seen.terms.size());
  Eigen::MatrixXd a(points, clocks_.memory_varies() ? 3 : 2);
  VectorXd wanted(points);
  for (Index i = 0; i < points; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double v = volts(seen.terms[at].core_hz);
    a.row(i) = power_terms(seen.terms[at], v).head(a.cols()).transpose() / seen.power_w[at];
    wanted[i] = own_power_w(seen.power_w[at], watts_per_volt_, v) / seen.power_w[at];
  }
  Eigen::Vector3d power = Eigen::Vector3d::Zero();
  power.head(a.cols()) = non_negative_least_squares(a, wanted);
  return power;
}

VectorXd UtilisationPowerModel::residuals(const VectorXd& shared,
                                          const std::vector<SeenPoints>& all) {
  set_shared(shared);
  std::size_t count = 0;
  for (const SeenPoints& seen : all) count += seen.terms.size();
  VectorXd out(static_cast<Index>(count));
  Index next = 0;
  for (const SeenPoints& seen : all) {
    const Eigen::Vector3d power = best_power(seen);
    for (std::size_t i = 0; i < seen.terms.size(); ++i) {
      const double v = volts(seen.terms[i].core_hz);
      out[next++] =
          (power.dot(power_terms(seen.terms[i], v)) + watts_per_volt_ * v) / seen.power_w[i] - 1.0;
    }
  }
  return out;
}

OperatingPoint UtilisationPowerModel::at(std::size_t kernel, const ClockPair& clock) const {
  const ClockTerms at = clocks_.terms(clock);
  const double v = volts(at.core_hz);
  const double time_s = kernels_[kernel].time.time_s(at);
  return {
      .time_s = time_s,
      .energy_j = time_s * (kernels_[kernel].power.dot(power_terms(at, v)) + watts_per_volt_ * v),
      .core_mhz = at.core_hz / 1e6,
      .power_limited = false};
}

}  // namespace rubato
