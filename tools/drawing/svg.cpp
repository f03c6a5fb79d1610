#include "tools/drawing/svg.hpp"

#include <cmath>

#include <fmt/format.h>

namespace rubato {

namespace {

std::string point_list(const std::vector<std::pair<double, double>>& points) {
  std::string list;
  for (const auto& [x, y] : points) list += fmt::format("{:.2f},{:.2f} ", x, y);
  return list;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

void Svg::element(const std::string& open, std::string_view name, std::string_view tooltip) {
  if (tooltip.empty()) {
    body_ += open + "/>\n";
  } else {
    body_ += fmt::format("{}><title>{}</title></{}>\n", open, xml_escaped(tooltip), name);
  }
}

void Svg::rect(double x, double y, double width, double height, std::string_view style,
               std::string_view tooltip) {
  element(fmt::format(R"(<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" {})", x, y,
                      width, height, style),
          "rect", tooltip);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  element(fmt::format(R"(<line x1="{:.2f}" y1="{:.2f}" x2="{:.2f}" y2="{:.2f}" {})", x1, y1, x2, y2,
                      style),
          "line", {});
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view style) {
  element(fmt::format(R"(<polyline points="{}" fill="none" {})", point_list(points), style),
          "polyline", {});
}

void Svg::polygon(const std::vector<std::pair<double, double>>& points, std::string_view style) {
  element(fmt::format(R"(<polygon points="{}" {})", point_list(points), style), "polygon", {});
}

void Svg::circle(double x, double y, double radius, std::string_view style,
                 std::string_view tooltip) {
  element(fmt::format(R"(<circle cx="{:.2f}" cy="{:.2f}" r="{:.2f}" {})", x, y, radius, style),
          "circle", tooltip);
}

void Svg::text(double x, double y, std::string_view label, std::string_view style) {
  body_ +=
      fmt::format(R"(<text x="{:.2f}" y="{:.2f}" {}>{}</text>)", x, y, style, xml_escaped(label)) +
      '\n';
}

void Svg::begin_group(double right, double below) {
  body_ += fmt::format("<g transform=\"translate({:.2f} {:.2f})\">\n", right, below);
}

void Svg::end_group() { body_ += "</g>\n"; }

std::string Svg::str() const {
  return fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" )"
      R"(viewBox="0 0 {0:.0f} {1:.0f}" font-family="system-ui, sans-serif" font-size="12">)"
      "\n{2}</svg>\n",
      width_, height_, body_);
}

std::vector<double> axis_ticks(double least, double longest, int count) {
  const double rough = (longest - least) / count;
  if (!(rough > 0.0)) return {least};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10.0 * power;
  for (const double round : {1.0, 2.0, 5.0}) {
    if (rough <= round * power) {
      step = round * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double i = std::ceil(least / step); i * step <= longest * (1.0 + 1e-12); ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

}  // namespace rubato
