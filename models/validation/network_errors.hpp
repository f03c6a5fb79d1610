#pragma once
// How far the network model is from measured collectives, also of systems held out of its fit.

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/calibration/network_measurements.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// What the model was told of a system, besides its links.
enum class KnownOfSystem {
  bandwidth,              ///< bus bandwidth of each series, by its longest messages
  bandwidth_and_latency,  ///< that, and a factor on latencies, by its shortest message
};

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

/// Upper ends of the classes of message sizes that errors are given for, in bytes: 64 KiB, 1 MiB,
/// 16 MiB; the last class has none.
inline constexpr std::array<double, 3> message_classes{65536.0, 1048576.0, 16777216.0};

/// Errors of a group of points, in %.
struct NetworkErrors {
  std::string group;   ///< "all", a system or a collective
  ErrorQuantiles all;  ///< of every message
  std::array<ErrorQuantiles, message_classes.size() + 1> by_size;
};

/// Errors of all points; by system; by collective.
[[nodiscard]] std::vector<NetworkErrors> network_errors(std::span<const NetworkPoint> points);

}  // namespace rubato
