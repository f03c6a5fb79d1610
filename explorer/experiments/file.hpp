#pragma once
// An experiment file: axes, filters and named scenarios, and the points they
// stand for. Format: docs/experiments.md.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/experiments/axes.hpp"

namespace rubato {

/// One point of an experiment and the scenario that asks for it; "" stands for [axes].
struct ExperimentPoint {
  std::string scenario;
  Point point;
};

struct Experiment {
  static constexpr std::uint64_t schema = 1;
  static constexpr std::size_t max_points = 1'000'000;

  std::string name;
  std::string id;                       ///< content hash of the text
  std::string text;                     ///< the file, whole
  std::filesystem::path folder;         ///< where relative names of traces and specs start
  std::vector<ExperimentPoint> points;  ///< filters applied; the last axis varies fastest
  std::size_t filtered = 0;             ///< points that filters left out
};

/// Reads and expands an experiment.
/// @throws DataError naming line and key of the first wrong or unknown entry, with the nearest
///         known one; also if it stands for no point or for more than `max_points`
[[nodiscard]] Experiment parse_experiment(std::string_view text, const std::filesystem::path& path,
                                          std::size_t max_points = Experiment::max_points);

/// @throws IoError, DataError
[[nodiscard]] Experiment read_experiment(const std::filesystem::path& path);

/// A commented experiment file that parses and runs as it is.
[[nodiscard]] std::string experiment_template();

}  // namespace rubato
