// rubato merge: several result databases into one.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/process/interruption.hpp"
#include "explorer/results/merge.hpp"
#include "explorer/results/store.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

Action setup_merge(CommandLine& app) {
  struct Options {
    std::vector<std::string> sources;
    std::string target;
    OutputFormat format = OutputFormat::table;
  };
  auto o = std::make_shared<Options>();
  app.add_option("DATABASE", o->sources,
                 "Result databases to take from; none: the other is brought up to date");
  app.add_option("-o,--output", o->target, "Result database to bring them into; may exist")
      ->required();
  add_format_options(app, o->format);
  app.footer(
      "What is there already is left alone, so merging twice changes nothing. Equal questions with "
      "different results are an error (status 3) and named. Each source is one transaction.");
  return [o](const RunContext& context) {
    if (o->sources.empty() && !std::filesystem::exists(o->target))
      throw UsageError(fmt::format("there is no database '{}', and none to take from", o->target));
    for (const std::string& source : o->sources) check_result_database(source);
    MergeTarget target(o->target);
    OutputTable table({{"source"},
                       {"new_runs", "new runs"},
                       {"known_runs", "known runs"},
                       {"new_plans", "new plans"},
                       {"known_plans", "known plans"},
                       {"new_measurements", "new measurements"}});
    try {
      for (const std::string& source : o->sources) {
        refuse_if_interrupted();
        const MergeCounts counts = target.take(source);
        table.add_row({source, counts.new_runs, counts.known_runs, counts.new_plans,
                       counts.known_plans, counts.new_measurements});
        context.report({.done = table.rows(), .total = o->sources.size(), .note = source});
      }
      target.finish();
    } catch (const InterruptedError&) {
      throw InterruptedError(
          fmt::format("{} of {} databases were brought in; the same command goes on",
                      std::filesystem::exists(o->target) ? table.rows() : 0, o->sources.size()));
    }
    print(table, o->format);
    return ExitStatus::done;
  };
}

}  // namespace rubato
