#pragma once
// A GPU whose numbers are round, so that answers can be worked out by hand.

#include <string>
#include <utility>

#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// At 1 GHz: 100 GB/s, 100 TFLOP/s in 16 bits, voltage 2 x its floor; nothing was fitted. At 500
/// MHz the voltage is at its floor.
inline GpuSpec round_gpu() {
  GpuSpec s;
  s.mem_states = {{.name = "auto",
                   .mem_mhz = 1000.0,
                   .boost_mhz = 1000.0,
                   .max_core_mhz = {},
                   .bandwidth_gbs = 100.0,
                   .base_power_w = 50.0,
                   .voltage_scale = 1.0}};
  s.core = {.min_mhz = 100.0,
            .max_mhz = 1000.0,
            .step_mhz = 100.0,
            .requested_mhz = {},
            .effective_mhz = {}};
  s.default_clock = {MemStateId{0}, {}};
  s.voltage = {{500.0, 1000.0}, {1.0, 2.0}};
  s.shared = {.leakage_w = 10.0,
              .clock_w_per_mhz = 0.01,
              .dram_nj_per_byte = 0.1,
              .crossbar_bytes_per_cycle = 1e6,
              .bandwidth_exponent = 6.0,
              .overlap_exponent = 8.0};
  s.power_limit = {.limit_w = 400.0, .min_w = 100.0, .max_w = 400.0, .regulated_frac = 1.0};
  s.sm_count = 100.0;
  s.peak_flop_per_cycle = 1e5;
  s.peaks.tensor_flop_per_cycle = {{Dtype::bf16, 1e5}};
  s.peaks.pcie_gbs = 20.0;
  return s;
}

inline Kernel launch_of(KernelClass kind, std::string label = "k") {
  Kernel kernel;
  kernel.name = kernel.label = std::move(label);
  kernel.kind = kind;
  kernel.dtype = Dtype::bf16;
  return kernel;
}

}  // namespace rubato
