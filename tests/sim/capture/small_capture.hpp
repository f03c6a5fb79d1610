#pragma once
// Captures made by hand: three streams of one A100.

#include <algorithm>
#include <optional>

#include "models/gpu/clock_grid.hpp"
#include "models/gpu/spec.hpp"
#include "traces/capture.hpp"

namespace rubato {

struct SmallCapture {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  ClockPair clock = parse_clock_pair(spec, "1593/1410");
  KernelId gemm{0}, copy{1}, reduce{2}, unknown{3};
  Capture capture;

  SmallCapture() {
    capture.name = "small";
    capture.devices = {{0, "A100"}};
    capture.streams = {{0, 7}, {0, 20}, {0, 21}};
    Kernel big;
    big.name = "gemm";
    big.kind = KernelClass::gemm;
    big.flops = 2.0 * 4096 * 4096 * 4096;
    big.dram_bytes = 3.0 * 4096 * 4096 * 2;
    Kernel memory;
    memory.name = "copy";
    memory.kind = KernelClass::elementwise;
    memory.flops = 1e3;
    memory.dram_bytes = 1e9;
    Kernel collective;
    collective.name = "all-reduce";
    collective.kind = KernelClass::communication;
    collective.collective = Collective{CollectiveKind::all_reduce, 1e8, 8};
    Kernel bare;
    bare.name = "bare";
    capture.kernels = {big, memory, collective, bare};
    for (Kernel& kernel : capture.kernels) kernel.label = kernel.name;
  }

  void add(std::uint32_t stream, KernelId kernel, std::int64_t start_ns, std::int64_t duration_ns,
           std::optional<std::int64_t> call_ns = {}) {
    CapturedLaunch launch;
    launch.kernel = kernel;
    launch.stream = stream;
    launch.start_ns = start_ns;
    launch.duration_ns = duration_ns;
    launch.launch_ns = call_ns;
    capture.launches.push_back(launch);
  }

  const Capture& sorted() {
    std::ranges::stable_sort(capture.launches, {}, &CapturedLaunch::start_ns);
    return capture;
  }
};

}  // namespace rubato
