#include "tools/drawing/page_parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "common/text.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

constexpr const char* page_style = R"(
:root { color-scheme: light dark; --ink: #1f2328; --paper: #fdfdfb; --soft: #5b6470; --line: #d5d9de; --free: #0072b2; --capped: #d55e00; --band: #0072b220; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #16191d; --soft: #a0a8b2; --line: #3a414a; --free: #58a6dd; --capped: #f08a4b; --band: #58a6dd30; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .3rem; }
p { color: var(--soft); margin: .3rem 0 .8rem; }
.plots { display: flex; flex-wrap: wrap; gap: 1.5rem; }
figure { margin: 0; flex: 1 1 20rem; max-width: 36rem; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--soft); } .paper { fill: none; } .axis { stroke: var(--line); } .same { stroke: var(--ink); stroke-width: 1; } .band { fill: var(--band); }
.free { fill: var(--free); } .capped { fill: var(--capped); } circle { fill-opacity: .55; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child, .left { text-align: left; } th { color: var(--soft); })";

}  // namespace

std::string page_text(std::string_view text) { return xml_escaped(printable(text)); }

std::string agreement_plot(const std::string& title, const std::string& unit,
                           const std::vector<MeasuredPair>& pairs, double tolerance) {
  if (pairs.empty()) return {};
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  for (const MeasuredPair& pair : pairs) {
    low = std::min({low, pair.measured, pair.predicted});
    high = std::max({high, pair.measured, pair.predicted});
  }
  const double band = 1.0 + tolerance;
  constexpr double size = 430.0, margin = 64.0, reserve = 1.08;
  low /= reserve;
  high *= reserve;
  const auto at = [&](double value) {
    return margin + (size - 2.0 * margin) * std::log(value / low) / std::log(high / low);
  };
  const auto x = [&](double value) { return at(value); };
  const auto y = [&](double value) { return size - at(value); };
  std::string svg = fmt::format(
      "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}, "
      "predicted over measured, {} points\">",
      title, size, size, title, pairs.size());
  svg += fmt::format(
      "<polygon class=\"band\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} "
      "{:.1f},{:.1f}\"/>",
      x(low), y(low * band), x(high / band), y(high), x(high), y(high / band), x(low * band),
      y(low));
  svg +=
      fmt::format("<line class=\"same\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                  x(low), y(low), x(high), y(high));
  // Ticks at 1, 2 and 5 times powers of ten; only powers of ten over long ranges.
  const bool long_range = high / low > 100.0;
  for (int power = static_cast<int>(std::floor(std::log10(low))); power <= std::log10(high);
       ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10.0, power);
      if (value < low || value > high || (long_range && digit > 1.0)) continue;
      svg += fmt::format(
          "<line class=\"axis\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>"
          "<line class=\"axis\" x1=\"{1:.1f}\" y1=\"{3:.1f}\" x2=\"{4:.1f}\" y2=\"{3:.1f}\"/>"
          "<text x=\"{0:.1f}\" y=\"{5:.1f}\" text-anchor=\"middle\">{6:g}</text>"
          "<text x=\"{7:.1f}\" y=\"{8:.1f}\" text-anchor=\"end\">{6:g}</text>",
          x(value), margin, size - margin, y(value), size - margin, size - margin + 16.0, value,
          margin - 6.0, y(value) + 4.0);
    }
  }
  for (const MeasuredPair& pair : pairs) {
    svg += fmt::format(
        "<circle class=\"{}\" r=\"2.6\" cx=\"{:.1f}\" cy=\"{:.1f}\"><title>{}: {:.4g} {}, "
        "predicted {:.4g}</title></circle>",
        pair.capped ? "capped" : "free", x(pair.measured), y(pair.predicted), page_text(pair.label),
        pair.measured, unit, pair.predicted);
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured, {}</text>"
      "<text x=\"14\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {})\">predicted, "
      "{}</text>"
      "</svg></figure>\n",
      size / 2.0, size - 8.0, unit, size / 2.0, size / 2.0, unit);
  return svg;
}

std::string whole_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{0}</title><style>{1}"
      "</style></head><body><main>\n<h1>{0}</h1>\n{2}</main></body></html>\n",
      page_text(title), page_style, body);
}

}  // namespace rubato
