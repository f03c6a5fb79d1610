#include "tools/drawing/transfer.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

// Blue and vermilion of Okabe and Ito's palette for colour-blind readers (2008).
constexpr const char* own_colour = "#0072b2";
constexpr const char* plan_colour = "#d55e00";
// Their classes on pages, which have darker and lighter ones.
std::string_view style_of(std::string_view colour) { return colour == own_colour ? "c0" : "c1"; }
constexpr const char* dashes = R"( stroke-dasharray="5 3")";

constexpr double left = 62.0, right = 16.0, gap = 22.0, row_gap = 34.0;
constexpr double no_value = 0.0;
constexpr double legend_line = 18.0;

using Points = std::vector<std::pair<double, double>>;
using Value = std::function<std::optional<double>(const Transfer&)>;

// 90 % intervals of what the transferred plan saves, %, and of its change of time.
Interval plan_saving_interval(const Transfer& t) {
  Interval saving = t.interval->energy;
  saving.low_pct = -t.interval->energy.high_pct;
  saving.high_pct = -t.interval->energy.low_pct;
  return saving;
}
Interval plan_time_interval(const Transfer& t) { return t.interval->time; }

// A column of the picture: transfers [first, last).
struct Panel {
  std::size_t first = 0, last = 0;
  double x = 0.0;  ///< left edge, px
};

struct Line {
  Value value;
  const char* colour;
  bool dashed = false;
  Interval (*interval)(const Transfer&) = nullptr;
};

// A row of the picture with its own vertical axis, shared by all columns.
struct Row {
  const char* title;
  double height;
  std::vector<Line> lines;
  double least = 0.0, most = 0.0;  ///< 0 is always in the picture
  double y = 0.0;                  ///< upper edge, px

  [[nodiscard]] double at(double value) const {
    return y + height * (most - value) / (most - least);
  }
};

std::string tooltip(const Transfer& t) {
  std::string text = fmt::format(
      "{}: {} % saved at {} % time; {:.0f} W at default clocks, {:.0f} % of the time at "
      "the power limit",
      t.run, format_fixed(t.saving_pct(), 2), format_signed(t.time_pct(), 2), power_w(t.baseline),
      100.0 * t.limited_frac);
  if (t.own) {
    text += fmt::format("; its own plan saves {} % at {} % time",
                        format_fixed(*t.own_saving_pct(), 2), format_signed(*t.own_time_pct(), 2));
  }
  if (t.own_in_time) {
    text += fmt::format("; in the plan's time {} % could be saved, regret {} points",
                        format_fixed(*t.in_time_saving_pct(), 2),
                        format_fixed(*t.equal_time_regret_points(), 2));
  }
  return text;
}

