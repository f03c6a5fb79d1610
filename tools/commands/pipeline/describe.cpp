// rubato pipeline describe: a pipeline as a file that explore takes.

#include <memory>
#include <string>
#include <utility>

#include "tools/command_line.hpp"
#include "tools/commands/pipeline/subcommands.hpp"

namespace rubato {

namespace {

struct DescribeOptions {
  PipelineInput input;
  std::string out;
  OutputFormat format = OutputFormat::table;
};

// Each kind of pass of each stage at the clocks that changes are against.
OutputTable types_table(const PipelineWork& work) {
  OutputTable table({{"stage"},
                     {"pass"},
                     {"options"},
                     {"core_mhz", "core MHz", 0},
                     {"time_s", "time s", 5},
                     {"energy_j", "energy J", 2}});
  for (const PassType& type : work.types) {
    const ClockOption& fastest = type.options.front();
    table.add_row({std::int64_t{type.stage}, std::string(name_of(type.kind)),
                   static_cast<std::int64_t>(type.options.size()), fastest.core_mhz, fastest.time_s,
                   fastest.energy_j});
  }
  return table;
}

}  // namespace

Action setup_pipeline_describe(CommandLine& app) {
  auto o = std::make_shared<DescribeOptions>();
  add_pipeline_options(app, o->input);
  app.add_option("-o,--output", o->out, "Write the description, JSON: 'rubato explore' plans it")
      ->ends_in({".json"});
  return [o, &app](const RunContext&) {
    const LoadedPipeline loaded = load_pipeline(o->input);
    (void)switch_model(o->input);
    if (!o->out.empty()) write_output(o->out, description_json(app, o->out));
    if (o->out == "-") return ExitStatus::done;
    print_notes(describe(o->input, loaded.work) + '\n');
    print(types_table(loaded.work), OutputFormat::table);
    print_notes(multiply_note(o->input, loaded.work));
    return ExitStatus::done;
  };
}

}  // namespace rubato
