#include "tools/drawing/pipeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

constexpr double desk_px = 1240.0, right = 20.0;

struct Rgb {
  double r, g, b;
};

// Light yellow to dark red: more power is darker, in print too. Five steps of ColorBrewer's YlOrRd
// (Harrower and Brewer, The Cartographic Journal 40(1), 2003).
constexpr std::array power_colours{Rgb{255, 255, 178}, Rgb{254, 204, 92}, Rgb{253, 141, 60},
                                   Rgb{240, 59, 32}, Rgb{189, 0, 38}};

// Light to dark blue: a higher clock is darker. Five steps of ColorBrewer's Blues.
constexpr std::array clock_colours{Rgb{239, 243, 255}, Rgb{189, 215, 231}, Rgb{107, 174, 214},
                                   Rgb{49, 130, 189}, Rgb{8, 81, 156}};
constexpr double dark_share = 0.7;  // from here on letters are white

std::string colour_at(const std::array<Rgb, 5>& colours, double share) {
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(colours.size() - 1);
  const std::size_t i = std::min(static_cast<std::size_t>(at), colours.size() - 2);
  const double t = at - static_cast<double>(i);
  const auto mix = [&](double a, double b) {
    return static_cast<int>(std::lround(a + t * (b - a)));
  };
  const Rgb &a = colours[i], &b = colours[i + 1];
  return fmt::format("#{:02x}{:02x}{:02x}", mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b));
}

struct Scale {
  double least, most;

  [[nodiscard]] double share(double value) const {
    return most > least ? (value - least) / (most - least) : 0.5;
  }
};

template <class Value>
Scale scale_of(const std::vector<DrawnRun>& runs, Value&& value) {
  Scale scale{value(runs.front().run->passes.front()), 0.0};
  for (const DrawnRun& drawn : runs) {
    for (const TimedPass& pass : drawn.run->passes) {
      scale.least = std::min(scale.least, value(pass));
      scale.most = std::max(scale.most, value(pass));
    }
  }
  return scale;
}

constexpr double caption_height = 24.0, axis_height = 34.0;

class Gantt {
 public:
  Gantt(const PipelineWork& work, const std::vector<DrawnRun>& runs)
      : work_(work),
        runs_(runs),
        left_(70.0),
        plot_width_(desk_px - right - left_),
        power_(scale_of(runs, [](const TimedPass& pass) { return pass.power_w(); })),
        clock_(scale_of(runs, [](const TimedPass& pass) { return pass.core_mhz; })),
        row_height_(work.schedule.shape.stages > 16 ? 14.0 : 24.0),
        svg_(desk_px,
             legend_height + static_cast<double>(runs.size()) * run_height() + axis_height) {
    for (const DrawnRun& drawn : runs) longest_s_ = std::max(longest_s_, drawn.run->time_s);
  }

  std::string draw() {
    legend();
    double top = legend_height;
    for (const DrawnRun& drawn : runs_) {
      draw_run(drawn, top);
      top += run_height();
    }
    axis(top);
    return svg_.str();
  }

 private:
  // Smaller letters cannot be read.
  static constexpr double least_px = 5.0, legend_height = 44.0;

  [[nodiscard]] double run_height() const {
    return caption_height + row_height_ * work_.schedule.shape.stages + 14.0;
  }
  [[nodiscard]] double x(double time_s) const { return left_ + plot_width_ * time_s / longest_s_; }

