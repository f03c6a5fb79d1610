// rubato calibrate: fit a GPU's model to published measurements.

#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "common/file.hpp"
#include "models/calibration.hpp"
#include "tools/command.hpp"
#include "tools/output.hpp"
#include "traces/trace_json.hpp"

namespace rubato {

Action setup_calibrate(CLI::App& app) {
  struct Options {
    std::string folder, sweep, gpu = "rtx-3080-ti", trace = "gpt3-xl", grid = "paper", out = "-";
    bool without_table1 = false;
  };
  auto o = std::make_shared<Options>();
  app.add_option("FOLDER", o->folder, "Folder with kernels.csv and pass_forward_sweep.csv")
      ->required();
  app.add_option("--sweep", o->sweep,
                 "CSV sweep of other kernels on the same GPU model, for the shared parameters");
  app.add_option("--gpu", o->gpu, "Spec that supplies names, clock ranges and grids")
      ->capture_default_str();
  app.add_option("--trace", o->trace, "Trace with the measured kernels")->capture_default_str();
  app.add_flag("--without-table1", o->without_table1, "Keep Table 1 for testing");
  app.add_option("-o,--output", o->out, "Fitted spec; - is standard output")->capture_default_str();
  app.footer(
      "\nTakes about a minute. Errors of the fit are printed and stored in the spec.\n"
      "Example:\n  rubato calibrate data/spaan2026 --sweep data/rtx3080ti.csv -o my-3080-ti.json");
  return [o](const RunContext& context) {
    const GpuSpec frame = load_gpu_spec(o->gpu);
    const ClockGrid grid = make_clock_grid(frame, o->grid);
    const Trace trace = load_trace(o->trace);
    const PaperData paper = read_paper_data(o->folder, grid, trace);
    const std::vector<SweepKernel> sweep =
        o->sweep.empty() ? std::vector<SweepKernel>{} : read_sweep(o->sweep, frame).kernels;
    const GpuSpec spec =
        calibrate(frame, trace, grid, paper, sweep, {.use_table1 = !o->without_table1}, context);
    write_file(o->out, to_json(spec));
    if (o->out != "-") {
      OutputTable table({{"error"}, {"value", "", 3}});
      for (const auto& [name, value] : spec.fit_errors) table.add_row({name, value});
      print(table.render(OutputFormat::table));
    }
    return ExitStatus::done;
  };
}

}  // namespace rubato
