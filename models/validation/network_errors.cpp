#include "models/validation/network_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "common/algorithms/parallel.hpp"
#include "common/error.hpp"
#include "models/calibration/network_fit.hpp"

namespace rubato {

namespace {

// The factor on latencies with which the model meets the shortest message; 1 if it is above 64 KiB.
double latency_scale_of(const NetworkParameters& parameters, const CollectiveSeries& series) {
  constexpr double least = 0.01;
  const CollectivePoint& shortest = series.points.front();
  if (shortest.message_bytes > message_classes.front()) return 1.0;
  const double bus_gbs = series.endless_gbs(parameters, 1.0);
  const auto time_s = [&](double scale) {
    return series.time(parameters, shortest.message_bytes, bus_gbs, scale).time_s;
  };
  return std::max((shortest.time_s - time_s(0.0)) / (time_s(1.0) - time_s(0.0)), least);
}

std::size_t class_of(double message_bytes) {
  return static_cast<std::size_t>(std::ranges::lower_bound(message_classes, message_bytes) -
                                  message_classes.begin());
}

// Groups in the order of their keys.
using GroupOf = std::function<std::string(const NetworkPoint&)>;

void add_groups(std::vector<NetworkErrors>& summary, std::span<const NetworkPoint> points,
                const GroupOf& group_of_point) {
  struct Group {
    std::vector<double> all;
    std::array<std::vector<double>, message_classes.size() + 1> by_size;
  };
  std::map<std::string, Group> groups;
  for (const NetworkPoint& point : points) {
    Group& group = groups[group_of_point(point)];
    group.all.push_back(point.error());
    group.by_size[class_of(point.measured.message_bytes)].push_back(point.error());
  }
  for (auto& [name, group] : groups) {
    NetworkErrors errors{name, error_quantiles(group.all), {}};
    std::ranges::transform(group.by_size, errors.by_size.begin(),
                           [](auto& of_class) { return error_quantiles(of_class); });
    summary.push_back(std::move(errors));
  }
}

}  // namespace

double NetworkPoint::error() const { return std::abs(predicted.time_s / measured.time_s - 1.0); }

std::vector<NetworkPoint> predict_series(const NetworkParameters& parameters,
                                         std::span<const CollectiveSeries> series,
                                         KnownOfSystem known) {
  std::vector<NetworkPoint> points;
  for (const CollectiveSeries& one : series) {
    const double scale =
        known == KnownOfSystem::bandwidth ? 1.0 : latency_scale_of(parameters, one);
    const double bus_gbs = one.endless_gbs(parameters, scale);
    for (const CollectivePoint& point : one.points)
      points.push_back({&one, point, one.time(parameters, point.message_bytes, bus_gbs, scale)});
  }
  return points;
}

std::vector<NetworkPoint> predict_left_out(std::span<const CollectiveSeries> series,
                                           KnownOfSystem known) {
  std::set<std::string> names;
  for (const CollectiveSeries& one : series) names.insert(one.system);
  if (names.size() < 2)
    throw UsageError("leaving systems out needs at least two systems in the file");
  const std::vector<std::string> systems(names.begin(), names.end());
  std::vector<NetworkParameters> fits(systems.size());
  parallel_for(systems.size(), [&](std::size_t i) {
    std::vector<CollectiveSeries> others;
    std::ranges::copy_if(series, std::back_inserter(others),
                         [&](const CollectiveSeries& one) { return one.system != systems[i]; });
    fits[i] = fit_network(others);
  });
  std::vector<NetworkPoint> points;
  for (const CollectiveSeries& one : series) {
    const auto at =
        static_cast<std::size_t>(std::ranges::find(systems, one.system) - systems.begin());
    const auto own = predict_series(fits[at], {&one, 1}, known);
    points.insert(points.end(), own.begin(), own.end());
  }
  return points;
}

std::vector<NetworkErrors> network_errors(std::span<const NetworkPoint> points) {
  std::vector<NetworkErrors> summary;
  add_groups(summary, points, [](const NetworkPoint&) { return "all"; });
  add_groups(summary, points, [](const NetworkPoint& point) { return point.series->system; });
  add_groups(summary, points,
             [](const NetworkPoint& point) { return std::string(name_of(point.series->kind)); });
  return summary;
}

}  // namespace rubato
