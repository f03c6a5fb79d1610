#pragma once
// How far the network model is from measured collectives, also of systems held out of its fit.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/calibration/network_measurements.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// What the model was told of a system, besides its links.
enum class KnownOfSystem {
  peak,              ///< peak bus bandwidth of each series
  peak_and_latency,  ///< that, and the time of its shortest message over the model's
};
[[nodiscard]] std::string_view name_of(KnownOfSystem value) noexcept;

/// One measured time and what the model says.
struct NetworkPoint {
  const CollectiveSeries* series = nullptr;  ///< of the span that was given
  CollectivePoint measured;
  CollectiveTime predicted;

  /// |predicted / measured - 1|
  [[nodiscard]] double error() const;
};

/// Predicts all points of all series. @param parameters  for all series
[[nodiscard]] std::vector<NetworkPoint> predict_series(const NetworkParameters& parameters,
                                                       std::span<const CollectiveSeries> series,
                                                       KnownOfSystem known);

/// Predicts each system by constants fitted to all others (leave-one-out).
/// @throws UsageError if there are fewer than two systems
[[nodiscard]] std::vector<NetworkPoint> predict_left_out(std::span<const CollectiveSeries> series,
                                                         KnownOfSystem known);

/// Errors of a group of points, in %.
struct NetworkErrors {
  std::string group;     ///< "all", a system, collective or range of messages
  ErrorQuantiles all;    ///< of every message
  ErrorQuantiles large;  ///< of messages above 1 MiB
};

/// Errors of all points; by system; by collective; by range of message sizes.
[[nodiscard]] std::vector<NetworkErrors> network_errors(std::span<const NetworkPoint> points);

}  // namespace rubato
