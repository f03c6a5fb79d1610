#pragma once
// Captures and power logs that a known model makes: a step of a training run, with jitter, launches
// that the profiler lost, a sensor that averages and a log whose clock is off.

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/kernel/coefficients.hpp"
#include "models/kernel/model.hpp"
#include "models/validation/power_alignment.hpp"
#include "traces/capture.hpp"
#include "traces/power_log.hpp"

namespace rubato {

struct CaptureNoise {
  double jitter = 0.03;                ///< relative, of every launch
  double lost = 0.02;                  ///< share of launches the profiler misses
  double power = 0.01;                 ///< relative, of every reading
  double log_offset_s = 0.4;           ///< log time = run time + this
  std::optional<double> pause_w = {};  ///< what the GPU draws between steps; nothing: idle power
};

struct SimulatedRun {
  Capture capture;
  PowerLog log;
};

/// What an A100 is, and a step whose kernels it has true coefficients of, by name.
struct KnownModel {
  GpuSpec frame = load_gpu_spec("a100-sxm4-80gb");
  GpuSpec truth = frame;
  std::vector<Kernel> kernels;
  std::vector<std::uint32_t> step;  ///< launches in order

  KnownModel() {
    truth.kernels.clear();
    truth.ensemble.clear();
    // Name, class, time at 1410 MHz, core and DRAM part of it, core power; work as far as known.
    add("qkv", KernelClass::gemm, 1.1e-3, 0.96, 0.35, 190.0, 0.72, 0.2);
    add("fc", KernelClass::gemm, 2.2e-3, 0.98, 0.30, 210.0, 0.75, 0.2);
    add("small", KernelClass::gemm, 0.2e-3, 0.70, 0.60, 120.0, 0.3, 0.4);
    add("flash", KernelClass::attention, 1.5e-3, 0.93, 0.15, 150.0, 0.5, 0.1);
    add("gelu", KernelClass::elementwise, 0.9e-3, 0.35, 0.95, 110.0, {}, 0.85);
    add("add", KernelClass::elementwise, 0.5e-3, 0.25, 0.95, 100.0, {}, {});
    add("norm", KernelClass::layernorm, 0.6e-3, 0.50, 0.90, 95.0, {}, {});
    add("adam", KernelClass::optimizer, 4.0e-3, 0.20, 0.97, 90.0, {}, 0.9);
    add("mystery", KernelClass::other, 0.8e-3, 0.80, 0.40, 130.0, {}, {});
    for (int layer = 0; layer < 12; ++layer) {
      for (const std::uint32_t kernel : {6U, 0U, 3U, 2U, 5U, 6U, 1U, 4U, 1U, 8U, 5U})
        step.push_back(kernel);
    }
    for (int i = 0; i < 4; ++i) step.push_back(7);
  }

  [[nodiscard]] OperatingPoint point(std::uint32_t kernel, const ClockPair& clock) const {
    return operating_point(truth, truth.kernels[kernel].coefficients, clock,
                           truth.power_limit.limit_w);
  }

  /// Ten steps with pauses, on a GPU that the driver calls an A100.
  [[nodiscard]] SimulatedRun run(const ClockPair& clock, std::uint64_t seed,
                                 const CaptureNoise& noise = {}) const {
    constexpr int steps = 10;
    std::mt19937_64 random(seed);
    std::normal_distribution<double> gaussian;
    std::uniform_real_distribution<double> uniform;
    SimulatedRun made;
    Capture& capture = made.capture;
    capture.name = "simulated";
    capture.devices = {{0, "NVIDIA A100-SXM4-80GB"}};
    capture.streams = {{0, 7}};
    capture.kernels = kernels;
    capture.step_source = StepSource::annotation;
    const double idle_w =
        idle_power_w(truth, truth.mem_states[index(clock.mem)], effective_core_mhz(truth, clock));
    const double rest_w = noise.pause_w.value_or(idle_w),
                 rest_mhz = effective_core_mhz(truth, clock);
    std::vector<double> at_s{0.0}, power_w{rest_w}, mhz{rest_mhz};
    double now_s = 0.3;
    for (std::uint32_t s = 0; s < steps; ++s) {
      const double begin_s = now_s;
      for (const std::uint32_t kernel : step) {
        const OperatingPoint at = point(kernel, clock);
        const double time_s = at.time_s * std::exp(noise.jitter * gaussian(random));
        at_s.push_back(now_s);
        power_w.push_back(at.energy_j / at.time_s);
        mhz.push_back(at.core_mhz);
        if (uniform(random) >= noise.lost) {
          CapturedLaunch launch;
          launch.kernel = KernelId{kernel};
          launch.start_ns = std::llround(1e9 * now_s);
          launch.duration_ns = std::llround(1e9 * time_s);
          launch.step = s;
          capture.launches.push_back(launch);
        }
        now_s += time_s + 1e-6;
      }
      at_s.push_back(now_s);
      power_w.push_back(rest_w);
      mhz.push_back(rest_mhz);
      capture.steps.push_back(
          {"step " + std::to_string(s), std::llround(1e9 * begin_s), std::llround(1e9 * now_s)});
      now_s += 0.1 + 0.3 * uniform(random);
    }
    at_s.push_back(now_s);
    power_w.push_back(0.0);
    mhz.push_back(0.0);
    read_sensor(StepCurve(at_s, power_w), now_s, noise, random, made);
    const StepCurve clocks(at_s, mhz);
    for (PowerSample& sample : made.log.samples) {
      const double run_s = sample.time_s - noise.log_offset_s;
      sample.core_mhz = std::round(clocks.mean(run_s, run_s));
    }
    return made;
  }

