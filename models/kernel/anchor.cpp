#include "models/kernel/anchor.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/kernel/coefficients.hpp"
#include "models/kernel/model.hpp"
#include "models/kernel/peaks.hpp"

namespace rubato {

namespace {

// Clocks and durations are known to a few per cent. Work that needs more than this factor beyond a
// peak is wrong.
constexpr double beyond_peak = 1.05;
constexpr double least_ratio = 1e-3, most_ratio = 1e3;  // core over DRAM time where one is absent

// What a GPU does at the captured clocks and at its highest ones.
struct Surroundings {
  const GpuSpec& spec;
  ClockState captured, highest;
};

// Shares of the captured time that the known work takes at least; nothing where it is not known
// or was dropped.
struct LeastShares {
  std::optional<double> core, dram;
};

LeastShares least_shares(const Surroundings& gpu, const Kernel& kernel, double time_s,
                         AnchoredKernel& found) {
  LeastShares least;
  if (kernel.flops && *kernel.flops > 0.0) {
    const double core_s =
        *kernel.flops * gpu.captured.s_per_cycle / peak_flop_per_cycle(gpu.spec, kernel);
    found.flops_dropped = core_s > beyond_peak * time_s;
    if (!found.flops_dropped) least.core = std::min(core_s / time_s, 1.0);
  }
  if (kernel.dram_bytes && *kernel.dram_bytes > 0.0) {
    const double reached = gpu.captured.dram_bytes_per_s;
    found.bytes_dropped =
        *kernel.dram_bytes > beyond_peak * peak_dram_bytes_per_s(reached) * time_s;
    if (!found.bytes_dropped) least.dram = std::min(*kernel.dram_bytes / (reached * time_s), 1.0);
  }
  return least;
}

// Core over DRAM time of a launch whose DRAM time is `share` of what is not fixed. That whole is
// the soft maximum of the two with exponent p: 1 = (core^p + share^p)^(1/p).
double ratio_at_dram_share(double share, double p) {
  return std::clamp(std::pow(std::pow(share, -p) - 1.0, 1.0 / p), least_ratio, most_ratio);
}
double ratio_at_core_share(double share, double p) { return 1.0 / ratio_at_dram_share(share, p); }

// Core over DRAM time that kernels of a class have at default clocks. Near the medians of the
// fitted RTX 3080 Ti (models/data/rtx-3080-ti.json): matrix products, permute, softmax, embedding,
// layernorm, bias. Guesses: attention, between both kinds of matrix products; reduce and
// residual_layernorm, like bias; element-wise kernels, gelu and optimizers, a tenth; copies, the
// least. All other classes: in balance, 1; bias_reduce too, of which only two kernels were fitted.
double ratio_of_class(KernelClass kind) {
  switch (kind) {
    case KernelClass::gemm: return 6.5;
    case KernelClass::attention: return 3.0;
    case KernelClass::gemm_batched: return 1.2;
    case KernelClass::permute: return 1.0;
    case KernelClass::softmax: return 0.5;
    case KernelClass::embedding:
    case KernelClass::layernorm: return 0.3;
    case KernelClass::bias:
    case KernelClass::reduce:
    case KernelClass::residual_layernorm: return 0.2;
    case KernelClass::gelu:
    case KernelClass::elementwise:
    case KernelClass::optimizer: return 0.1;
    case KernelClass::memcpy:
    case KernelClass::memset: return least_ratio;
    case KernelClass::bias_reduce:
    case KernelClass::communication:
    case KernelClass::other: break;
  }
  return 1.0;
}

// Core over DRAM time: the best guess and the range that the known work leaves open.
struct OpenSplit {
  double low = least_ratio, best = 1.0, high = most_ratio;

