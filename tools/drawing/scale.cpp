#include "tools/drawing/scale.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

// Okabe and Ito's palette for colour-blind readers (2008).
struct Share {
  const char* title;
  const char* style;  ///< class of the page's colours, and one for a picture alone
  double width;       ///< of its entry in the legend, px
};
constexpr std::array shares{
    Share{"kernels alone", R"(class="c0" fill="#0072b2")", 116.0},
    Share{"kernels, communication beside them (hidden)", R"(class="c5" fill="#56b4e9")", 322.0},
    Share{"communication alone (exposed)", R"(class="c1" fill="#d55e00")", 228.0},
    Share{"neither (bubble)", R"(class="bubble" fill="#c8c8c8")", 110.0}};
struct SavingColour {
  const char *name, *colour;
};
constexpr std::array saving_colours{SavingColour{"c2", "#009e73"}, SavingColour{"c4", "#e69f00"},
                                    SavingColour{"c3", "#cc79a7"}, SavingColour{"c0", "#0072b2"},
                                    SavingColour{"c1", "#d55e00"}};

constexpr double left_px = 60.0, gap_px = 14.0, right_px = 14.0;
constexpr double shares_px = 92.0, savings_px = 84.0, between_px = 22.0, below_px = 58.0;

std::array<double, shares.size()> parts_of(const StepShares& s) {
  return {s.compute - s.hidden, s.hidden, s.exposed, s.bubble};
}

std::string tooltip_of(const ScaleCaption& caption, const DrawnStep& step) {
  std::string text = fmt::format("TP {}, PP {}, DP {}: {} GPUs, {} ms", step.tensor, step.stages,
                                 step.replicas, step.gpus, format_fixed(ms_per_s * step.step_s, 1));
  if (step.shares) {
    const StepShares& s = *step.shares;
    text += fmt::format("; compute {} %, hidden {} %, exposed {} %, bubble {} %",
                        format_fixed(percent * s.compute, 1), format_fixed(percent * s.hidden, 1),
                        format_fixed(percent * s.exposed, 1), format_fixed(percent * s.bubble, 1));
  }
  for (std::size_t i = 0; i < step.energy_changes_pct.size(); ++i)
    text += fmt::format("; {} % energy at slack {} %", format_signed(step.energy_changes_pct[i], 1),
                        format_number(caption.slacks_pct[i]));
  return text;
}

class ScalePicture {
 public:
  ScalePicture(const ScaleCaption& caption, std::span<const DrawnStep> steps, Screen screen)
      : caption_(caption), steps_(steps), phone_(screen == Screen::phone) {
    for (const DrawnStep& step : steps) {
      tensors_.insert(step.tensor);
      stages_.insert(step.stages);
      replicas_.insert(step.replicas);
      with_shares_ |= step.shares.has_value();
      for (const double change : step.energy_changes_pct) most_pct_ = std::max(most_pct_, -change);
    }
    constexpr double room = 1.06;
    most_pct_ *= room;
    const auto columns = static_cast<double>(stages_.size());
    if (phone_) {
      panel_px_ = (phone_px - left_px - right_px + gap_px) / columns - gap_px;
      width_ = phone_px;
      top_px_ = 114.0;
    } else {
      panel_px_ = std::clamp(900.0 / columns - gap_px, 118.0, 300.0);
      width_ =
          std::max(left_px + columns * (panel_px_ + gap_px) - gap_px + right_px, least_width_px);
      width_ = std::max(width_, left_px + letter_px * static_cast<double>(heading().size()));
    }
    block_px_ = (with_shares_ ? shares_px + between_px : 0.0) +
                (caption.slacks_pct.empty() ? 0.0 : savings_px) + below_px;
  }

  [[nodiscard]] std::string draw() const {
    const double height = top_px_ + block_px_ * static_cast<double>(tensors_.size());
    Svg svg(width_, height);
    svg.rect(0, 0, width_, height, R"(class="paper" fill="#fff")");
    draw_legend(svg);
    double y = top_px_;
    for (const std::uint64_t tensor : tensors_) {
      draw_block(svg, tensor, y);
      y += block_px_;
    }
    return svg.str();
  }

 private:
  static constexpr double least_width_px = 860.0, letter_px = 7.5;

  [[nodiscard]] std::string heading() const {
    return fmt::format("{} on {}", caption_.model, caption_.cluster);
  }

  void draw_legend(Svg& svg) const {
    if (!phone_) svg.text(left_px, 20, heading(), bold_text);
    const double from = phone_ ? 4.0 : left_px;
    double x = from, y = phone_ ? 8.0 : 38.5;
    if (with_shares_) {
      for (const Share& share : shares) {
        svg.rect(x, y - 5.5, 11, 11, share.style);
        svg.text(x + 16, y + 4.5, share.title, muted_text);
        x += phone_ ? 0.0 : share.width;
        y += phone_ ? 17.0 : 0.0;
      }
    }
    x = from;
    y += phone_ ? 0.0 : 19.5;
    for (std::size_t i = 0; i < caption_.slacks_pct.size(); ++i) {
      svg.line(x, y, x + 22, y, stroke_of(i));
      svg.circle(x + 11, y, 3, fill_of(i, ""));
      svg.text(x + 28, y + 4, fmt::format("slack {} %", format_number(caption_.slacks_pct[i])),
               muted_text);
      x += 96.0;
    }
  }

  void draw_block(Svg& svg, std::uint64_t tensor, double top) const {
    double y = top;
    if (with_shares_) {
      svg.text(left_px, y - 8, fmt::format("TP {}: share of the step", tensor), bold_text);
      for (const double tick : {0.0, 0.5, 1.0})
        svg.text(left_px - 6, y + shares_px * (1.0 - tick) + 4,
                 fmt::format("{} %", format_number(percent * tick)), right_text);
      for (const DrawnStep& step : steps_) {
        if (step.tensor == tensor && step.shares) draw_bar(svg, step, y);
      }
      y += shares_px + between_px;
    }
    if (!caption_.slacks_pct.empty()) {
      svg.text(left_px, y - 6, fmt::format("TP {}: energy saved, %", tensor), bold_text);
      for (const double tick : axis_ticks(0.0, most_pct_, 3)) {
        svg.text(left_px - 6, at_saving(y, tick) + 4, format_number(tick), right_text);
        for (std::size_t column = 0; column < stages_.size(); ++column)
          svg.line(panel_x(column), at_saving(y, tick), panel_x(column) + panel_px_,
                   at_saving(y, tick),
                   tick == 0.0 ? R"(class="same" stroke="#888")" : R"(class="axis" stroke="#ddd")");
      }
      for (std::size_t i = 0; i < caption_.slacks_pct.size(); ++i) draw_savings(svg, tensor, i, y);
      y += savings_px;
    }
    draw_axis(svg, y);
  }

  void draw_axis(Svg& svg, double y) const {
    std::size_t column = 0;
    for (const std::uint64_t stages : stages_) {
      const double x = panel_x(column++);
      std::size_t place = 0;
      // Of many replicas every other number has room, in a narrow panel the last one.
      const std::size_t every = panel_px_ < 60.0       ? replicas_.size()
                                : replicas_.size() > 6 ? (replicas_.size() + 4) / 5
                                                       : 1;
      for (const std::uint64_t replicas : replicas_) {
        const std::size_t left = replicas_.size() - 1 - place;
        if (left == 0 || (place % every == 0 && left >= every))
          svg.text(x + place_x(place), y + 14, fmt::format("{}", replicas), centred_text);
        ++place;
      }
      const std::string label =
          phone_ ? fmt::format("PP {}", stages)
                 : fmt::format("{} {}, replicas", stages, stages == 1 ? "stage" : "stages");
      svg.text(x + panel_px_ / 2, y + 29, label, centred_text);
    }
  }

  void draw_bar(Svg& svg, const DrawnStep& step, double top) const {
    const double wide = 0.8 * panel_px_ / static_cast<double>(replicas_.size());
    const std::string text = tooltip_of(caption_, step);
    double y = top + shares_px;
    const auto parts = parts_of(*step.shares);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const double high = shares_px * std::max(parts[i], 0.0);
      y -= high;
      svg.rect(x_of(step) - wide / 2, y, wide, high, shares[i].style, text);
    }
  }

  void draw_savings(Svg& svg, std::uint64_t tensor, std::size_t slack, double top) const {
    for (const std::uint64_t stages : stages_) {
      std::vector<std::pair<double, double>> line;
      for (const DrawnStep& step : steps_) {
        if (step.tensor != tensor || step.stages != stages) continue;
        line.emplace_back(x_of(step), at_saving(top, -step.energy_changes_pct[slack]));
        svg.circle(line.back().first, line.back().second, 2.4, fill_of(slack, "mark "),
                   tooltip_of(caption_, step));
      }
      if (line.size() > 1) svg.polyline(line, stroke_of(slack));
    }
  }

  [[nodiscard]] static std::string stroke_of(std::size_t slack) {
    const SavingColour& of = saving_colours[slack % saving_colours.size()];
    return fmt::format(R"(class="{}" stroke="{}" stroke-width="1.6")", of.name, of.colour);
  }
  [[nodiscard]] static std::string fill_of(std::size_t slack, std::string_view use) {
    const SavingColour& of = saving_colours[slack % saving_colours.size()];
    return fmt::format(R"(class="{}{}" fill="{}")", use, of.name, of.colour);
  }
  [[nodiscard]] double at_saving(double top, double saved_pct) const {
    return top + savings_px * (1.0 - saved_pct / std::max(most_pct_, 1.0));
  }
  [[nodiscard]] double panel_x(std::size_t column) const {
    return left_px + static_cast<double>(column) * (panel_px_ + gap_px);
  }
  [[nodiscard]] double place_x(std::size_t place) const {
    return panel_px_ * (static_cast<double>(place) + 0.5) / static_cast<double>(replicas_.size());
  }
  [[nodiscard]] double x_of(const DrawnStep& step) const {
    const auto place = [](const std::set<std::uint64_t>& of, std::uint64_t value) {
      return static_cast<std::size_t>(std::distance(of.begin(), of.find(value)));
    };
    return panel_x(place(stages_, step.stages)) + place_x(place(replicas_, step.replicas));
  }

  const ScaleCaption& caption_;
  std::span<const DrawnStep> steps_;
  std::set<std::uint64_t> tensors_, stages_, replicas_;
  bool phone_;
  bool with_shares_ = false;
  double most_pct_ = 0.0;
  double panel_px_ = 0.0, width_ = 0.0, block_px_ = 0.0, top_px_ = 96.0;
};

}  // namespace

Answer scale_answer(const ScaleCaption& caption, std::span<const DrawnStep> steps) {
  Answer answer;
  for (std::size_t i = 0; i < caption.slacks_pct.size() && !steps.empty(); ++i) {
    const auto change = [&](const DrawnStep& step) { return step.energy_changes_pct[i]; };
    const auto [most, least] = std::ranges::minmax_element(steps, {}, change);
    const auto named = [&](const DrawnStep& step) {
      return fmt::format("{} % (TP {}, PP {}, DP {})", format_fixed(-change(step), 1), step.tensor,
                         step.stages, step.replicas);
    };
    if (i > 0) answer.next_line();
    answer.say(fmt::format("With {} % more time allowed, plans save {}{} of the energy.",
                           format_number(caption.slacks_pct[i]), named(*least),
                           steps.size() > 1 ? " to " + named(*most) : ""));
  }
  return answer;
}

std::string scale_svg(const ScaleCaption& caption, std::span<const DrawnStep> steps,
                      Screen screen) {
  return ScalePicture(caption, steps, screen).draw();
}

std::string scale_page(const ScaleCaption& caption, std::span<const DrawnStep> steps,
                       const OutputTable& numbers) {
  return whole_page(
      {"A training step over degrees of parallelism",
       fmt::format("{}; {}", caption.model, caption.cluster), scale_answer(caption, steps), ""},
      page_section("How sure this is", "<p>" + page_text(caption.notes) + "</p>\n") +
          page_section(
              "Shares and savings",
              two_pictures(scale_svg(caption, steps), scale_svg(caption, steps, Screen::phone))) +
          page_section("Numbers", html_table(numbers)));
}

}  // namespace rubato
