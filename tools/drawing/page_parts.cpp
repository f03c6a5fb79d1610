#include "tools/drawing/page_parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/report/page.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

// Digits, signs and marks, no words: "-12.8", "+2.6 \u00b1 1.6", "1e-06".
bool reads_as_number(std::string_view cell) {
  return cell.find_first_of("0123456789-") != std::string_view::npos &&
         std::ranges::none_of(cell, [](char c) {
           return c != 'e' && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/');
         });
}

std::vector<bool> number_columns(std::size_t columns,
                                 const std::vector<std::vector<std::string>>& rows) {
  std::vector<bool> numbers(columns, !rows.empty());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < std::min(columns, row.size()); ++c)
      numbers[c] = numbers[c] && (row[c].empty() || reads_as_number(row[c]));
  }
  return numbers;
}

}  // namespace

std::string page_text(std::string_view text) { return xml_escaped(printable(text)); }

std::string whole_page(const PageHead& head, std::string_view body) {
  std::string top = fmt::format("<header>\n<p class=\"soft\">{}</p>\n<h1>{}</h1>\n",
                                page_text(head.subtitle), page_text(head.title));
  if (!head.answer.lines.empty())
    top += fmt::format("<p class=\"answer\">{}</p>\n", answer_html(head.answer));
  if (!head.warning.empty())
    top += fmt::format("<p class=\"warning\">{}</p>\n", page_text(head.warning));
  return static_page(page_text(head.title), fmt::format("{}</header>\n{}", top, body));
}

std::string page_section(std::string_view heading, std::string_view html) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", page_text(heading), html);
}

std::string html_table(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::string>& kernels) {
  const std::vector<bool> numbers = number_columns(head.size(), rows);
  std::vector<bool> empty(head.size(), !rows.empty());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      empty[c] = empty[c] && (row[c].empty() || row[c] == "-");
  }
  constexpr std::size_t longest_line = 24;
  const auto cell = [&](std::string_view tag, std::size_t c, std::string_view text) {
    if (c < empty.size() && empty[c]) return std::string();
    const bool number = c < numbers.size() && numbers[c];
    const std::string_view style = number                       ? " class=\"number\""
                                   : text.size() > longest_line ? " class=\"words\""
                                                                : "";
    return fmt::format("<{0}{1}>{2}</{0}>", tag, style, text);
  };
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t c = 0; c < head.size(); ++c) html += cell("th", c, head[c]);
  html += "</tr></thead><tbody>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    html +=
        kernels.empty() ? "<tr>" : fmt::format("<tr data-kernel=\"{}\">", page_text(kernels.at(r)));
    for (std::size_t c = 0; c < rows[r].size(); ++c) html += cell("td", c, rows[r][c]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string html_table(const OutputTable& table) {
  std::vector<std::vector<std::string>> lines = table.shown();
  for (auto& line : lines) {
    for (std::string& cell : line) cell = page_text(cell);
  }
  if (lines.empty()) return {};
  return html_table(lines.front(), {lines.begin() + 1, lines.end()});
}

std::string facts_table(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string html = "<div class=\"scroll\"><table><tbody>\n";
  for (const auto& [name, text] : facts)
    html +=
        fmt::format("<tr><th scope=\"row\">{}</th><td class=\"free\">{}</td></tr>\n", name, text);
  return html + "</tbody></table></div>\n";
}

std::string model_error_text(const GpuSpec& spec) {
  for (const std::string_view quantity : {"energy", "power"}) {
    std::optional<double> worst;
    for (const auto& [name, value] : spec.fit_errors) {
      if (name.find(quantity) != std::string::npos && name.ends_with("_pct") &&
          name.find("_scale_") == std::string::npos)
        worst = std::max(worst.value_or(value), value);
    }
    if (worst)
      return fmt::format("{:.2f} % of {} at most in fit and cross-validation, within the intervals",
                         *worst, quantity);
  }
  return "not known: nothing was measured on this GPU";
}

std::string two_pictures(const std::string& desk, const std::string& phone) {
  return fmt::format(
      "<div class=\"desk\"><div class=\"scroll\"><div class=\"chart wide\">{}</div></div></div>\n"
      "<div class=\"phone\"><div class=\"chart\">{}</div></div>\n",
      desk, phone);
}

std::string agreement_plot(const std::string& title, const std::string& unit,
                           const std::vector<MeasuredPair>& pairs, double tolerance) {
  if (pairs.empty()) return {};
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  for (const MeasuredPair& pair : pairs) {
    low = std::min({low, pair.measured, pair.predicted});
    high = std::max({high, pair.measured, pair.predicted});
  }
  const double band = 1.0 + tolerance;
  constexpr double size = 430.0, margin = 56.0, inset = 10.0, reserve = 1.08;
  low /= reserve;
  high *= reserve;
  const auto at = [&](double value) {
    return margin + (size - margin - inset) * std::log(value / low) / std::log(high / low);
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
          "<line class=\"axis\" x1=\"{9:.1f}\" y1=\"{3:.1f}\" x2=\"{4:.1f}\" y2=\"{3:.1f}\"/>"
          "<text x=\"{0:.1f}\" y=\"{5:.1f}\" text-anchor=\"middle\">{6:g}</text>"
          "<text x=\"{7:.1f}\" y=\"{8:.1f}\" text-anchor=\"end\">{6:g}</text>",
          x(value), inset, size - margin, y(value), size - inset, size - margin + 16.0, value,
          margin - 6.0, y(value) + 4.0, margin);
    }
  }
  for (const MeasuredPair& pair : pairs) {
    svg += fmt::format(
        "<circle class=\"mark {}\" data-kernel=\"{}\" r=\"3\" cx=\"{:.1f}\" cy=\"{:.1f}\">"
        "<title>{}: {:.4g} {}, predicted {:.4g} ({} %)</title></circle>",
        pair.capped ? "capped" : "free", page_text(pair.kernel), x(pair.measured),
        y(pair.predicted), page_text(pair.label), pair.measured, unit, pair.predicted,
        format_signed(100.0 * (pair.predicted / pair.measured - 1.0), 1));
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured, {}</text>"
      "<text x=\"14\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {})\">predicted, "
      "{}</text>"
      "</svg></figure>\n",
      size / 2.0, size - 8.0, unit, size / 2.0, size / 2.0, unit);
  return svg;
}