  [[nodiscard]] double at(double lean) const {
    const double a = std::atan(low), b = std::atan(best), c = std::atan(high);
    return std::tan(lean < 0.5 ? a + (b - a) * 2.0 * lean : b + (c - b) * (2.0 * lean - 1.0));
  }
};

OpenSplit open_split(const Surroundings& gpu, const Kernel& kernel, const LeastShares& least,
                     double p, SplitSource& source) {
  OpenSplit split;
  if (kernel.work_source == WorkSource::measured && least.dram) {
    constexpr double counter_error = 0.15;  // what caches and refresh leave open
    source = SplitSource::counters;
    split.best = ratio_at_dram_share(*least.dram, p);
    split.low = ratio_at_dram_share(std::min(*least.dram * (1.0 + counter_error), 1.0), p);
    split.high = ratio_at_dram_share(*least.dram * (1.0 - counter_error), p);
    return split;
  }
  if (least.core) split.low = ratio_at_core_share(*least.core, p);
  if (least.dram) split.high = ratio_at_dram_share(*least.dram, p);
  const auto fitted = derived(gpu.spec, kernel);
  const bool whole_work = least.dram && (least.core || !counted_in_flops(kernel.kind));
  source = least.core || least.dram ? SplitSource::work : SplitSource::class_prior;
  if (fitted && whole_work) {
    split.best = fitted->core_cycles * gpu.captured.s_per_cycle * gpu.captured.dram_bytes_per_s /
                 fitted->dram_bytes;
  } else if (whole_work && least.core && counted_in_flops(kernel.kind)) {
    split.best = *least.core / *least.dram;
  } else {
    split.best = ratio_of_class(kernel.kind);
  }
  // Work near both peaks at once leaves no range; the work itself then says most.
  if (split.low > split.high) split.low = split.high = *least.core / *least.dram;
  split.best = std::clamp(split.best, split.low, split.high);
  return split;
}

// Core energy at the voltage floor, J. Assumed, as core power over the power limit at the default
// clocks: a matrix product at 80 % of its type's peak 0.6; traffic at full bandwidth 0.3; a launch
// of unknown work 1/3; one whose class is unknown too 1/5. Measured: products of the RTX 3080 Ti
// 0.7, its element-wise kernels and normalisations 0.37; STREAM on the A100 0.25; kernels of all
// kinds on ten GPUs 0.21 (docs/gpus.md, "Captured plans").
double core_energy_j(const Surroundings& gpu, const Kernel& kernel, const LeastShares& least,
                     double dram_bytes, double time_s) {
  constexpr double at_peak_flops = 0.6 / 0.8, at_full_bandwidth = 0.3, unknown = 1.0 / 3.0,
                   of_any_class = 1.0 / 5.0;
  const bool shape = kernel.gemm || kernel.attention;
  if ((least.dram || shape) && (least.core || !counted_in_flops(kernel.kind))) {
    if (const auto fitted = derived(gpu.spec, kernel)) return fitted->core_j;
  }
  const double limit_w = gpu.spec.power_limit.limit_w / gpu.highest.squared_voltage;
  if (!least.core && !least.dram) {
    const double cycles_at_highest_s = time_s * gpu.highest.s_per_cycle / gpu.captured.s_per_cycle;
    return (kernel.kind == KernelClass::other ? of_any_class : unknown) * limit_w *
           cycles_at_highest_s;
  }
  double energy_j = at_full_bandwidth * limit_w * dram_bytes / gpu.highest.dram_bytes_per_s;
  if (least.core) {
    energy_j += at_peak_flops * limit_w * *kernel.flops * gpu.highest.s_per_cycle /
                peak_flop_per_cycle(gpu.spec, kernel);
  }
  return energy_j;
}

// How far core and DRAM time overlap: as in the kernel's work where that is known, else as its
// class.
double overlap_of(const GpuSpec& spec, const Kernel& kernel) {
  if (const auto known = derived(spec, kernel)) return known->overlap_scale;
  const auto fitted = std::ranges::find(spec.classes, kernel.kind, &ClassCoefficients::kind);
  return fitted == spec.classes.end() ? 1.0 : fitted->overlap_scale;
}

// A kernel that a link bounds: the GPU copies while it waits, and draws little. How far a
// collective's copy loop follows the core clock is not known. Taken: 2 % of its time do, in draws
// (`lean` from 0 to 1) nothing to 4 %.
KernelCoefficients behind_link(const Surroundings& gpu, const Kernel& kernel, double time_s,
                               const LeastShares& least, double lean) {
  constexpr double little = 1e-3, copy_loop = 0.02;
  const bool collective = kernel.kind == KernelClass::communication;
  const double share_of_limit = collective ? 0.05 : 0.02;  // some SMs copy, or a copy engine alone
  const double core_share = collective ? std::max(2.0 * lean * copy_loop, little) : little;
  const double dram_share = std::clamp(least.dram.value_or(0.0), little, 0.9);
  return {.core_cycles = core_share * time_s / gpu.captured.s_per_cycle,
          .dram_bytes = dram_share * time_s * gpu.captured.dram_bytes_per_s,
          .fixed_s = (1.0 - dram_share) * time_s,
          .core_j =
              share_of_limit * gpu.spec.power_limit.limit_w * time_s / gpu.highest.squared_voltage,
          .limit_scale = 1.0,
          .overlap_scale = 1.0};
}

bool bound_by_link(const Kernel& kernel) {
  if (kernel.kind == KernelClass::communication) return true;
  return kernel.kind == KernelClass::memcpy && copy_path(kernel) != CopyPath::device;
}

// Whether a copy from or to the host moved more bytes than PCIe can carry in its time.
bool beyond_link(const GpuSpec& spec, const Kernel& kernel, double time_s) {
  return kernel.kind == KernelClass::memcpy && copy_path(kernel) == CopyPath::host &&
         spec.peaks.pcie_gbs &&
         kernel.dram_bytes.value_or(0.0) > beyond_peak * *spec.peaks.pcie_gbs * 1e9 * time_s;
}

}  // namespace

LoggedEnergy logged_energy(const GpuSpec& spec, KernelClass kind) {
  const auto found = std::ranges::find(spec.logged, kind, &LoggedEnergy::kind);
  return found == spec.logged.end() ? LoggedEnergy{.kind = kind} : *found;
}

KernelCoefficients scaled_to(const GpuSpec& spec, KernelCoefficients c, const CapturePoint& at) {
  // One pass is exact but for rounding, which the search at the power limit makes larger.
  for (int i = 0; i < 2; ++i) {
    const double scale = at.time_s / operating_point(spec, c, at.clock, at.power_limit_w).time_s;
    for (double* value : {&c.core_cycles, &c.dram_bytes, &c.fixed_s, &c.core_j}) *value *= scale;
  }
  return c;
}

KernelCoefficients held_to(const GpuSpec& spec, KernelCoefficients kernel, const ClockPair& clock,
                           double time_s, double energy_j) {
  constexpr double most_dram = 0.5, most_idle = 0.9;  // of the energy; what is left has to be > 0
  constexpr double no_limit = 1e3;
  const ClockState state = clock_state(spec, clock, false);
  const auto hold_time = [&] {
    const double factor = time_s / unlimited_point(state, kernel).time_s;
    kernel.core_cycles *= factor;
    kernel.dram_bytes *= factor;
    kernel.fixed_s *= factor;
  };
  hold_time();
  const double most_bytes = most_dram * energy_j / state.dram_j_per_byte;
  if (kernel.dram_bytes > most_bytes) {
    kernel.dram_bytes = most_bytes;
    kernel.core_cycles = time_s / state.s_per_cycle;
    hold_time();
  }
  const double rest_j = energy_j - kernel.dram_bytes * state.dram_j_per_byte;
  const double idle_j = state.idle_w * time_s;
  kernel.idle_scale = std::min(kernel.idle_scale, most_idle * rest_j / idle_j);
  kernel.core_j = (rest_j - kernel.idle_scale * idle_j) / state.squared_voltage;
  kernel.limit_scale = no_limit;
  return kernel;
}

namespace {

// Without what a log says.
AnchoredKernel expected(const GpuSpec& spec, const Kernel& kernel, const CapturePoint& at,
                        double lean) {
  const Surroundings gpu{spec, clock_state(spec, at.clock, false),
                         clock_state(spec, spec.default_clock, false)};
  AnchoredKernel found;
  if (const CalibratedKernel* known = calibrated_kernel(spec, kernel)) {
    found.split = SplitSource::fit;
    found.coefficients = scaled_to(spec, carried_over(*known, kernel, spec.sm_count), at);
    return found;
  }
  LeastShares least = least_shares(gpu, kernel, at.time_s, found);
  if (bound_by_link(kernel)) {
    found.split = SplitSource::link;
    if (beyond_link(spec, kernel, at.time_s)) {
      found.bytes_dropped = true;
      least.dram.reset();
    }
    found.coefficients = scaled_to(spec, behind_link(gpu, kernel, at.time_s, least, lean), at);
    return found;
  }
  // The start of a launch follows no clock, but no one measured it: at lean 1 it is core time.
  constexpr double launch_s = 2e-6, most_launch = 0.3;
  const double fixed =
      std::min(launch_s / at.time_s, most_launch) * std::clamp(2.0 - 2.0 * lean, least_ratio, 1.0);
  const double overlap_scale = overlap_of(spec, kernel);
  const double p = spec.shared.overlap_exponent * overlap_scale;
  const double rest = 1.0 - fixed;
  for (auto* share : {&least.core, &least.dram}) {
    if (*share) *share = std::min(**share / rest, 1.0);
  }
  const double ratio = open_split(gpu, kernel, least, p, found.split).at(lean);
  const double dram_share = rest * std::pow(1.0 + std::pow(ratio, p), -1.0 / p);
  const double dram_bytes = dram_share * at.time_s * gpu.captured.dram_bytes_per_s;
  const KernelCoefficients split{
      .core_cycles = ratio * dram_share * at.time_s / gpu.captured.s_per_cycle,
      .dram_bytes = dram_bytes,
      .fixed_s = fixed * at.time_s,
      .core_j = core_energy_j(gpu, kernel, least, dram_bytes, at.time_s),
      .limit_scale = 1.0,
      .overlap_scale = overlap_scale};
  found.coefficients = scaled_to(spec, split, at);
  return found;
}

}  // namespace

AnchoredKernel anchored(const GpuSpec& spec, const Kernel& kernel, const CapturePoint& at,
                        double lean) {
  AnchoredKernel found = expected(spec, kernel, at, lean);
  if (spec.logged.empty()) return found;
  found.coefficients.core_j *= logged_energy(spec, kernel.kind).core_factor;
  found.coefficients = scaled_to(spec, found.coefficients, at);
  return found;
}

}  // namespace rubato
