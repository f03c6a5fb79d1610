#pragma once
// Published points over our curves.

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rubato {

/// One colour of a plot.
struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> ours;       ///< drawn as a line
  std::vector<std::pair<double, double>> published;  ///< drawn as circles
};

/// How axes are named and scaled.
struct PlotAxes {
  std::string title, x, y;
  bool logarithmic_x = false;  ///< all x > 0
};

/// A figure element; nothing without points. Circles carry their numbers as tooltips.
[[nodiscard]] std::string published_plot(const PlotAxes& axes, std::span<const PlotSeries> series);

}  // namespace rubato
