#include "tools/commands/plans/explore_options.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/suggest.hpp"
#include "common/text.hpp"
#include "tools/options/comm_sms.hpp"
#include "tools/options/gpu.hpp"
#include "tools/options/prices.hpp"

namespace rubato {

namespace {

// Why a kind of run cannot use an option. What questions it has no plans for: plan/refusals.hpp.
struct Refusal {
  const char* option;
  std::string_view kinds;  ///< with spaces
  std::string_view because;
};
constexpr std::string_view captured_order = "the order of passes was captured",
                           one_rank =
                               "it is one rank: nobody waits for it, and jitter averages out",
                           nothing_captured = "nothing was captured in WORK",
                           one_step = "WORK is one step",
                           no_sms = "no collective runs beside compute: there are no SMs to share",
                           holds_limit = "measured times hold the limit that they were measured at";
constexpr std::array refusals{
    Refusal{"--microbatches", "trace table",
            "a trace of one GPU has no stages; --stages makes some"},
    Refusal{"--stages", "capture", captured_order},
    Refusal{"--microbatches", "capture", captured_order},
    Refusal{"--schedule", "trace table", "a trace of one GPU has no stages; --stages makes some"},
    Refusal{"--schedule", "capture", captured_order},
    Refusal{"--blocked-power", "trace table", "nobody waits in a trace of one GPU"},
    Refusal{"--blocked-power", "capture", "a waiting GPU draws what its spec says"},
    Refusal{"--disturb", "trace table", one_rank},
    Refusal{"--comm-sms", "trace table stages", no_sms},
    Refusal{"--step", "trace table stages", one_step},
    Refusal{"--phase", "trace table stages", one_step},
    Refusal{"--step-time", "trace table stages", "no time of a host is in WORK"},
    Refusal{"--partial", "stages", "a file of stages is read whole or not at all"},
    Refusal{"--captured-clock", "table stages", nothing_captured},
    Refusal{"--power", "table stages", nothing_captured},
    Refusal{"--also", "trace table stages",
            "a capture has the times of each kernel: explore the capture itself"},
    Refusal{"--cluster", "capture stages table",
            "the times of its own network are in it; 'rubato trace scale' predicts another"},
    Refusal{"--aggregation", "stages",
            "what a pass may take follows from the passes that wait for it"},
    Refusal{"--table", "stages",
            "its rows are times of passes, a table's are of kernels; 'rubato calibrate' fits a GPU "
            "model to a table"},
    Refusal{"--clocks", "table", "its clocks are those that were measured"},
    Refusal{"--power-limit", "table", holds_limit},
    Refusal{"--power-limits", "table", "its limits are those that were measured"},
    Refusal{
        "--gap", "capture stages",
        "plans and their bound come from one sweep of all deadlines, which has no gap before it "
        "ends; --time-limit ends it early"},
};

// What --list can name, by kind.
std::vector<std::string> tables_of(std::string_view kind) {
  std::vector<std::string> tables{"plans", "notes", "passes", "kernels", "segments"};
  if (kind == "capture") tables.insert(tables.end(), {"collectives", "comm_sms"});
  if (kind == "trace" || kind == "table") tables.emplace_back("slacks");
  return tables;
}

// The headings of --help, and what stands below the options.
void group_options(CommandLine& app) {
  app.group("Question", {"--slack", "--odds", "--per", "--goal", "--budget", "--prices"});
  app.group("What is known",
            {"--also", "--power", "--captured-clock", "--step", "--phase", "--step-time", "--gpu",
             "--table", "--clocks", "--power-limit", "--power-limits", "--cluster"});
  app.group("Pipelines and several GPUs",
            {"--stages", "--microbatches", "--schedule", "--blocked-power", "--disturb"});
  app.group("Switching clocks", {"--switching"});
  app.group(output_group, {"--db", "--plan-file", "--timeline", "--list"});
  app.rare({"--aggregation", "--comm-sms", "--host-power", "--json-lines", "--partial"});
  app.footer(
      "Changes are relative to the default clocks of the same GPU, work and power limit. The "
      "answer "
      "is the plan with the least energy that can be set and has the odds asked for.");
}

}  // namespace

void add_explore_options(CommandLine& app, ExploreOptions& o) {
  app.add_option("WORK", o.work,
                 "A profile (PyTorch, Nsight, Chakra) or one per rank, in quotes too: "
                 "'rank*.json.gz'; a model or trace: gpt3-xl; a pipeline: measured passes (CSV) or "
                 "a file of 'rubato pipeline describe'")
      ->capture_default_str()
      ->reads_file();
  add_question_options(app, o.questions);
  app.add_option(
      "--also FILE@CORE", o.also,
      "A second capture of the same steps at another locked clock; FILE@CORE,power=LOG: with "
      "a power log, beside that of --power");
  add_captured_clock_options(app, o.captured);
  add_step_options(app, o.step);
  app.add_option("--step-time S", o.step_time_s,
                 "Time of a step without the profiler, which slows down the host [as captured]")
      ->positive();
  app.add_option("--gpu NAME", o.gpu,
                 "GPU model [the captured GPU, else rtx-3080-ti]; 'rubato gpus' lists them");
  add_table_option(app, o.table);
  app.add_option("--clocks GRID", o.clocks,
                 "Clocks to choose from: a grid of the GPU model, or 'mem=5001,auto "
                 "core=210:2100:105' [full]");
  app.add_option("--power-limit W", o.power_limit_w, "Power limit of the board, W [its default]");
  add_power_limits_option(app, o.power_limits);
  app.add_option("--cluster NAME", o.cluster,
                 "Network of a generated trace; 'rubato network list' [guessed from the GPU]");
  app.add_option("--stages N", o.stages, "Plan a model as a pipeline of N stages");
  app.add_option("--microbatches N", o.microbatches, "Microbatches per step [8]");
  app.add_option("--schedule NAME", o.schedule,
                 "Pipeline schedule: gpipe, 1f1b, interleaved, early-recompute, zb-h1 [1f1b]");
  app.add_option("--blocked-power W", o.blocked_power_w,
                 "Power of a GPU that waits for another stage, W [a model: idle power]");
  add_disturb_option(app, o.disturb);
  add_switching_option(app, o.switching, "spec; of a profile without --gpu free");
  add_comm_sms_option(app, o.comm_sms);
  add_host_power_option(app, o.host_power_w);
  add_limit_options(app, o.limits);
  app.add_option("--db", o.db, "Store the run in this SQLite database");
  app.add_option("--plan-file FILE", o.plan_file,
                 "Write the answer as a plan for 'rubato apply'; of stages also a folder for Zeus");
  app.add_option(
         "--timeline", o.timeline,
         "Write one step under each plan: .json for ui.perfetto.dev; of stages also .svg or "
         ".html")
      ->ends_in({".json", ".svg", ".html"});
  app.add_option(
         "--list NAME,...", o.lists,
         "Also print tables: plans, notes, passes, kernels, segments; of a trace slacks; of "
         "captures collectives, comm_sms")
      ->delimiter(',')
      ->one_word();
  add_format_options(app, o.format);
  group_options(app);
}

void refuse_options(const CommandLine& line, std::string_view kind) {
  for (const Refusal& one : refusals) {
    const std::vector<std::string_view> kinds = split(one.kinds, ' ');
    if (std::ranges::find(kinds, kind) == kinds.end()) continue;
    refuse(line, {one.option},
           fmt::format("does nothing for a {}: {}", kind == "stages" ? "pipeline" : kind,
                       one.because));
  }
}

void check_lists(const std::vector<std::string>& lists, std::string_view kind) {
  const std::vector<std::string> known = tables_of(kind);
  for (const std::string& name : lists) {
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(
          fmt::format("--list '{}' is not known of a {}{}", printable(name),
                      kind == "stages" ? "pipeline" : kind, did_you_mean(name, known)),
          {.in = {}, .hint = name == "slacks" ? "--slack 0,0.5,1,2,5 plans for each of them" : ""});
  }
}

}  // namespace rubato