class Picture {
 public:
  Picture(const TransferCaption& caption, std::span<const DrawnTransfer> transfers, Screen screen)
      : caption_(caption), transfers_(transfers), phone_(screen == Screen::phone) {
    rows_ = {{"energy saved, %",
              phone_ ? 140.0 : 170.0,
              {{&Transfer::own_saving_pct, own_colour},
               {&Transfer::in_time_saving_pct, own_colour, true},
               {&Transfer::saving_pct, plan_colour, false, plan_saving_interval}}},
             {"regret at equal time, points",
              80.0,
              {{&Transfer::equal_time_regret_points, plan_colour}}},
             {"change of time, %",
              100.0,
              {{&Transfer::own_time_pct, own_colour},
               {&Transfer::time_pct, plan_colour, false, plan_time_interval}}}};
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      if (i == 0 || transfers[i].panel != transfers[i - 1].panel) panels_.push_back({i, i, 0.0});
      panels_.back().last = i + 1;
    }
    // Few columns are wide, many still fit beside each other.
    const auto count = static_cast<double>(panels_.size());
    panel_width_ = phone_ ? phone_px - left - right : std::clamp(900.0 / count - gap, 150.0, 420.0);
    for (std::size_t p = 0; p < panels_.size(); ++p)
      panels_[p].x = phone_ ? left : left + static_cast<double>(p) * (panel_width_ + gap);
    width_ = phone_ ? phone_px
                    : std::max(left + count * (panel_width_ + gap) - gap + right, least_width);
    double y = phone_ ? 40.0 : desk_top;
    for (Row& row : rows_) {
      scale(row);
      row.y = y;
      y += row.height + row_gap;
    }
    bottom_ = y - row_gap;
    height_ = bottom_ + (any_named() ? named_axis : batch_axis);
  }

  // On a telephone panels are below each other.
  std::string draw() const {
    const double height =
        phone_ ? phone_legend + height_ * static_cast<double>(panels_.size()) : height_;
    Svg svg(width_, height);
    svg.rect(0, 0, width_, height, R"(class="paper" fill="#fff")");
    if (!phone_) draw_caption(svg);
    draw_legend(svg);
    for (std::size_t p = 0; p < panels_.size(); ++p) {
      const Panel& panel = panels_[p];
      svg.begin_group(0.0, phone_ ? phone_legend + height_ * static_cast<double>(p) : 0.0);
      for (const Row& row : rows_) draw_row_axis(svg, row, panel, phone_ || p == 0);
      svg.text(phone_ ? 4.0 : panel.x, rows_.front().y - 22, transfers_[panel.first].panel,
               bold_text);
      for (const Row& row : rows_) draw_cell(svg, row, panel);
      draw_axis(svg, panel);
      svg.end_group();
    }
    return svg.str();
  }

 private:
  static constexpr double least_width = 880.0, named_axis = 150.0, batch_axis = 50.0;
  static constexpr double desk_top = 130.0, phone_legend = 96.0;

  [[nodiscard]] bool any_named() const {
    return std::ranges::any_of(transfers_, [](const auto& t) { return t.batch == no_value; });
  }

  void scale(Row& row) const {
    for (const DrawnTransfer& drawn : transfers_) {
      for (const Line& line : row.lines) {
        const auto found = line.value(drawn.transfer);
        row.least = std::min(row.least, found.value_or(0.0));
        row.most = std::max(row.most, found.value_or(0.0));
        if (line.interval == nullptr) continue;
        const Interval interval = line.interval(drawn.transfer);
        row.least = std::min(row.least, interval.low_pct);
        row.most = std::max(row.most, interval.high_pct);
      }
    }
    // Changes in the last digits make no picture: the axis spans at least one point (1 %).
    constexpr double shown = 1.0, margin = 0.06;
    row.most = std::max(row.most, row.least + shown);
    const double room = margin * (row.most - row.least);
    row.most += room;
    constexpr double rounding = 1e-6;
    row.least = row.least < -rounding ? row.least - room : 0.0;
  }

  // Batches are drawn on a logarithmic axis that all panels share.
  [[nodiscard]] double x(const Panel& panel, std::size_t i) const {
    constexpr double inset = 14.0;
    const double from = panel.x + inset, length = panel_width_ - 2.0 * inset;
    double place = 0.0, most = 0.0;
    if (transfers_[i].batch == no_value) {
      place = static_cast<double>(i - panel.first);
      most = static_cast<double>(panel.last - panel.first - 1);
    } else {
      double low = transfers_[i].batch, high = low;
      for (const DrawnTransfer& drawn : transfers_) {
        if (drawn.batch == no_value) continue;
        low = std::min(low, drawn.batch);
        high = std::max(high, drawn.batch);
      }
      place = std::log(transfers_[i].batch / low);
      most = std::log(high / low);
    }
    return from + length * (most > 0.0 ? place / most : 0.5);
  }

  void draw_caption(Svg& svg) const {
    svg.text(
        left, 22,
        fmt::format("{}, found on {}, applied to other traces", caption_.plan, caption_.found_on),
        R"(class="ink" fill="#222" font-weight="600" font-size="14")");
    svg.text(left, 42,
             fmt::format("{}, {:g} W, clocks '{}'. Baseline: the default clocks of each trace.",
                         caption_.gpu, caption_.power_limit_w, caption_.clocks),
             muted_text);
  }

  void draw_legend(Svg& svg) const {
    const double from = phone_ ? 4.0 : left;
    double y = phone_ ? 16.0 : 62.0, at = from;
    const auto line = [&](const char* colour, const char* name, double width, bool dashed) {
      svg.line(at, y - 4, at + 24, y - 4,
               fmt::format(R"(class="{}" stroke="{}" stroke-width="1.8"{})", style_of(colour),
                           colour, dashed ? dashes : ""));
      if (!dashed)
        svg.circle(at + 12, y - 4, 3.5,
                   fmt::format(R"(class="{}" fill="{}")", style_of(colour), colour));
      svg.text(at + 30, y, name, muted_text);
      at += phone_ ? 0.0 : width;
      y += phone_ ? legend_line : 0.0;
    };
    line(plan_colour, "the transferred plan, 90 % interval", 254, false);
    line(own_colour, "the trace's own best plan", 196, false);
    line(own_colour, "the same in the transferred plan's time", 278, true);
    at = from;
    y += phone_ ? 0.0 : legend_line;
    svg.rect(at, y - 11, 24, 13,
             fmt::format(R"(class="c1" fill="{}" fill-opacity="0.18")", plan_colour));
    svg.text(at + 30, y, "regret", muted_text);
    svg.circle(at + 92, y - 4, 6.5, R"(fill="none" stroke="#888" stroke-width="1.3")");
    svg.text(at + 105, y, "found here", muted_text);
  }

  void draw_row_axis(Svg& svg, const Row& row, const Panel& panel, bool first) const {
    if (first) svg.text(left, row.y - 7, row.title, muted_text);
    constexpr double px_per_tick = 16.0;
    for (const double tick :
         axis_ticks(row.least, row.most, std::max(2, static_cast<int>(row.height / px_per_tick)))) {
      // -0 of the arithmetic is 0 for readers.
      if (first) svg.text(left - 8, row.at(tick) + 4, fmt::format("{:g}", tick + 0.0), right_text);
      svg.line(panel.x, row.at(tick), panel.x + panel_width_, row.at(tick),
               tick == 0.0 ? R"(class="same" stroke="#888")" : R"(class="axis" stroke="#ddd")");
    }
  }

  [[nodiscard]] Points points(const Row& row, const Panel& panel, const Value& value) const {
    Points found;
    for (std::size_t i = panel.first; i < panel.last; ++i) {
      if (const auto v = value(transfers_[i].transfer)) found.emplace_back(x(panel, i), row.at(*v));
    }
    return found;
  }

  void draw_cell(Svg& svg, const Row& row, const Panel& panel) const {
    if (&row == &rows_.front()) draw_band(svg, row, panel);
    const bool bars = row.lines.size() == 1;
    for (const Line& line : row.lines) {
      if (!bars) {
        svg.polyline(points(row, panel, line.value),
                     fmt::format(R"(class="{}" stroke="{}" stroke-width="1.8"{})",
                                 style_of(line.colour), line.colour, line.dashed ? dashes : ""));
      }
      if (line.dashed) continue;
      for (std::size_t i = panel.first; i < panel.last; ++i) draw_mark(svg, row, line, panel, i);
    }
  }

  void draw_mark(Svg& svg, const Row& row, const Line& line, const Panel& panel,
                 std::size_t i) const {
    const auto found = line.value(transfers_[i].transfer);
    if (!found) return;
    const double at = x(panel, i), y = row.at(*found);
    const std::string text = tooltip(transfers_[i].transfer);
    if (row.lines.size() == 1) {
      svg.rect(at - 4.5, std::min(y, row.at(0.0)), 9.0, std::abs(row.at(0.0) - y),
               fmt::format(R"(class="mark {}" fill="{}" fill-opacity="0.7")", style_of(line.colour),
                           line.colour),
               text);
      return;
    }
    svg.circle(at, y, 3.5,
               fmt::format(R"(class="mark {}" fill="{}")", style_of(line.colour), line.colour),
               text);
    if (line.interval != nullptr) {
      const Interval interval = line.interval(transfers_[i].transfer);
      svg.line(at, row.at(interval.low_pct), at, row.at(interval.high_pct),
               fmt::format(R"(class="interval {}" stroke="{}" stroke-width="1.3")",
                           style_of(line.colour), line.colour));
    }
    if (transfers_[i].source)
      svg.circle(at, y, 6.5, R"(fill="none" stroke="#888" stroke-width="1.3")");
  }

  // Between the two savings at equal time: the regret.
  void draw_band(Svg& svg, const Row& row, const Panel& panel) const {
    Points outline, back;
    for (std::size_t i = panel.first; i < panel.last; ++i) {
      const Transfer& t = transfers_[i].transfer;
      const auto upper = t.in_time_saving_pct();
      if (!upper) continue;
      outline.emplace_back(x(panel, i), row.at(*upper));
      back.emplace_back(x(panel, i), row.at(t.saving_pct()));
    }
    outline.insert(outline.end(), back.rbegin(), back.rend());
    if (outline.size() >= 4)
      svg.polygon(outline, fmt::format(R"(class="c1" fill="{}" fill-opacity="0.18")", plan_colour));
  }

  void draw_axis(Svg& svg, const Panel& panel) const {
    const bool named = transfers_[panel.first].batch == no_value;
    for (std::size_t i = panel.first; i < panel.last; ++i) {
      const double at = x(panel, i), y = bottom_ + 16.0;
      if (named) {
        svg.text(
            at, y, transfers_[i].transfer.run,
            fmt::format(
                R"style(class="soft" fill="#555" text-anchor="end" transform="rotate(-35 {:.1f} {:.1f})")style",
                at, y));
      } else {
        svg.text(at, y, fmt::format("{:g}", transfers_[i].batch), centred_text);
      }
    }
    if (!named)
      svg.text(panel.x + panel_width_ / 2, bottom_ + 36, "batch, sequences", centred_text);
  }

  const TransferCaption& caption_;
  std::span<const DrawnTransfer> transfers_;
  bool phone_;
  std::vector<Row> rows_;
  std::vector<Panel> panels_;
  double panel_width_ = 0.0, width_ = 0.0, height_ = 0.0, bottom_ = 0.0;
};

}  // namespace

std::string transfer_svg(const TransferCaption& caption, std::span<const DrawnTransfer> transfers,
                         Screen screen) {
  return Picture(caption, transfers, screen).draw();
}

}  // namespace rubato