std::string error_plot(const std::string& title, const std::string& x_title,
                       const std::vector<ErrorPoint>& points, double tolerance) {
  if (points.empty()) return {};
  constexpr double width = 430.0, height = 260.0, left = 50.0, right = 12.0, top = 10.0,
                   bottom = 44.0, most_bands = 6.0, reserve = 1.1;
  double reach = tolerance, low = points.front().x, high = low;
  std::map<double, std::pair<double, double>> sums;  // x: sum, count
  for (const ErrorPoint& point : points) {
    reach = std::max(reach, std::abs(point.error_frac));
    low = std::min(low, point.x);
    high = std::max(high, point.x);
    sums[point.x].first += point.error_frac;
    sums[point.x].second += 1.0;
  }
  reach = reserve * std::min(reach, most_bands * tolerance);
  const double room = high > low ? 0.03 * (high - low) : 1.0;
  const auto x = [&](double value) {
    return left + (width - left - right) * (value - low + room) / (high - low + 2.0 * room);
  };
  const auto y = [&](double error) {
    return 0.5 * (top + height - bottom) -
           0.5 * (height - top - bottom) * std::clamp(error / reach, -1.0, 1.0);
  };
  std::string svg = fmt::format(
      "<figure><figcaption>{0}</figcaption><svg viewBox=\"0 0 {1} {2}\" role=\"img\" "
      "aria-label=\"{0} over {3}, {4} points\"><rect class=\"band\" x=\"{5}\" y=\"{6:.1f}\" "
      "width=\"{7}\" height=\"{8:.1f}\"/>",
      title, width, height, x_title, points.size(), left, y(tolerance), width - left - right,
      y(-tolerance) - y(tolerance));
  constexpr int ticks = 6;
  for (const double tick : axis_ticks(-100.0 * reach, 100.0 * reach, ticks)) {
    const double at = y(tick / 100.0);
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text "
        "class=\"soft\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{} %</text>",
        tick == 0.0 ? "same" : "axis", left, width - right, at, at, left - 5.0, at + 4.0,
        tick == 0.0 ? "0" : format_signed(tick, 0));
  }
  for (const double tick : axis_ticks(low, high, ticks)) {
    svg +=
        fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>",
                    x(tick), height - bottom + 18.0, tick + 0.0);
  }
  std::string mean;
  for (const auto& [at, sum] : sums)
    mean += fmt::format("{:.1f},{:.1f} ", x(at), y(sum.first / sum.second));
  svg += fmt::format("<polyline class=\"bar\" fill=\"none\" points=\"{}\"/>", mean);
  for (const ErrorPoint& point : points) {
    svg += fmt::format(
        "<circle class=\"mark {}\" data-kernel=\"{}\" r=\"3\" cx=\"{:.1f}\" "
        "cy=\"{:.1f}\"><title>{}: {} %</title></circle>",
        point.capped ? "capped" : "free", page_text(point.kernel), x(point.x), y(point.error_frac),
        page_text(point.label), format_signed(100.0 * point.error_frac, 2));
  }
  return svg + fmt::format(
                   "<text class=\"soft\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}"
                   "</text></svg></figure>\n",
                   width - right, height - 8.0, x_title);
}

}  // namespace rubato
