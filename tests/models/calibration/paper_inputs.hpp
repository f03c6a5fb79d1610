#pragma once
// What the fit to the paper is made of.

#include <string_view>
#include <vector>

#include "models/calibration/paper_fit.hpp"
#include "tests/paths.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {

struct PaperInputs {
  explicit PaperInputs(std::string_view gpu = "rtx-3080-ti") : spec(load_gpu_spec(gpu)) {}

  GpuSpec spec;
  Trace trace = load_trace("gpt3-xl");
  ClockGrid grid = make_clock_grid(spec, "paper");
  PaperData data = read_paper_data(measured_data("spaan2026"), grid, trace);
  std::vector<SweepKernel> sweep =
      read_sweep(measured_data("rtx3080ti_kernels/kernels.csv"), spec).kernels;
};

}  // namespace rubato
