#include "tools/drawing/pipeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

constexpr double width = 1240.0, left = 70.0, right = 20.0;
constexpr double plot_width = width - left - right;
constexpr const char* muted = R"(fill="#555")";
constexpr const char* centred = R"(fill="#555" text-anchor="middle")";
constexpr const char* grid_line = R"(stroke="#ddd")";

// Of passes, in the order of PassKind.
constexpr std::array pass_letters{'F', 'B', 'R', 'I', 'W', 'A', 'O'};
static_assert(pass_letters.size() == static_cast<std::size_t>(PassKind::optimizer) + 1);

struct Rgb {
  double r, g, b;
};

// Light yellow to dark red: more power is darker, in print too. Five steps of ColorBrewer's YlOrRd
// (Harrower and Brewer, The Cartographic Journal 40(1), 2003).
constexpr std::array power_colours{Rgb{255, 255, 178}, Rgb{254, 204, 92}, Rgb{253, 141, 60},
                                   Rgb{240, 59, 32}, Rgb{189, 0, 38}};

std::string power_colour(double share) {
  const double at = std::clamp(share, 0.0, 1.0) * (power_colours.size() - 1);
  const std::size_t i = std::min(static_cast<std::size_t>(at), power_colours.size() - 2);
  const double t = at - static_cast<double>(i);
  const auto mix = [&](double a, double b) {
    return static_cast<int>(std::lround(a + t * (b - a)));
  };
  const Rgb &a = power_colours[i], &b = power_colours[i + 1];
  return fmt::format("#{:02x}{:02x}{:02x}", mix(a.r, b.r), mix(a.g, b.g), mix(a.b, b.b));
}

struct PowerScale {
  double least_w, most_w;

  [[nodiscard]] double share(double power_w) const {
    return most_w > least_w ? (power_w - least_w) / (most_w - least_w) : 0.5;
  }
};

PowerScale power_scale(const std::vector<DrawnRun>& runs) {
  PowerScale scale{runs.front().run->passes.front().power_w(), 0.0};
  for (const DrawnRun& drawn : runs) {
    for (const TimedPass& pass : drawn.run->passes) {
      scale.least_w = std::min(scale.least_w, pass.power_w());
      scale.most_w = std::max(scale.most_w, pass.power_w());
    }
  }
  return scale;
}

constexpr double legend_height = 44.0, caption_height = 24.0, axis_height = 34.0;

