#include "tools/commands/plans/explore_options.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "common/suggest.hpp"
#include "common/text.hpp"
#include "tools/options/comm_sms.hpp"
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
    Refusal{"--partial", "stages", "a file of stages is read whole or not at all"},
    Refusal{"--captured-clock", "table stages", nothing_captured},
    Refusal{"--power", "table stages", nothing_captured},
    Refusal{"--also", "trace table stages",
            "a capture has the times of each kernel: explore the capture itself"},
    Refusal{"--cluster", "capture stages table",
            "the times of its own network are in it; 'rubato trace scale' predicts another"},
    Refusal{"--aggregation", "stages",
            "what a pass may take follows from the passes that wait for it"},
    Refusal{"--table", "capture stages",
            "its times are measured already; 'rubato calibrate' fits a spec to a table"},
    Refusal{"--clocks", "table", "its clocks are those that were measured"},
    Refusal{"--power-limit", "table", holds_limit},
    Refusal{"--gap", "capture stages",
            "its searches end by themselves; --time-limit ends them early"},
};

// What --list can name, by kind.
std::vector<std::string> tables_of(std::string_view kind) {
  if (kind == "capture") return {"plans", "notes", "kernels", "collectives", "comm_sms"};
  if (kind == "stages") return {"plans", "notes", "passes", "kernels"};
  return {"plans", "notes", "slacks", "passes", "kernels", "segments"};
}

// The headings of --help, and what stands below the options.
void group_options(CommandLine& app) {
  app.group("What is planned",
            {"--stages", "--microbatches", "--schedule", "--blocked-power", "--step", "--partial",
             "--captured-clock", "--power", "--power-gpu", "--power-period", "--power-zone",
             "--also", "--disturb", "--comm-sms"});
  app.group("Question", {"--goal", "--slack", "--odds", "--budget", "--prices", "--granularity",
                         "--aggregation"});
  app.group("GPU and power",
            {"--gpu", "--clocks", "--power-limit", "--host-power", "--cluster", "--table"});
  app.group("Changes of clock", {"--switching"});
  app.group("Search", {"--time-limit", "--gap"});
  app.group("Output", {"--db", "--plan-file", "--timeline", "--list", "--json", "--csv",
                       "--json-lines", "--output"});
  app.footer(
      "\nChange is against the default clocks of the same GPU, work and power limit.\n"
      "Examples:\n"
      "  rubato explore gpt3-xl --slack 2 --db results.db\n"
      "  rubato explore run.pt.trace.json.gz --power smi.csv --slack 1\n"
      "  rubato explore full.json.gz --also slow.json.gz@1050\n"
      "  rubato explore 'rank*.pt.trace.json.gz' --slack 1 --granularity gpu,pass\n"
      "  rubato explore stages.csv --blocked-power 84 --microbatches 12 --slack 0,5,10\n"
      "  rubato explore gpt3-xl --stages 4 --slack 5 --plan-file plan.json\n"
      "  rubato explore gpt3-xl --goal time --budget 280W\n"
      "  rubato explore gpt3-xl --goal cost --prices kwh=0.12,gpu-hour=0.05\n"
      "  rubato explore --table sweep.csv --gpu a100-sxm4-80gb --slack 5");
}

}  // namespace

void add_explore_options(CommandLine& app, ExploreOptions& o) {
  app.add_option("WORK", o.work,
                 "A trace or a shipped name (gpt3-xl), captures of the ranks of one run "
                 "('rank*.pt.trace.json.gz'), or stages: a profile (CSV) or a description, see "
                 "rubato pipeline describe")
      ->capture_default_str()
      ->reads_file();
  app.add_option("--stages", o.stages, "Pipeline stages of a model, or of a profile [its own]");
  app.add_option("--microbatches", o.microbatches, "Microbatches per iteration [8]");
  app.add_option("--schedule", o.schedule,
                 "gpipe, 1f1b, interleaved, early-recompute, zb-h1 [1f1b]");
  app.add_option("--blocked-power", o.blocked_power_w,
                 "Power of a stage that waits for another, W [of a model the GPU's idle power]");
  add_step_options(app, o.step);
  add_captured_clock_options(app, o.captured);
  app.add_option("--also", o.also,
                 "Captures of the same work at other core clocks, FILE@CORE or FILE@MEMORY/CORE: "
                 "what they took bounds what other clocks take");
  add_disturb_option(app, o.disturb);
  add_comm_sms_option(app, o.comm_sms);
  add_question_options(app, o.questions);
  app.add_option("--gpu", o.gpu,
                 "Shipped name or file of a GPU spec [the GPU that was captured or measured, else "
                 "rtx-3080-ti]");
  app.add_option("--clocks", o.clocks,
                 "Clocks to choose from: a grid of the spec, e.g. 'full', or e.g. "
                 "'mem=5001,auto core=210:2100:105,auto' [the spec's first grid]");
  app.add_option("--power-limit", o.power_limit_w, "Board power limit, W [the spec's]");
  add_host_power_option(app, o.host_power_w);
  app.add_option("--cluster", o.cluster,
                 "What a trace's collectives run on: shipped name or file, see rubato network "
                 "[guessed from the GPU's link]");
  add_table_option(app, o.table);
  add_switching_option(app, o.switching, "spec; of a profile without --gpu free");
  add_limit_options(app, o.limits);
  app.add_option("--db", o.db, "Store the run in this SQLite database");
  app.add_option("--plan-file", o.plan_file,
                 "Write the answer's plan as a file that sets clocks, JSON (docs/apply.md); of "
                 "stages also a FOLDER of schedules for Zeus");
  app.add_option("--timeline", o.timeline,
                 "One iteration under each plan: a Chrome trace (.json) for ui.perfetto.dev; of "
                 "stages also a Gantt chart (.svg) or a page (.html)")
      ->ends_in({".json", ".svg", ".html"});
  app.add_option(
         "--list", o.lists,
         "Also these tables: plans (all of them), notes, slacks, passes, kernels, segments, "
         "collectives, comm_sms (with commas)")
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
      throw UsageError(fmt::format("--list '{}' is not known of this run{}", printable(name),
                                   did_you_mean(name, known)));
  }
}

}  // namespace rubato
