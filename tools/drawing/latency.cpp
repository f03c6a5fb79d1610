#include "tools/drawing/latency.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/svg.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

namespace {

// Okabe and Ito's palette for colour-blind readers (2008), as compared_granularities.
constexpr std::array colours{"#999999", "#e69f00", "#d55e00", "#0072b2"};
constexpr std::array styles{"none", "c4", "c1", "c0"};  // their classes on pages
// Readable where lines cross it.
constexpr const char* over_lines =
    R"(class="soft label" fill="#555" paint-order="stroke" stroke="#fff" stroke-width="3")";

constexpr double left = 58.0, gap = 34.0, row_gap = 30.0, below = 52.0, right = 22.0;

// Where things stand, px: on a desk panels are beside each other, on a telephone below.
struct Layout {
  double panel_width, title, first_device, energy_height, time_height;
};
constexpr Layout desk_layout{400.0, 86.0, 110.0, 250.0, 130.0};
constexpr Layout phone_layout{phone_px - left - right, 14.0, 50.0, 200.0, 110.0};
constexpr double device_line = 16.0;

using Value = double PlanUnderLatency::*;

// A row of the picture with its own vertical axis.
struct Row {
  const char* title;
  Value value;
  double height;
  double most_shown;  ///< what misses the budget many times over would hide the rest
  double least = 0.0, most = 0.0;
  double y = 0.0;

  [[nodiscard]] double at(double shown) const {
    return y + height * (most - shown) / (most - least);
  }
};

std::string latency_text(double latency_us) { return time_text(latency_us / us_per_s); }

class Picture {
 public:
  Picture(const LatencyCaption& caption, std::span<const LatencyPoint> points, Screen screen)
      : caption_(caption),
        points_(points),
        phone_(screen == Screen::phone),
        at_(phone_ ? phone_layout : desk_layout) {
    rows_ = {{"energy, %", &PlanUnderLatency::energy_change_pct, at_.energy_height, 5.0},
             {"time, %", &PlanUnderLatency::time_change_pct, at_.time_height, 40.0}};
    for (const bool waits : {false, true}) {
      if (std::ranges::find(points, waits, &LatencyPoint::waits) != points.end())
        panels_.push_back(waits);
    }
    const auto latency = [](const LatencyPoint& point) { return point.latency_us; };
    low_us_ = std::ranges::min(points, {}, latency).latency_us;
    high_us_ = std::ranges::max(points, {}, latency).latency_us;
    for (const PublishedLatency& device : published_latencies) {
      if (device.latency_us >= low_us_ && device.latency_us <= high_us_) devices_.push_back(device);
    }
    double y =
        at_.first_device + device_line * std::max(1.0, static_cast<double>(devices_.size())) - 4.0;
    for (Row& row : rows_) {
      scale(row);
      row.y = y;
      y += row.height + row_gap;
    }
    bottom_ = y - row_gap;
  }

