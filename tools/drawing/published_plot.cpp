#include "tools/drawing/published_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

// Okabe and Ito's palette for colour-blind readers (2008).
constexpr std::array series_colours{"#0072b2", "#d55e00", "#009e73",
                                    "#cc79a7", "#e69f00", "#56b4e9"};
constexpr double plot_width = 430.0, plot_height = 320.0, plot_left = 58.0, plot_right = 12.0,
                 plot_top = 14.0, plot_bottom = 46.0;
constexpr const char* faint = R"(class="axis" stroke="#8886" stroke-width="1")";

struct Span {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  void take(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  void widen(double share) {
    const double room = most > least ? share * (most - least) : 1.0;
    least -= room;
    most += room;
  }
  [[nodiscard]] double share_of(double value) const { return (value - least) / (most - least); }
};

// On a logarithmic axis 1, 2 and 5 times powers of ten. @param least, most  as scaled
std::vector<double> x_ticks(const PlotAxes& axes, double least, double most, int count) {
  if (!axes.logarithmic_x) return axis_ticks(least, most, count);
  std::vector<double> values;
  for (int power = static_cast<int>(std::floor(least)); power <= most; ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10.0, power);
      if (std::log10(value) >= least && std::log10(value) <= most) values.push_back(value);
    }
  }
  return values;
}

}  // namespace

std::string published_plot(const PlotAxes& axes, std::span<const PlotSeries> series) {
  const auto scaled = [&](double x) { return axes.logarithmic_x ? std::log10(x) : x; };
  Span x_span, y_span;
  for (const PlotSeries& one : series) {
    for (const auto* points : {&one.ours, &one.published}) {
      for (const auto& [x, y] : *points) {
        x_span.take(scaled(x));
        y_span.take(y);
      }
    }
  }
  if (x_span.least > x_span.most) return {};
  constexpr double room = 0.04;
  x_span.widen(room);
  y_span.widen(room);
  const auto x_at = [&](double x) {
    return plot_left + (plot_width - plot_left - plot_right) * x_span.share_of(scaled(x));
  };
  const auto y_at = [&](double y) {
    return plot_height - plot_bottom - (plot_height - plot_top - plot_bottom) * y_span.share_of(y);
  };
  Svg svg(plot_width, plot_height);
  constexpr int ticks = 6;
  for (const double value : x_ticks(axes, x_span.least, x_span.most, ticks)) {
    const double at = x_at(value);
    svg.line(at, plot_top, at, plot_height - plot_bottom, faint);
    svg.text(at, plot_height - plot_bottom + 16.0, fmt::format("{:.4g}", value + 0.0),
             R"(text-anchor="middle")");
  }
  for (const double tick : axis_ticks(y_span.least, y_span.most, ticks)) {
    svg.line(plot_left, y_at(tick), plot_width - plot_right, y_at(tick), faint);
    svg.text(plot_left - 6.0, y_at(tick) + 4.0, fmt::format("{:.4g}", tick + 0.0),
             R"(text-anchor="end")");
  }
  std::string key;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const PlotSeries& one = series[i];
    const char* colour = series_colours[i % series_colours.size()];
    const std::string style = fmt::format("c{}", i % series_colours.size());
    std::vector<std::pair<double, double>> line;
    for (const auto& [x, y] : one.ours) line.emplace_back(x_at(x), y_at(y));
    svg.polyline(line, fmt::format(R"(class="{}" stroke="{}" stroke-width="1.6")", style, colour));
    for (const auto& [x, y] : one.published) {
      svg.circle(x_at(x), y_at(y), 3.2,
                 fmt::format(R"(class="mark {1}" fill="{0}" fill-opacity=".35" stroke="{0}")",
                             colour, style),
                 fmt::format("{}: published {:.4g}, {:.4g}", one.name, x, y));
    }
    key += fmt::format(
        R"(<span><svg viewBox="0 0 14 12" aria-hidden="true"><rect class="{}" fill="{}" x="3" y="1" width="10" height="10"/></svg>{}</span>)",
        style, colour, page_text(one.name));
  }
  svg.text((plot_left + plot_width - plot_right) / 2.0, plot_height - 8.0, axes.x,
           R"(text-anchor="middle")");
  svg.text(14.0, plot_height / 2.0, axes.y,
           fmt::format(R"svg(text-anchor="middle" transform="rotate(-90 14 {:.0f})")svg",
                       plot_height / 2.0));
  return fmt::format("<figure><figcaption>{}</figcaption><div class=\"key\">{}</div>{}</figure>\n",
                     page_text(axes.title), key, svg.str());
}

}  // namespace rubato
