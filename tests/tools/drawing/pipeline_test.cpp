// Gantt charts: what can be read and seen in them, down to passes of two pixels.

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "tools/drawing/pipeline.hpp"
#include "traces/pipeline/step_end.hpp"

namespace rubato {
namespace {

PipelineProfile profile_of(std::uint32_t stages, const std::vector<PassKind>& kinds) {
  PipelineProfile profile{"made", {}};
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    for (const PassKind kind : kinds)
      profile.passes.push_back(
          {stage, kind, {{1400.0, 1.0, 300.0}, {1200.0, 1.1 + 0.1 * stage, 250.0}}});
  }
  return profile;
}

struct Rect {
  double wide = 0.0, outline = 0.0;
  bool critical = false;
};

struct Label {
  double px = 0.0;
  std::string text;
};

// A chart of the highest clocks, read back.
struct Chart {
  explicit Chart(const PipelineWork& work) : run(simulate(work, highest_clocks(work))) {
    svg = gantt_svg(work, {{"first", &run}});
    const std::regex rect(
        R"re(<rect x="[^"]*" y="[^"]*" width="([^"]*)" height="[^"]*" fill="#\w+" stroke="(#\w+)" stroke-width="([^"]*)" class="mark pass[^>]*><title>)re");
    for (std::sregex_iterator i(svg.begin(), svg.end(), rect), end; i != end; ++i)
      passes.push_back({std::stod((*i)[1]), std::stod((*i)[3]), (*i)[2] == "#111"});
    const std::regex text(
        R"re(<text [^>]*font-size="([\d.]*)" text-anchor="middle"[^>]*>([^<]*)</text>)re");
    for (std::sregex_iterator i(svg.begin(), svg.end(), text), end; i != end; ++i)
      labels.push_back({std::stod((*i)[1]), (*i)[2]});
  }

  [[nodiscard]] std::set<std::string> texts() const {
    std::set<std::string> all;
    for (const Label& label : labels) all.insert(label.text);
    return all;
  }

  PipelineRun run;
  std::string svg;
  std::vector<Rect> passes;
  std::vector<Label> labels;
};

PipelineWork work_of(const PipelineShape& shape) {
  return pipeline_work(
      make_schedule(shape),
      profile_of(shape.stages * shape.chunks, {PassKind::forward, PassKind::backward}), 80.0);
}

TEST(Gantt, EveryPassIsDrawnAndNamedWhereThereIsRoom) {
  const Chart chart(work_of({.stages = 4, .microbatches = 6}));
  EXPECT_EQ(chart.passes.size(), 48U);
  EXPECT_EQ(chart.labels.size(), 48U);
  EXPECT_TRUE(chart.texts().contains("F0"));
  EXPECT_TRUE(chart.texts().contains("B5"));
  // Shown where a page colours passes by their clock.
  const std::regex mhz(R"re(class="mhz pass-text[^>]*>1400</text>)re");
  EXPECT_EQ(std::distance(std::sregex_iterator(chart.svg.begin(), chart.svg.end(), mhz),
                          std::sregex_iterator()),
            48);
}

// 48 pixels a pass, then 23, 12 and 4: letters go first, then numbers, and none is too small to
// read.
TEST(Gantt, LabelsShrinkAndGoBeforeTheyCannotBeRead) {
  std::size_t without_letter = 0;
  for (const std::uint32_t microbatches : {8U, 20U, 40U, 128U}) {
    const Chart chart(work_of({.stages = 8, .microbatches = microbatches}));
    EXPECT_EQ(chart.passes.size(), std::size_t{16} * microbatches);
    const double wide = chart.passes.front().wide;
    for (const Label& label : chart.labels) {
      EXPECT_GE(label.px, 5.0);
      EXPECT_LE(0.6 * label.px * static_cast<double>(label.text.size()), wide + 0.1) << label.text;
      if (label.text.front() <= '9') ++without_letter;
    }
    if (microbatches < 128) continue;
    EXPECT_TRUE(
        std::ranges::all_of(chart.labels, [](const Label& l) { return l.text.size() == 1; }));
  }
  EXPECT_GT(without_letter, 0U);
}

// An outline of 1.6 pixels would be all of a pass that is four pixels wide.
TEST(Gantt, OutlinesLeaveTheColourVisible) {
  for (const std::uint32_t microbatches : {4U, 128U, 512U}) {
    const Chart chart(work_of({.stages = 8, .microbatches = microbatches}));
    EXPECT_TRUE(std::ranges::any_of(chart.passes, &Rect::critical));
    for (const Rect& pass : chart.passes) {
      EXPECT_LE(2.0 * pass.outline, 0.31 * pass.wide + 0.02);
      if (microbatches == 4 && pass.critical) {
        EXPECT_EQ(pass.outline, 1.6);
      }
    }
  }
}

TEST(Gantt, ChunksAreToldApart) {
  const Chart chart(
      work_of({.kind = ScheduleKind::interleaved, .stages = 2, .microbatches = 4, .chunks = 3}));
  const std::set<std::string> texts = chart.texts();
  for (const char* label : {"F3", "F3&#39;", "F3&#39;&#39;", "B0&#39;"})
    EXPECT_TRUE(texts.contains(label)) << label;
  EXPECT_NE(chart.svg.find("&#39; next chunk"), std::string::npos);
}

TEST(Gantt, WhatEndsAStepIsNamed) {
  const PipelineWork work = pipeline_work(
      with_step_end(make_schedule({.stages = 2, .microbatches = 2}), true, true),
      profile_of(
          2, {PassKind::forward, PassKind::backward, PassKind::all_reduce, PassKind::optimizer}),
      80.0);
  const Chart chart(work);
  EXPECT_EQ(std::ranges::count(chart.labels, "A", &Label::text), 2);
  EXPECT_EQ(std::ranges::count(chart.labels, "O", &Label::text), 2);
  EXPECT_NE(chart.svg.find("F forward, B backward, A all reduce, O optimizer"), std::string::npos);
}

TEST(Gantt, AllRunsShareOneTimeAxis) {
  const PipelineWork work = work_of({.stages = 2, .microbatches = 2});
  PipelinePlan slow = highest_clocks(work);
  std::ranges::fill(slow.option_of_pass, OptionId{1});
  const PipelineRun fast_run = simulate(work, highest_clocks(work)),
                    slow_run = simulate(work, slow);
  const std::string svg =
      gantt_svg(work, {{"one", &fast_run}, {"two", &slow_run}, {"three", &slow_run}});
  for (const char* caption : {">one: 6 s", ">two: ", ">three: "})
    EXPECT_NE(svg.find(caption), std::string::npos);
  // The highest clocks end where they do on the axis of the slower run.
  const Chart alone(work);
  const std::regex rect(
      R"re(width="([^"]*)" height="[^"]*" fill="#\w+" stroke="#\w+" stroke-width="[^"]*" class="mark pass[^>]*><title>)re");
  std::smatch first;
  ASSERT_TRUE(std::regex_search(svg, first, rect));
  EXPECT_NEAR(std::stod(first[1]) / alone.passes.front().wide, fast_run.time_s / slow_run.time_s,
              1e-3);
}

}  // namespace
}  // namespace rubato