  void legend() {
    constexpr int steps = 40;
    constexpr double bar = 200.0;
    const double from = left_;
    const auto range = [&](const std::array<Rgb, 5>& colours, const Scale& scale,
                           std::string_view unit, std::string_view style) {
      for (int i = 0; i < steps; ++i) {
        svg_.rect(from + bar * i / steps, 8, bar / steps + 0.5, 12,
                  fmt::format(R"({} fill="{}")", style, colour_at(colours, (i + 0.5) / steps)));
      }
      svg_.text(from, 34, fmt::format("{:.0f} {}", scale.least, unit),
                fmt::format(R"({} fill="#555")", style));
      svg_.text(from + bar, 34, fmt::format("{:.0f} {}", scale.most, unit),
                fmt::format(R"({} fill="#555" text-anchor="end")", style));
    };
    range(power_colours, power_, "W", R"(class="watts")");
    range(clock_colours, clock_, "MHz", R"(class="mhz" display="none")");
    const double x = left_ + bar + 40.0, y = 8.0;
    svg_.rect(x, y, 26, 12, R"(class="wait dark" fill="#eee" stroke="#111" stroke-width="1.6")");
    svg_.text(x + 34, y + 10, "critical path: a later end delays the iteration", muted_text);
    const double wait_x = x + 330.0;
    svg_.rect(wait_x, y, 26, 12, R"(class="wait" fill="#f1f1f1")");
    svg_.text(wait_x + 34, y + 10, fmt::format("waiting, {:.4g} W", work_.blocked_power_w),
              muted_text);
    svg_.text(x + 520, 18, passes_text(), muted_text);
  }

  // The kinds that there are, in the order of PassKind.
  [[nodiscard]] std::string passes_text() const {
    std::array<bool, std::size(pass_letters)> used{};
    for (const PipelinePass& pass : work_.schedule.passes)
      used[static_cast<std::size_t>(pass.kind)] = true;
    std::string text;
    for (std::size_t kind = 0; kind < used.size(); ++kind) {
      if (!used[kind]) continue;
      std::string name(name_of(static_cast<PassKind>(kind)));
      std::ranges::replace(name, '_', ' ');
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", pass_letters[kind], name);
    }
    return text + (work_.schedule.shape.chunks > 1 ? ", ' next chunk" : "");
  }

  void draw_run(const DrawnRun& drawn, double top) {
    const PipelineRun& run = *drawn.run;
    svg_.text(left_, top + 15,
              fmt::format("{}: {:.4g} s, {:.5g} J, {:.4g} W", drawn.title, run.time_s, run.energy_j,
                          run.average_power_w()),
              fmt::format(R"(class="ink" font-size="{}" font-weight="600" fill="#111")", 13));
    top += caption_height;
    for (std::uint32_t stage = 0; stage < work_.schedule.shape.stages; ++stage) {
      const double y = top + row_height_ * stage;
      svg_.rect(left_, y + 1, x(run.time_s) - left_, row_height_ - 2,
                R"(class="wait" fill="#f1f1f1")");
      svg_.text(left_ - 6, y + row_height_ - 6, fmt::format("stage {}", stage), right_text);
    }
    // Outlines last, so that no neighbour covers them.
    for (const bool critical : {false, true}) {
      for (std::size_t i = 0; i < run.passes.size(); ++i) {
        if (run.passes[i].critical == critical) draw_pass(i, run.passes[i], top);
      }
    }
  }

  void draw_pass(std::size_t i, const TimedPass& timed, double top) {
    const PipelinePass& pass = work_.schedule.passes[i];
    const double y = top + row_height_ * pass.stage + 1, at = x(timed.start_s);
    const double wide = x(timed.end_s) - at;
    const double share = power_.share(timed.power_w()), clock = clock_.share(timed.core_mhz);
    const bool backward = pass.kind != PassKind::forward;
    svg_.rect(
        at, y, wide, row_height_ - 2,
        fmt::format(
            R"(fill="{}" stroke="{}" stroke-width="{}" class="mark pass {}" style="--clock:{}")",
            colour_at(power_colours, share), timed.critical ? "#111" : "#fff",
            std::min(timed.critical ? 1.6 : 0.5, wide * (timed.critical ? 0.15 : 0.05)),
            timed.critical ? "dark" : "", colour_at(clock_colours, clock)),
        fmt::format("{}: {:.4g} MHz, {:.4g} W, {:.4g} J, {:.4g} s to {:.4g} s", describe(pass),
                    timed.core_mhz, timed.power_w(), timed.energy_j, timed.start_s, timed.end_s));
    const double middle = at + wide / 2, text_y = y + row_height_ / 2 + 3;
    const std::string label = label_of(pass, wide);
    if (!label.empty()) {
      svg_.text(
          middle, text_y, label,
          fmt::format(
              R"(font-size="{:.1f}" text-anchor="middle" pointer-events="none" fill="{}"{} class="watts pass-text{}")",
              font_px(label, wide), share > dark_share ? "#fff" : "#111",
              backward ? R"( font-weight="600")" : "", share > dark_share ? " light" : ""));
    }
    const std::string mhz = fmt::format("{:.0f}", timed.core_mhz);
    if (font_px(mhz, wide) >= least_px) {
      svg_.text(
          middle, text_y, mhz,
          fmt::format(
              R"(display="none" text-anchor="middle" pointer-events="none" class="mhz pass-text{}" font-size="{:.1f}")",
              clock > dark_share ? " deep" : "", font_px(mhz, wide)));
    }
  }

  // A digit is about 0.6 of the font's size wide.
  [[nodiscard]] double font_px(const std::string& label, double wide) const {
    const double most = row_height_ < 20.0 ? 8.0 : 10.0;
    constexpr double beside = 1.0;  // so that two passes' letters do not touch
    return std::min(most, (wide - beside) / (0.65 * static_cast<double>(label.size())));
  }

  // "F3", of the second chunk "F3'": the most that can be read, down to nothing. A stage ends its
  // step once, so that what does so has no number.
  [[nodiscard]] std::string label_of(const PipelinePass& pass, double wide) const {
    const std::string letter(1, pass_letters[static_cast<std::size_t>(pass.kind)]);
    std::string number = fmt::format("{}{}", pass.microbatch, std::string(pass.chunk, '\''));
    if (ends_step(pass.kind)) number.clear();
    for (const std::string& label : {letter + number, number}) {
      if (!label.empty() && font_px(label, wide) >= least_px) return label;
    }
    return "";
  }

  void axis(double top) {
    svg_.line(left_, top, left_ + plot_width_, top, R"(class="same" stroke="#999")");
    for (const double tick : axis_ticks(0.0, longest_s_, 10)) {
      svg_.line(x(tick), top, x(tick), top + 4, R"(class="same" stroke="#999")");
      svg_.text(std::clamp(x(tick), 16.0, left_ + plot_width_ - 18.0), top + 18,
                fmt::format("{:.4g} s", tick), centred_text);
    }
  }

  const PipelineWork& work_;
  const std::vector<DrawnRun>& runs_;
  double left_, plot_width_;
  Scale power_, clock_;
  double row_height_;
  double longest_s_ = 0.0;
  Svg svg_;
};

}  // namespace

std::string gantt_svg(const PipelineWork& work, const std::vector<DrawnRun>& runs) {
  return Gantt(work, runs).draw();
}

}  // namespace rubato