  /// Every 40 ms the mean of the last 25 of 100 ms, as the sensor of an A100 says it.
  static void read_sensor(const StepCurve& power, double end_s, const CaptureNoise& noise,
                          std::mt19937_64& random, SimulatedRun& made) {
    std::normal_distribution<double> gaussian;
    const double first_s = 1e-9 * static_cast<double>(made.capture.launches.front().start_ns);
    made.log.file = "simulated.csv";
    made.log.kind = PowerLogKind::nvidia_smi;
    made.log.base = TimeBase::relative;
    const SensorModel sensor = sensor_of("NVIDIA A100-SXM4-80GB", made.log);
    for (double s = first_s + 0.11; s < end_s - 0.01; s += 0.04) {
      // The sensor's cycle starts with the capture.
      const double cycle_end_s =
          first_s + std::floor((s - first_s) / sensor.cycle_s) * sensor.cycle_s;
      const double mean_w = power.mean(cycle_end_s - sensor.window_s, cycle_end_s);
      made.log.samples.push_back({.time_s = s + noise.log_offset_s,
                                  .power_w = mean_w * (1.0 + noise.power * gaussian(random)),
                                  .core_mhz = {},
                                  .mem_mhz = {}});
    }
  }

 private:
  void add(const char* name, KernelClass kind, double time_s, double core_share, double dram_share,
           double core_w, std::optional<double> of_peak_flops, std::optional<double> of_bandwidth) {
    const ClockState state = clock_state(frame, frame.default_clock, false);
    Kernel kernel;
    kernel.name = kernel.label = name;
    kernel.kind = kind;
    kernel.dtype = Dtype::bf16;
    kernel.launch = LaunchShape{.grid = {100, 1, 1}, .block = {256, 1, 1}};
    if (of_peak_flops)
      kernel.flops = *of_peak_flops * frame.peak_flop_per_cycle * state.core_mhz * 1e6 * time_s;
    if (of_bandwidth) kernel.dram_bytes = *of_bandwidth * state.dram_bytes_per_s * time_s;
    if (of_bandwidth) kernel.work_source = WorkSource::derived;
    KernelCoefficients c{.core_cycles = core_share * time_s / state.s_per_cycle,
                         .dram_bytes = dram_share * time_s * state.dram_bytes_per_s,
                         .fixed_s = 2e-6,
                         .core_j = core_w * time_s / state.squared_voltage,
                         .limit_scale = 1.0,
                         .overlap_scale = 1.0};
    // Core and memory overlap as the frame has it; times and energies are the kernel's own.
    if (const auto expected = derived(frame, kernel)) c.overlap_scale = expected->overlap_scale;
    const double scale = time_s / unlimited_point(state, c).time_s;
    for (double* value : {&c.core_cycles, &c.dram_bytes, &c.fixed_s, &c.core_j}) *value *= scale;
    truth.kernels.push_back(
        {.name = name, .kind = kind, .flops = {}, .dram_bytes = {}, .gemm = {}, .coefficients = c});
    kernels.push_back(kernel);
  }
};

}  // namespace rubato
