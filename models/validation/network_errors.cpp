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

constexpr double mebibyte = 1024.0 * 1024.0;

// Time of the shortest message over the model's; 1 if it is above 64 KiB.
double latency_scale_of(const NetworkParameters& parameters, const CollectiveSeries& series,
                        double peak_gbs) {
  constexpr double short_bytes = 64.0 * 1024.0;
  const CollectivePoint& shortest = series.points.front();
  if (shortest.message_bytes > short_bytes) return 1.0;
  return shortest.time_s /
         collective_time(parameters, series.kind, series.group, shortest.message_bytes, peak_gbs)
             .time_s;
}

// Groups in the order of their keys.
using GroupOf = std::function<std::string(const NetworkPoint&)>;

void add_groups(std::vector<NetworkErrors>& summary, std::span<const NetworkPoint> points,
                const GroupOf& group_of_point) {
  std::map<std::string, std::array<std::vector<double>, 2>> groups;
  for (const NetworkPoint& point : points) {
    auto& [all, large] = groups[group_of_point(point)];
    all.push_back(point.error());
    if (point.measured.message_bytes > mebibyte) large.push_back(point.error());
  }
  for (auto& [name, errors] : groups)
    summary.push_back({name, error_quantiles(errors[0]), error_quantiles(errors[1])});
}

std::string range_of(double bytes) {
  if (bytes <= mebibyte / 16.0) return "a: up to 64 KiB";
  if (bytes <= mebibyte) return "b: up to 1 MiB";
  if (bytes <= 16.0 * mebibyte) return "c: up to 16 MiB";
  if (bytes <= 256.0 * mebibyte) return "d: up to 256 MiB";
  return "e: above 256 MiB";
}

}  // namespace

std::string_view name_of(KnownOfSystem value) noexcept {
  return value == KnownOfSystem::peak ? "peak" : "peak and latency";
}

double NetworkPoint::error() const { return std::abs(predicted.time_s / measured.time_s - 1.0); }

std::vector<NetworkPoint> predict_series(const NetworkParameters& parameters,
                                         std::span<const CollectiveSeries> series,
                                         KnownOfSystem known) {
  std::vector<NetworkPoint> points;
  for (const CollectiveSeries& one : series) {
    const double peak_gbs = one.peak_gbs();
    const double scale =
        known == KnownOfSystem::peak ? 1.0 : latency_scale_of(parameters, one, peak_gbs);
    for (const CollectivePoint& point : one.points) {
      points.push_back(
          {&one, point,
           collective_time(parameters, one.kind, one.group, point.message_bytes, peak_gbs, scale)});
    }
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
  add_groups(summary, points,
             [](const NetworkPoint& point) { return range_of(point.measured.message_bytes); });
  return summary;
}

}  // namespace rubato