class Gantt {
 public:
  Gantt(const PipelineWork& work, const std::vector<DrawnRun>& runs)
      : work_(work),
        runs_(runs),
        scale_(power_scale(runs)),
        row_height_(work.schedule.shape.stages <= 16 ? 24.0 : 14.0),
        svg_(width, legend_height + static_cast<double>(runs.size()) * run_height() + axis_height) {
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
  [[nodiscard]] double run_height() const {
    return caption_height + row_height_ * work_.schedule.shape.stages + 14.0;
  }
  [[nodiscard]] double x(double time_s) const { return left + plot_width * time_s / longest_s_; }

  void legend() {
    constexpr int steps = 40;
    constexpr double bar = 200.0;
    for (int i = 0; i < steps; ++i) {
      svg_.rect(left + bar * i / steps, 8, bar / steps + 0.5, 12,
                fmt::format(R"(fill="{}")", power_colour((i + 0.5) / steps)));
    }
    svg_.text(left, 34, fmt::format("{:.0f} W", scale_.least_w), muted);
    svg_.text(left + bar, 34, fmt::format("{:.0f} W", scale_.most_w),
              R"(fill="#555" text-anchor="end")");
    svg_.rect(left + bar + 40, 8, 26, 12, R"(fill="#eee" stroke="#111" stroke-width="1.6")");
    svg_.text(left + bar + 74, 18, "critical path: a later end delays the iteration", muted);
    svg_.rect(left + bar + 370, 8, 26, 12, R"(fill="#f1f1f1")");
    svg_.text(left + bar + 560, 18, passes_text(), muted);
    svg_.text(left + bar + 404, 18, fmt::format("waiting, {:.4g} W", work_.blocked_power_w), muted);
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
    svg_.text(left, top + 15,
              fmt::format("{}: {:.4g} s, {:.5g} J, {:.4g} W", drawn.title, run.time_s, run.energy_j,
                          run.average_power_w()),
              R"(font-size="13" font-weight="600" fill="#111")");
    top += caption_height;
    for (std::uint32_t stage = 0; stage < work_.schedule.shape.stages; ++stage) {
      const double y = top + row_height_ * stage;
      svg_.rect(left, y + 1, x(run.time_s) - left, row_height_ - 2, R"(fill="#f1f1f1")");
      svg_.text(left - 8, y + row_height_ - 7, fmt::format("stage {}", stage),
                R"(fill="#555" text-anchor="end")");
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
    const double wide = x(timed.end_s) - at, share = scale_.share(timed.power_w());
    const bool backward = pass.kind != PassKind::forward;
    svg_.rect(
        at, y, wide, row_height_ - 2,
        fmt::format(R"(fill="{}" stroke="{}" stroke-width="{}")", power_colour(share),
                    timed.critical ? "#111" : "#fff",
                    std::min(timed.critical ? 1.6 : 0.5, wide * (timed.critical ? 0.15 : 0.05))),
        fmt::format("{}: {:.4g} MHz, {:.4g} W, {:.4g} J, {:.4g} s to {:.4g} s", describe(pass),
                    timed.core_mhz, timed.power_w(), timed.energy_j, timed.start_s, timed.end_s));
    const std::string label = label_of(pass, wide);
    if (label.empty()) return;
    svg_.text(
        at + wide / 2, y + row_height_ / 2 + 3, label,
        fmt::format(R"(font-size="{:.1f}" text-anchor="middle" pointer-events="none" fill="{}"{})",
                    font_px(label, wide), share > 0.7 ? "#fff" : "#111",
                    backward ? R"( font-weight="600")" : ""));
  }

  // A digit is about 0.6 of the font's size wide.
  [[nodiscard]] double font_px(const std::string& label, double wide) const {
    const double most = row_height_ < 20.0 ? 8.0 : 10.0;
    return std::min(most, wide / (0.65 * static_cast<double>(label.size())));
  }

  // "F3", of the second chunk "F3'": the most that can be read, down to nothing. A stage ends its
  // step once, so that what does so has no number.
  [[nodiscard]] std::string label_of(const PipelinePass& pass, double wide) const {
    constexpr double least_px = 5.0;
    const std::string letter(1, pass_letters[static_cast<std::size_t>(pass.kind)]);
    std::string number = fmt::format("{}{}", pass.microbatch, std::string(pass.chunk, '\''));
    if (ends_step(pass.kind)) number.clear();
    for (const std::string& label : {letter + number, number}) {
      if (!label.empty() && font_px(label, wide) >= least_px) return label;
    }
    return "";
  }

  void axis(double top) {
    svg_.line(left, top, left + plot_width, top, R"(stroke="#999")");
    for (const double tick : axis_ticks(0.0, longest_s_, 10)) {
      svg_.line(x(tick), top, x(tick), top + 4, R"(stroke="#999")");
      svg_.text(x(tick), top + 18, fmt::format("{:.4g} s", tick), centred);
    }
  }

  const PipelineWork& work_;
  const std::vector<DrawnRun>& runs_;
  PowerScale scale_;
  double row_height_;
  double longest_s_ = 0.0;
  Svg svg_;
};

struct Axis {
  double least, most, from, to;

  [[nodiscard]] double at(double value) const {
    return from + (to - from) * (value - least) / (most - least);
  }
  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  void widen() {
    const double margin = most > least ? 0.05 * (most - least) : 0.05 * std::abs(most) + 1e-9;
    least -= margin;
    most += margin;
  }
};

void draw_axes(Svg& svg, const Axis& time, const Axis& energy) {
  for (const double tick : axis_ticks(time.least, time.most, 8)) {
    svg.line(time.at(tick), energy.to, time.at(tick), energy.from, grid_line);
    svg.text(time.at(tick), energy.from + 18, fmt::format("{:.5g}", tick), centred);
  }
  for (const double tick : axis_ticks(energy.least, energy.most, 6)) {
    svg.line(time.from, energy.at(tick), time.to, energy.at(tick), grid_line);
    svg.text(time.from - 8, energy.at(tick) + 4, fmt::format("{:.6g}", tick),
             R"(fill="#555" text-anchor="end")");
  }
  svg.text((time.from + time.to) / 2, energy.from + 38, "time of an iteration, s", centred);
  svg.text(time.from, energy.to - 8, "energy of an iteration, J, one GPU per stage", muted);
}

}  // namespace

std::string gantt_svg(const PipelineWork& work, const std::vector<DrawnRun>& runs) {
  return Gantt(work, runs).draw();
}

std::string frontier_svg(const PipelinePlanner& planner, const std::vector<PipelineResult>& plans,
                         const std::string& baseline) {
  const auto& vertices = planner.frontier().vertices;
  const auto total_j = [&](const FrontierVertex& v) {
    return v.cost_j + planner.waiting_power_w() * v.time_s;
  };
  const PipelineRun& base = planner.baseline();
  Axis time{base.time_s, base.time_s, 80.0, 780.0};
  Axis energy{base.energy_j, base.energy_j, 360.0, 30.0};
  for (const FrontierVertex& v : vertices) {
    time.include(v.time_s);
    energy.include(total_j(v));
  }
  for (const PipelineResult& plan : plans) {
    if (plan.plan.option_of_pass.empty()) continue;
    time.include(plan.run.time_s);
    energy.include(plan.run.energy_j);
  }
  time.widen();
  energy.widen();
  Svg svg(1000, 410);
  draw_axes(svg, time, energy);
  std::vector<std::pair<double, double>> line;
  for (const FrontierVertex& v : vertices)
    line.emplace_back(time.at(v.time_s), energy.at(total_j(v)));
  svg.polyline(line, R"(stroke="#2166ac" stroke-width="1.8")");
  for (const PipelineResult& plan : plans) {
    if (plan.plan.option_of_pass.empty()) continue;
    svg.circle(time.at(plan.run.time_s), energy.at(plan.run.energy_j), 4, R"(fill="#b2182b")",
               fmt::format("{:.6g} s, {:.6g} J", plan.run.time_s, plan.run.energy_j));
  }
  svg.rect(time.at(base.time_s) - 4.5, energy.at(base.energy_j) - 4.5, 9, 9, R"(fill="#111")",
           fmt::format("{}: {:.6g} s, {:.6g} J", baseline, base.time_s, base.energy_j));
  svg.rect(806, 40, 9, 9, R"(fill="#111")");
  svg.text(822, 49, baseline, muted);
  svg.circle(810.5, 66, 4, R"(fill="#b2182b")");
  svg.text(822, 70, "plans of measured clocks", muted);
  svg.line(800, 87, 818, 87, R"(stroke="#2166ac" stroke-width="1.8")");
  svg.text(822, 91, "frontier, free durations", muted);
  return svg.str();
}

std::string pipeline_page(const PipelinePlanner& planner, const std::vector<PipelineResult>& plans,
                          const std::string& baseline, const std::string& title,
                          const std::string& table) {
  std::vector<DrawnRun> runs{{baseline, &planner.baseline()}};
  for (const PipelineResult& plan : plans) {
    if (plan.plan.option_of_pass.empty()) continue;
    runs.push_back({fmt::format("plan for {:.5g} s", plan.deadline_s), &plan.run});
  }
  return fmt::format(
      R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{0}</title>
<style>body{{font:14px system-ui,sans-serif;max-width:1260px;margin:2em auto;padding:0 1em;color:#111}}
pre{{background:#f6f6f6;padding:1em;overflow-x:auto}}svg{{max-width:100%;height:auto}}h2{{margin-top:1.6em}}</style>
</head><body><h1>{0}</h1>
<p>Energies are of one pipeline with one GPU per stage. Change is against the {4}.</p>
<pre>{1}</pre>
<h2>Before and after</h2>
{2}
<h2>Time and energy</h2>
{3}
</body></html>
)",
      xml_escaped(title), xml_escaped(table), gantt_svg(planner.work(), runs),
      frontier_svg(planner, plans, baseline), xml_escaped(baseline));
}

}  // namespace rubato
