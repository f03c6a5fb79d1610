#include "models/calibration/network_fit.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/linear/levenberg_marquardt.hpp"
#include "models/linear/robust_loss.hpp"

namespace rubato {

namespace {

using Values = Eigen::VectorXd;

// What is fitted, as logarithms: all constants, then a factor on the latencies of each system.
Values constants_of(const NetworkParameters& parameters) {
  std::vector<double> values;
  visit_constants(parameters, [&](std::string_view, std::string_view, double value) {
    values.push_back(std::log(value));
  });
  return Eigen::Map<const Values>(values.data(), static_cast<Eigen::Index>(values.size()));
}

NetworkParameters parameters_at(const Values& values) {
  NetworkParameters parameters;
  Eigen::Index next = 0;
  visit_constants(parameters, [&](std::string_view, std::string_view, double& value) {
    value = std::exp(values[next++]);
  });
  return parameters;
}

// Every measured point with its weight in the fit.
struct FitPoint {
  const CollectiveSeries* series = nullptr;
  double message_bytes = 0.0, log_time = 0.0, weight = 0.0;
  double endless_gbs = 0.0;             // of its series
  std::optional<Eigen::Index> latency;  // where its system's factor is; nothing: 1
};

class NetworkFit {
 public:
  explicit NetworkFit(std::span<const CollectiveSeries> series) {
    std::map<std::string, std::size_t> series_of_system;
    for (const CollectiveSeries& one : series) ++series_of_system[one.system];
    prior_ = constants_of(prior_network_parameters());
    std::map<std::string, Eigen::Index> factors;
    for (const auto& [system, count] : series_of_system) {
      if (system == reference_system) continue;
      factors[system] = prior_.size();
      prior_.conservativeResize(prior_.size() + 1);
      prior_[prior_.size() - 1] = 0.0;
    }
    for (const CollectiveSeries& one : series) {
      const auto others = static_cast<double>(series_of_system.at(one.system) * one.points.size());
      const auto factor = factors.find(one.system);
      for (const CollectivePoint& point : one.points) {
        FitPoint& added = points_.emplace_back();
        added.series = &one;
        added.message_bytes = point.message_bytes;
        added.log_time = std::log(point.time_s);
        added.weight = std::sqrt(1.0 / others);
        if (factor != factors.end()) added.latency = factor->second;
      }
    }
  }

  // Bandwidths depend on the constants a little: they are found again after each fit.
  NetworkParameters fitted() {
    constexpr int rounds = 3, iterations = 50;
    constexpr double max_step = 0.5;
    Values values = prior_;
    for (int round = 0; round < rounds; ++round) {
      find_bandwidths(values);
      const LeastSquaresProblem problem{
          [&](const Values& at) { return residuals_at(at); },
          [&](const Values& at, const Values& residuals) { return jacobian_at(at, residuals); }};
      values = levenberg_marquardt(problem, std::move(values), iterations, max_step);
    }
    return parameters_at(values);
  }

 private:
  static double latency_of(const FitPoint& point, const Values& values) {
    return point.latency ? std::exp(values[*point.latency]) : 1.0;
  }

  void find_bandwidths(const Values& values) {
    const NetworkParameters parameters = parameters_at(values);
    const CollectiveSeries* series = nullptr;
    double endless_gbs = 0.0;
    for (FitPoint& point : points_) {
      if (point.series != series) {
        series = point.series;
        endless_gbs = series->endless_gbs(parameters, latency_of(point, values));
      }
      point.endless_gbs = endless_gbs;
    }
  }

  [[nodiscard]] Values residuals_at(const Values& values) const {
    constexpr double spread = 0.1;  // of ln(time); errors far above it count linearly
    const NetworkParameters parameters = parameters_at(values);
    const auto points = static_cast<Eigen::Index>(points_.size());
    Values residuals(points + values.size());
    for (Eigen::Index i = 0; i < points; ++i) {
      const FitPoint& point = points_[static_cast<std::size_t>(i)];
      const double time_s =
          point.series
              ->time(parameters, point.message_bytes, point.endless_gbs, latency_of(point, values))
              .time_s;
      residuals[i] = point.weight * robust((std::log(time_s) - point.log_time) / spread);
    }
    // Constants and factors are known to a factor of e.
    residuals.tail(values.size()) = values - prior_;
    return residuals;
  }

  [[nodiscard]] Eigen::MatrixXd jacobian_at(const Values& values, const Values& residuals) const {
    constexpr double step = 1e-5;
    Eigen::MatrixXd jacobian(residuals.size(), values.size());
    for (Eigen::Index i = 0; i < values.size(); ++i) {
      Values moved = values;
      moved[i] += step;
      jacobian.col(i) = (residuals_at(moved) - residuals) / step;
    }
    return jacobian;
  }

  std::vector<FitPoint> points_;
  Values prior_;
};

}  // namespace

NetworkParameters prior_network_parameters() {
  NetworkParameters prior{.start_s = 8e-6,
                          .pair_start_s = 10e-6,
                          .p2p_start_s = 8e-6,
                          .tree_slowdown = 1.1,
                          .chain_share = 0.3,
                          .links = {},
                          .source = "orders of magnitude"};
  const auto set = [&](LinkKind kind, const LinkParameters& link) {
    prior.links[static_cast<std::size_t>(kind)] = link;
  };
  set(LinkKind::nvlink, {1e-6, 6e-6, 300e-6, 0.5e-6});
  set(LinkKind::nvlink_older, {1e-6, 100e-6, 50e-6, 2e-6});
  set(LinkKind::pcie, {4e-6, 2e-6, 100e-6, 2e-6});
  set(LinkKind::rdma, {10e-6, 30e-6, 40e-6, 5e-6, 10e-6, 120e-6});
  set(LinkKind::libfabric, {10e-6, 200e-6, 150e-6, 10e-6, 10e-6, 150e-6});
  set(LinkKind::tcp, {20e-6, 200e-6, 400e-6, 20e-6, 30e-6, 500e-6});
  return prior;
}

NetworkParameters fit_network(std::span<const CollectiveSeries> series) {
  return NetworkFit(series).fitted();
}

}  // namespace rubato
