#pragma once
// How far the network model is from measured collectives, also of systems left out of the fit.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/calibration/network_measurements.hpp"
#include "models/validation/errors.hpp"

namespace rubato {

/// What of a system the model was told, besides its links.
enum class KnownOfSystem {
  peak,              ///< peak bus bandwidth of each series
  peak_and_latency,  ///< that, and how its shortest message compares with the model's
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

/// @param parameters  for all series
[[nodiscard]] std::vector<NetworkPoint> predict_series(const NetworkParameters& parameters,
                                                       std::span<const CollectiveSeries> series,
                                                       KnownOfSystem known);

/// Each system by constants fitted to all others. @throws UsageError if there are less than two
[[nodiscard]] std::vector<NetworkPoint> predict_left_out(std::span<const CollectiveSeries> series,
                                                         KnownOfSystem known);

/// Errors of a group of points, in %.
struct NetworkErrors {
  std::string group;     ///< "all", a system, collective or range of messages
  ErrorQuantiles all;    ///< of every message
  ErrorQuantiles large;  ///< of messages above 1 MiB
};

/// All points; by system; by collective; by message.
[[nodiscard]] std::vector<NetworkErrors> network_errors(std::span<const NetworkPoint> points);

}  // namespace rubato
