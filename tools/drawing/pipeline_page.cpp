#include "tools/drawing/pipeline_page.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/confidence/confidence.hpp"
#include "explorer/results/answers.hpp"
#include "tools/drawing/page_parts.hpp"
#include "tools/drawing/pipeline.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

namespace {

const PipelineResult* first_plan(const std::vector<PipelineResult>& plans) {
  const auto found =
      std::ranges::find_if(plans, [](const PipelineResult& plan) { return plan.found(); });
  return found == plans.end() ? nullptr : &*found;
}

// Of each stage and plan the clocks of each kind of pass.
std::string clocks_table(const PipelineWork& work, const std::vector<DrawnRun>& runs) {
  std::vector<std::string> head{"stage"};
  for (const DrawnRun& drawn : runs) head.push_back(xml_escaped(drawn.title) + ", MHz");
  std::vector<std::vector<std::string>> rows;
  for (std::uint32_t stage = 0; stage < work.schedule.shape.stages; ++stage) {
    rows.push_back({std::to_string(stage)});
    for (const DrawnRun& drawn : runs) {
      std::string text;
      for (std::size_t kind = 0; kind < std::size(pass_letters); ++kind) {
        double low = std::numeric_limits<double>::infinity(), high = 0.0;
        for (std::size_t i = 0; i < work.schedule.passes.size(); ++i) {
          const PipelinePass& pass = work.schedule.passes[i];
          if (pass.stage != stage || static_cast<std::size_t>(pass.kind) != kind) continue;
          low = std::min(low, drawn.run->passes[i].core_mhz);
          high = std::max(high, drawn.run->passes[i].core_mhz);
        }
        if (high == 0.0) continue;
        text += fmt::format("{}{} {:.0f}", text.empty() ? "" : "; ", pass_letters[kind], low);
        if (high > low) text += fmt::format(" to {:.0f}", high);
      }
      rows.back().push_back(std::move(text));
    }
  }
  return html_table(head, rows);
}

std::string trust_facts(const PipelineRun& base, const PipelineResult* plan,
                        std::string_view notes) {
  std::vector<std::pair<std::string, std::string>> facts;
  if (plan != nullptr) {
    facts.emplace_back("Proof", fmt::format("no plan in that time takes less than {:.5g} J, with "
                                            "free durations between the options: gap {:.3f} %",
                                            plan->lower_bound_j, 100.0 * plan->gap_frac));
    facts.emplace_back(
        "Interval",
        plan->interval
            ? fmt::format(
                  "energy {}, time {}",
                  change_words(change_pct(plan->energy_j, base.energy_j), plan->interval->energy),
                  change_words(change_pct(plan->run.time_s, base.time_s), plan->interval->time))
            : "none: options are taken as they are given, without a spread");
  }
  std::string lines;
  for (const std::string_view line : split(notes, '\n')) {
    if (!line.empty()) lines += fmt::format("{}{}", lines.empty() ? "" : "<br>", page_text(line));
  }
  facts.emplace_back("Numbers", lines);
  return facts_table(facts);
}

}  // namespace

Answer pipeline_answer(const PipelinePlanner& planner, const std::vector<PipelineResult>& plans,
                       std::string_view doubts) {
  const PipelineRun& base = planner.baseline();
  const Answers<PipelineResult> answers = answers_of(planner, plans);
  const PlanAnswer* named = answers.headline();
  const PipelineResult* plan = named == nullptr ? nullptr : answers.plan(*named);
  if (named == nullptr)
    return Answer().say(
        fmt::format("No plan keeps the time. The fastest takes {:.5g} s.", planner.least_time_s()));
  if (plan == nullptr) return Answer().say("No plan saves anything: keep the highest clocks.");
  const auto [low, high] = std::ranges::minmax_element(plan->run.passes, {}, &TimedPass::core_mhz);
  const std::optional<SavingInterval>& interval = plan->interval;
  return Answer()
      .lead(fmt::format("Passes at {:.0f} to {:.0f} MHz: energy {}", low->core_mhz, high->core_mhz,
                        change_words(change_pct(plan->energy_j, base.energy_j),
                                     interval ? std::optional(interval->energy) : std::nullopt)))
      .say(fmt::format(
          ", time {} ({:.5g} s and {:.5g} J an iteration, from {:.5g} s and {:.5g} J){}.",
          change_words(change_pct(plan->run.time_s, base.time_s)), plan->run.time_s, plan->energy_j,
          base.time_s, base.energy_j, doubts));
}

std::string pipeline_page(const PipelinePlanner& planner, const std::vector<PipelineResult>& plans,
                          const PipelineCaption& caption, const OutputTable& table) {
  std::vector<DrawnRun> runs{{caption.baseline, &planner.baseline()}};
  for (const PipelineResult& plan : plans) {
    if (!plan.found()) continue;
    runs.push_back({fmt::format("plan for {:.5g} s", plan.deadline_s), &plan.run});
  }
  const PipelineResult* plan = first_plan(plans);
  std::string body =
      page_section("How sure this is", trust_facts(planner.baseline(), plan, caption.notes));
  body += page_section(
      "Before and after",
      "<p><label><input type=\"checkbox\" data-class=\"by-clock\" data-of=\"gantt\"> coloured by "
      "clock, with MHz</label></p>\n<div id=\"gantt\">\n" +
          two_pictures(gantt_svg(planner.work(), runs),
                       gantt_svg(planner.work(), runs, Screen::phone)) +
          "</div>\n");
  body += page_section("Clocks of the passes", clocks_table(planner.work(), runs));
  body += page_section("Time and energy",
                       fmt::format("<p>Of one pipeline with one GPU per stage.</p>\n<figure>{}"
                                   "</figure>\n",
                                   frontier_svg(planner, plans, caption.baseline)));
  body += page_section("All plans", html_table(table));
  return whole_page({"Clocks of a pipeline", caption.subtitle,
                     pipeline_answer(planner, plans, caption.doubts), ""},
                    body);
}

}  // namespace rubato
