#include "models/calibration/network_fit.hpp"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "models/calibration/robust_loss.hpp"
#include "models/linear/levenberg_marquardt.hpp"

namespace rubato {

namespace {

using Values = Eigen::VectorXd;

// Calls `positive` (fitted as a logarithm) or `real` for every constant, always in the same order.
template <class Parameters, class Positive, class Real>
void visit(Parameters& p, const Positive& positive, const Real& real) {
  for (auto* value :
       {&p.launch_s, &p.tree_slowdown, &p.chain_share, &p.peer_slowdown, &p.peer_simple_s})
    positive(*value);
  for (auto& link : p.links) {
    for (auto* value : {&link.hop_s, &link.low_latency_slowdown, &link.simple_s, &link.peer_s})
      positive(*value);
    real(link.low_latency_growth);
    real(link.simple_growth);
  }
}

Values values_of(const NetworkParameters& parameters) {
  std::vector<double> values;
  visit(
      parameters, [&](double value) { values.push_back(std::log(value)); },
      [&](double value) { values.push_back(value); });
  return Eigen::Map<const Values>(values.data(), static_cast<Eigen::Index>(values.size()));
}

NetworkParameters parameters_at(const Values& values) {
  NetworkParameters parameters;
  Eigen::Index next = 0;
  visit(
      parameters, [&](double& value) { value = std::exp(values[next++]); },
      [&](double& value) { value = values[next++]; });
  return parameters;
}

// Every measured point with its weight in the fit.
struct FitPoint {
  const CollectiveSeries* series;
  double message_bytes, log_time, peak_gbs, weight;
};

std::vector<FitPoint> points_of(std::span<const CollectiveSeries> series) {
  std::map<std::string, std::size_t> series_of_system;
  for (const CollectiveSeries& one : series) ++series_of_system[one.system];
  std::vector<FitPoint> points;
  for (const CollectiveSeries& one : series) {
    const auto others = static_cast<double>(series_of_system.at(one.system) * one.points.size());
    for (const CollectivePoint& point : one.points) {
      points.push_back({&one, point.message_bytes, std::log(point.time_s), one.peak_gbs(),
                        std::sqrt(1.0 / others)});
    }
  }
  return points;
}

Values residuals_at(const Values& values, const Values& prior, std::span<const FitPoint> points) {
  constexpr double spread = 0.1;        // of ln(time); errors far above it count linearly
  constexpr double prior_spread = 1.0;  // of the logarithms: constants are known to a factor of e
  const NetworkParameters parameters = parameters_at(values);
  Values residuals(static_cast<Eigen::Index>(points.size()) + values.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const FitPoint& point = points[i];
    const CollectiveTime time = collective_time(parameters, point.series->kind, point.series->group,
                                                point.message_bytes, point.peak_gbs);
    residuals[static_cast<Eigen::Index>(i)] =
        point.weight * robust((std::log(time.time_s) - point.log_time) / spread);
  }
  residuals.tail(values.size()) = (values - prior) / prior_spread;
  return residuals;
}

Eigen::MatrixXd jacobian_at(const Values& values, const Values& residuals, const Values& prior,
                            std::span<const FitPoint> points) {
  constexpr double step = 1e-5;
  Eigen::MatrixXd jacobian(residuals.size(), values.size());
  for (Eigen::Index i = 0; i < values.size(); ++i) {
    Values moved = values;
    moved[i] += step;
    jacobian.col(i) = (residuals_at(moved, prior, points) - residuals) / step;
  }
  return jacobian;
}

}  // namespace

NetworkParameters prior_network_parameters() {
  NetworkParameters prior{.launch_s = 6e-6,
                          .tree_slowdown = 1.1,
                          .chain_share = 0.5,
                          .peer_slowdown = 6.0,
                          .peer_simple_s = 60e-6,
                          .links = {},
                          .source = "orders of magnitude"};
  const auto set = [&](LinkKind kind, const LinkParameters& link) {
    prior.links[static_cast<std::size_t>(kind)] = link;
  };
  set(LinkKind::nvlink, {2.5e-6, 10.0, -0.5, 35e-6, 0.2, 5e-6});
  set(LinkKind::pcie, {5e-6, 3.0, 0.0, 30e-6, 0.3, 5e-6});
  set(LinkKind::rdma, {6e-6, 4.0, 0.5, 50e-6, 0.8, 5e-6});
  set(LinkKind::libfabric, {6e-6, 6.0, 0.8, 100e-6, 0.8, 9e-6});
  set(LinkKind::tcp, {20e-6, 4.0, 0.3, 250e-6, 0.8, 14e-6});
  return prior;
}

NetworkParameters fit_network(std::span<const CollectiveSeries> series) {
  constexpr int iterations = 200;
  constexpr double max_step = 0.5;
  const std::vector<FitPoint> points = points_of(series);
  const Values prior = values_of(prior_network_parameters());
  const LeastSquaresProblem problem{
      [&](const Values& values) { return residuals_at(values, prior, points); },
      [&](const Values& values, const Values& residuals) {
        return jacobian_at(values, residuals, prior, points);
      }};
  return parameters_at(levenberg_marquardt(problem, prior, iterations, max_step));
}

}  // namespace rubato