  [[nodiscard]] std::string draw() const {
    const auto panels = static_cast<double>(panels_.size());
    const double block = bottom_ + below, legend = 44.0;
    const double width =
        phone_ ? phone_px
               : std::max(left + panels * (at_.panel_width + gap) - gap + right, least_width);
    const double height = phone_ ? legend + panels * block : block;
    Svg svg(width, height);
    svg.rect(0, 0, width, height, R"(class="paper" fill="#fff")");
    if (!phone_) draw_caption(svg);
    draw_legend(svg);
    for (std::size_t p = 0; p < panels_.size(); ++p) {
      const auto place = static_cast<double>(p);
      svg.begin_group(phone_ ? 0.0 : place * (at_.panel_width + gap),
                      phone_ ? legend + place * block : 0.0);
      draw_panel(svg, panels_[p], phone_ || p == 0);
      svg.end_group();
    }
    return svg.str();
  }

 private:
  static constexpr double least_width = 660.0, rounding = 1e-9;

  void scale(Row& row) const {
    for (const LatencyPoint& point : points_) {
      for (const auto& plan : point.plans) {
        if (!plan) continue;
        row.least = std::min(row.least, (*plan).*row.value);
        row.most = std::max(row.most, (*plan).*row.value);
      }
    }
    constexpr double margin = 0.05, least_height = 1.0;
    row.most = std::min(row.most, row.most_shown);
    const double room = margin * std::max(row.most - row.least, least_height);
    row.least -= room;
    row.most += room;
  }

  [[nodiscard]] double x(double latency_us) const {
    const double length = std::log(high_us_ / low_us_);
    return left + (length > 0.0 ? at_.panel_width * std::log(latency_us / low_us_) / length
                                : at_.panel_width / 2.0);
  }

  void draw_caption(Svg& svg) const {
    svg.text(
        left, 22,
        fmt::format("What is left of a saving when changes of clock take time: {}", caption_.trace),
        R"(class="ink" fill="#222" font-weight="600" font-size="14")");
    svg.text(
        left, 42,
        fmt::format("{}, {:g} W, clocks '{}', least energy in at most {:g} % more time. Baseline: "
                    "default clocks.",
                    caption_.gpu, caption_.power_limit_w, caption_.clocks, caption_.slack_pct),
        muted_text);
  }

  void draw_legend(Svg& svg) const {
    for (std::size_t g = 0; g < colours.size(); ++g) {
      const auto place = static_cast<double>(g);
      const std::size_t line = g / 2;  // on a telephone
      const double at = phone_ ? 4.0 + 106.0 * static_cast<double>(g % 2) : left + 110.0 * place;
      const double y = phone_ ? 12.0 + 18.0 * static_cast<double>(line) : 58.0;
      svg.line(at, y, at + 22, y,
               fmt::format(R"(class="{}" stroke="{}" stroke-width="2.2")", styles[g], colours[g]));
      const bool knows = compared_granularities[g] == Granularity::automatic;
      svg.text(at + 28, y + 4,
               fmt::format("{}{}", name_of(compared_granularities[g]),
                           knows ? ", which knows the latency" : ""),
               muted_text);
    }
  }

  // @param first  the axes' numbers stand beside it
  void draw_panel(Svg& svg, bool waits, bool first) const {
    const std::string run_on = "kernels run on at the old clock,",
                      ahead = "requests are issued ahead";
    if (waits) {
      svg.text(phone_ ? 4.0 : left, at_.title, "the device waits for the whole latency", bold_text);
    } else if (phone_) {
      svg.text(4.0, at_.title, run_on, bold_text);
      svg.text(4.0, at_.title + device_line, ahead, bold_text);
    } else {
      svg.text(left, at_.title, fmt::format("{} {}", run_on, ahead), bold_text);
    }
    for (const Row& row : rows_) draw_frame(svg, row, first);
    draw_devices(svg);
    for (const Row& row : rows_) draw_lines(svg, row, waits);
    const int last = static_cast<int>(std::floor(std::log10(high_us_) + rounding));
    for (int decade = static_cast<int>(std::ceil(std::log10(low_us_) - rounding)); decade <= last;
         ++decade) {
      const double us = std::pow(10.0, decade);
      svg.text(x(us), bottom_ + 16, latency_text(us), centred_text);
    }
    svg.text(left + at_.panel_width / 2, bottom_ + 38, "latency of a change of clock",
             centred_text);
  }

  void draw_frame(Svg& svg, const Row& row, bool first) const {
    constexpr int ticks = 6;
    for (const double tick : axis_ticks(row.least, row.most, ticks)) {
      const double y = row.at(tick);
      svg.line(left, y, left + at_.panel_width, y,
               tick == 0.0 ? R"(class="same" stroke="#999")" : R"(class="axis" stroke="#e5e5e5")");
      if (first)
        svg.text(left - 6, y + 4, fmt::format("{:g}", tick == 0.0 ? 0.0 : tick), right_text);
    }
    if (first) {
      const double y = row.y + row.height / 2;
      svg.text(
          16, y, row.title,
          fmt::format(
              R"style(class="soft" fill="#555" text-anchor="middle" transform="rotate(-90 16 {:.1f})")style",
              y));
    }
  }

  // A name stands left of its line, above those of smaller latencies: no line crosses it. The first
  // stands right of its line, where there is no room at its left, above all others.
  void draw_devices(Svg& svg) const {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const PublishedLatency& device = devices_[i];
      const double at = x(device.latency_us);
      const bool at_left = device.latency_us == low_us_;
      const bool first_at_left = devices_.front().latency_us == low_us_;
      const std::size_t line = at_left ? 0 : devices_.size() - 1 - i + (first_at_left ? 1 : 0);
      const double y = at_.first_device + device_line * static_cast<double>(line);
      svg.line(at, y - 8, at, bottom_, R"(class="zero" stroke="#777" stroke-dasharray="3 3")");
      svg.text(at + (at_left ? 6 : -6), y,
               fmt::format("{}, {}", device.device, latency_text(device.latency_us)),
               fmt::format("{}{}", over_lines, at_left ? "" : R"( text-anchor="end")"));
    }
  }

  void draw_lines(Svg& svg, const Row& row, bool waits) const {
    for (std::size_t g = 0; g < colours.size(); ++g) {
      std::vector<std::pair<double, double>> line;
      for (const LatencyPoint& point : points_) {
        if (point.waits != waits || !point.plans[g]) continue;
        const double value = (*point.plans[g]).*row.value;
        if (value > row.most) continue;
        line.emplace_back(x(point.latency_us), row.at(value));
      }
      // The first, broad, shows beside others that lie on it.
      svg.polyline(line, fmt::format(R"(class="{}" stroke="{}" stroke-width="{}")", styles[g],
                                     colours[g], g == 0 ? 6 : 2));
      for (const LatencyPoint& point : points_) {
        if (point.waits != waits || !point.plans[g]) continue;
        const PlanUnderLatency& plan = *point.plans[g];
        if (plan.*row.value > row.most) continue;
        svg.circle(x(point.latency_us), row.at(plan.*row.value), 2.6,
                   fmt::format(R"(class="mark {}" fill="{}")", styles[g], colours[g]),
                   fmt::format("{}, {}: energy {} %, time {} %, {} changes, {} launches "
                               "late, gap {:.3f} %",
                               name_of(compared_granularities[g]), latency_text(point.latency_us),
                               format_signed(plan.energy_change_pct, 2),
                               format_signed(plan.time_change_pct, 2), plan.switches,
                               plan.late_launches, plan.gap_pct));
      }
    }
  }

  const LatencyCaption& caption_;
  std::span<const LatencyPoint> points_;
  bool phone_;
  Layout at_;
  std::vector<Row> rows_;
  std::vector<bool> panels_;               ///< whether the device waits
  std::vector<PublishedLatency> devices_;  ///< whose latency is shown, least first
  double low_us_ = 0.0, high_us_ = 0.0, bottom_ = 0.0;
};

}  // namespace

std::string latency_svg(const LatencyCaption& caption, std::span<const LatencyPoint> points,
                        Screen screen) {
  return Picture(caption, points, screen).draw();
}

Answer latency_answer(std::span<const LatencySaving> savings, std::string_view who) {
  Answer answer;
  if (savings.empty()) return answer;
  const bool first = savings.front().waits;
  for (const bool waits : {first, !first}) {
    const LatencySaving *shortest = nullptr, *longest = nullptr;
    for (const LatencySaving& one : savings) {
      if (one.waits != waits) continue;
      if (shortest == nullptr || one.latency_us < shortest->latency_us) shortest = &one;
      if (longest == nullptr || one.latency_us > longest->latency_us) longest = &one;
    }
    if (shortest == nullptr) continue;
    const auto saved = [](const LatencySaving& one) {
      return change_words(one.energy_change_pct, one.interval);
    };
    if (!answer.lines.empty()) answer.next_line();
    answer
        .say(
            fmt::format("A {} that {}: ", who, waits ? "waits for its clock" : "runs on meanwhile"))
        .unbroken_lead("energy " + saved(*shortest))
        .say(" if a change of clock takes " + latency_text(shortest->latency_us));
    if (longest != shortest) {
      answer.say(", ")
          .unbroken_lead(saved(*longest))
          .say(" if it takes " + latency_text(longest->latency_us));
    }
    answer.say(".");
  }
  return answer;
}

Answer latency_answer(std::span<const LatencyPoint> points) {
  std::vector<LatencySaving> savings;
  for (const LatencyPoint& point : points) {
    if (const auto& plan = point.plans.back())
      savings.push_back({point.latency_us, point.waits, plan->energy_change_pct});
  }
  return latency_answer(savings, "device");
}

namespace {

std::string latency_numbers(std::span<const LatencyPoint> points) {
  std::vector<std::vector<std::string>> rows;
  for (const LatencyPoint& point : points) {
    for (std::size_t g = 0; g < point.plans.size(); ++g) {
      const auto& plan = point.plans[g];
      if (!plan) continue;
      rows.push_back({point.waits ? "waits" : "runs on", latency_text(point.latency_us),
                      std::string(name_of(compared_granularities[g])),
                      format_signed(plan->energy_change_pct, 2),
                      format_signed(plan->time_change_pct, 2), fmt::format("{}", plan->switches),
                      fmt::format("{}", plan->late_launches),
                      fmt::format("{:.3f}", plan->gap_pct)});
    }
  }
  return html_table({"meanwhile the device", "latency", "one clock per", "energy %", "time %",
                     "changes", "launches late", "gap %"},
                    rows);
}

}  // namespace

std::string latency_page(const LatencyCaption& caption, std::span<const LatencyPoint> points) {
  std::string body = page_section(
      "How sure this is",
      facts_table({{"Model error", page_text(caption.model_error)},
                   {"Plans",
                    "of granularity segment know the latency; the others took changes to be "
                    "free and are counted with it, late ones too"},
                   {"Numbers",
                    "of the simulator, against the default clocks; gap: to a proven "
                    "bound of segment"}}));
  body += page_section(
      "Energy and time over latency",
      two_pictures(latency_svg(caption, points), latency_svg(caption, points, Screen::phone)));
  body += page_section("Numbers",
                       fmt::format("<details><summary>All {} latencies</summary>\n{}</details>\n",
                                   points.size(), latency_numbers(points)));
  return whole_page(
      {"What is left when changes of clock take time",
       fmt::format("{} on {}, {:g} W, clocks '{}', least energy in at most {:g} % more time",
                   caption.trace, caption.gpu, caption.power_limit_w, caption.clocks,
                   caption.slack_pct),
       latency_answer(points), ""},
      body);
}

}  // namespace rubato
