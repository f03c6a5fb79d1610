#include <array>
#include <memory>
#include <string>

#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"

namespace rubato {

std::span<const Command> commands() {
  static constexpr std::string_view plan = "Plan", data = "Data and models", results = "Results",
                                    machine = "On the GPU";
  static constexpr std::array list{
      Command{"explore",
              "Find the clocks that use the least energy: for a profile, ranks, a model or a "
              "pipeline",
              &setup_explore, plan},
      Command{"budget", "Clocks and power caps for several jobs within the watts of a rack",
              &setup_budget, plan},
      Command{"experiment", "Ask many questions from one file; stops and resumes",
              &setup_experiment, plan},
      Command{"transfer", "Use a plan found on one run for other runs", &setup_transfer, plan},
      Command{"latency-scan", "How much of a saving remains when switching clocks takes longer",
              &setup_latency_scan, plan},
      Command{"pipeline", "Describe, scale and compare pipelines; what to do about a slow stage",
              &setup_pipeline, plan},
      Command{"impact", "Energy, cost and emissions of a whole training run", &setup_impact, plan},
      Command{"trace", "Generate, import, scale and show kernel traces", &setup_trace, data},
      Command{"replay", "Compare a captured run with the model, also at other clocks",
              &setup_replay, data},
      Command{"gpus", "List the shipped GPU models and their errors", &setup_gpus, data},
      Command{"calibrate", "Fit a GPU model to measurements", &setup_calibrate, data},
      Command{"suggest", "Which clocks to measure next", &setup_suggest, data},
      Command{"validate", "Test a model on measurements it has not seen", &setup_validate, data},
      Command{"remeasure", "How much of a saving survives when noisy measurements are repeated",
              &setup_remeasure, data},
      Command{"network", "Clusters, and how long collectives take on them", &setup_network, data},
      Command{"reproduce", "Compare published experiments with ours", &setup_reproduce, data},
      Command{"show", "One run: what to set, what it saves, how sure that is", &setup_show,
              results},
      Command{"top", "The best plans of a database or an experiment", &setup_top, results},
      Command{"compare", "Compare two runs, databases or program versions", &setup_compare,
              results},
      Command{"report", "One page with the pictures of a run or an experiment", &setup_report,
              results},
      Command{"serve", "All runs of a result database in the browser, on this machine only",
              &setup_python, results},
      Command{"query", "Read a result database with SQL", &setup_query, results},
      Command{"export", "Write a plan file, or tables as CSV or JSON", &setup_export, results},
      Command{"merge", "Combine result databases", &setup_merge, results},
      Command{"doctor", "What this machine can measure and set", &setup_python, machine},
      Command{"capture", "Measure kernels at several clocks; profile a training step",
              &setup_python, machine},
      Command{"latency", "Measure how long switching clocks takes", &setup_python, machine},
      Command{"apply", "Set a plan's clocks while training runs", &setup_python, machine},
      Command{"measure", "Measure a training script with and without a plan", &setup_python,
              machine},
      Command{"verify", "Compare the promised saving with the measured one", &setup_verify,
              machine},
      Command{"energy", "Energy of a program: GPUs, processor and memory", &setup_python, machine},
      Command{"watch", "Clocks, power and saving while training runs", &setup_python, machine},
      Command{"match", "How much of a profiled run a plan covers", &setup_python, machine},
      Command{"restore", "Give clocks back that were left set", &setup_python, machine},
  };
  return list;
}

Action one_of(CommandLine& app, std::span<const Command> choices) {
  app.require_subcommand(1);
  auto chosen = std::make_shared<Action>();
  for (const Command& command : choices) {
    CommandLine* sub = app.add_subcommand(std::string(command.name), std::string(command.help));
    sub->headed(command.heading.empty() ? "Commands" : std::string(command.heading));
    if (!app.may_hold(command.name)) continue;
    sub->final_callback([chosen, prepared = command.setup(*sub)] { *chosen = prepared; });
  }
  return [chosen](const RunContext& context) { return (*chosen)(context); };
}

}  // namespace rubato
