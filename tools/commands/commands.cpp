#include <array>
#include <memory>
#include <string>

#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"

namespace rubato {

std::span<const Command> commands() {
  static constexpr std::string_view plan = "Plan", set = "Apply and check", results = "Results",
                                    models = "GPUs and models",
                                    traces = "Traces and published work";
  static constexpr std::array list{
      Command{"explore", "Find the clocks that use the least energy", &setup_explore, plan},
      Command{"sweep", "Experiments: many scenarios from one file, resumable", &setup_sweep, plan},
      Command{"sweep-latency", "What is left of a saving when changing clocks takes time",
              &setup_sweep_latency, plan},
      Command{"transfer", "A plan found on one trace, applied to others", &setup_transfer, plan},
      Command{"pipeline", "Pipelines: described, scaled, compared, beside a slow stage",
              &setup_pipeline, plan},
      Command{"remeasure", "What a plan chosen on noisy measurements keeps when measured again",
              &setup_remeasure, plan},
      Command{"apply", "Training under a plan: sets clocks ahead of each pass", &setup_python, set},
      Command{"measure", "What a plan saves: windows under it and at the default clocks in turns",
              &setup_python, set},
      Command{"verify", "A promised saving beside the measured one", &setup_verify, set},
      Command{"energy", "Energy of a program: GPUs, and CPU and DRAM where the system lets it",
              &setup_python, set},
      Command{"watch", "Clock, power, plan, time lost and energy saved, as training goes on",
              &setup_python, set},
      Command{"doctor", "What this machine lets you do, and what to do about the rest",
              &setup_python, set},
      Command{"latency", "How long a change of clock takes on this machine", &setup_python, set},
      Command{"match", "How much of a profiled run a plan knows", &setup_python, set},
      Command{"capture", "Measurements of this machine's GPU: clock sweeps and traces",
              &setup_python, set},
      Command{"restore", "Gives clocks back that were left set", &setup_python, set},
      Command{"show", "One run at a glance", &setup_show, results},
      Command{"top", "The units of a sweep that save most", &setup_top, results},
      Command{"report", "One page with the pictures of a run or an experiment", &setup_report,
              results},
      Command{"compare", "The same questions in two runs, databases or versions", &setup_compare,
              results},
      Command{"query", "Read a result database with SQL", &setup_query, results},
      Command{"export", "Parts of a run as CSV or JSON", &setup_export, results},
      Command{"merge", "Bring result databases together", &setup_merge, results},
      Command{"impact", "Energy, cost and emissions of a training run", &setup_impact, results},
      Command{"gpus", "The shipped GPU specs and how they were fitted", &setup_gpus, models},
      Command{"calibrate", "Fit a GPU's time and power model to measurements", &setup_calibrate,
              models},
      Command{"suggest", "Which clocks to measure next for the most certain plan", &setup_suggest,
              models},
      Command{"validate", "How far a model is from measurements it has not seen", &setup_validate,
              models},
      Command{"network", "Clusters, and how long collectives take on them", &setup_network, models},
      Command{"trace", "Generate, show and convert kernel traces", &setup_trace, traces},
      Command{"replay", "A captured run against the model, and under other clocks", &setup_replay,
              traces},
      Command{"reproduce", "A published experiment beside ours", &setup_reproduce, traces},
  };
  return list;
}

Action one_of(CommandLine& app, std::span<const Command> choices) {
  app.require_subcommand(1);
  auto chosen = std::make_shared<Action>();
  for (const Command& command : choices) {
    CommandLine* sub = app.add_subcommand(std::string(command.name), std::string(command.help));
    sub->headed(command.heading.empty() ? "Subcommands" : std::string(command.heading));
    if (!app.may_hold(command.name)) continue;
    sub->final_callback([chosen, prepared = command.setup(*sub)] { *chosen = prepared; });
  }
  return [chosen](const RunContext& context) { return (*chosen)(context); };
}

}  // namespace rubato
