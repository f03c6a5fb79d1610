#pragma once
// One GPU: which clocks it takes, how they act, and the parameters of the time
// and power model that all its kernels share. Read from a strict JSON file in
// which every section names the source of its numbers. Formulas: docs/models.md.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "models/gpu/clock_pair.hpp"
#include "models/gpu/operators.hpp"
#include "models/network/cluster.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// One setting of the memory clock. "auto", where the driver chooses, is a
/// state of its own.
struct MemState {
  std::string name;                    ///< as in clock labels: "9501", "auto"
  double mem_mhz = 0.0;                ///< memory clock in this state, > 0
  double boost_mhz = 0.0;              ///< sustained core clock nothing exceeds in this state, > 0
  std::optional<double> max_core_mhz;  ///< the driver's clamp of the core clock, > 0
  double bandwidth_gbs = 0.0;          ///< DRAM bandwidth kernels reach at high core clocks, > 0
  double base_power_w = 0.0;           ///< board power that depends on nothing else, > 0
  double voltage_scale = 1.0;          ///< factor on the voltage above its floor; 1 but for "auto"
};

/// Core clock range, and the clocks that act otherwise than requested. Up to the last requested_mhz
/// the clock in effect is interpolated linearly between the points below. Above it, a request acts
/// as it is.
struct CoreClocks {
  double min_mhz = 0.0;
  double max_mhz = 0.0;
  double step_mhz = 0.0;
  std::vector<double> requested_mhz;  ///< ascending, may be empty
  std::vector<double> effective_mhz;  ///< clock in effect for each, as many
};

/// Voltage-frequency curve: core voltage relative to its floor, piecewise linear and
/// non-decreasing. Below the first point it is constant; beyond the last the last slope continues.
struct VoltageCurve {
  std::vector<double> core_mhz;    ///< ascending
  std::vector<double> relative_v;  ///< >= 1
};

/// Core-side bandwidth (L2 cache and crossbar) over crossbar_bytes_per_cycle x core clock; empty: 1
/// everywhere. GPUs whose L2 and crossbar clock follows the core clock in steps need this curve.
/// The bandwidth, relative x core clock, is linear between the points and does not fall from one to
/// the next, so a higher core clock never makes a kernel slower. Beyond the ends `relative` is
/// constant.
struct CrossbarCurve {
  std::vector<double> core_mhz;  ///< ascending
  std::vector<double> relative;  ///< > 0
};

/// Board power limit. Under a binding limit the average power settles at
/// regulated_frac x limit_w, a little below the limit.
struct PowerLimit {
  double limit_w = 0.0;
  double min_w = 0.0;  ///< a user may set the limit from here ...
  double max_w = 0.0;  ///< ... to here
  double regulated_frac = 1.0;
};

/// Peak rates: what no kernel can exceed on the whole chip with dense operands, by the type it
/// computes in. The rate of a type that is missing is not known.
struct PeakRates {
  std::map<Dtype, double> tensor_flop_per_cycle;  ///< accumulating in fp32, of fp64 in fp64
  std::map<Dtype, double> cuda_flop_per_cycle;    ///< fused multiply-adds outside tensor cores
  std::optional<double> pcie_gbs;                 ///< link to the host, per direction
};

/// Model parameters without a section of their own. A soft maximum of a and b is the p-norm
/// (a^p + b^p)^(1/p): the larger p, the nearer it is to the larger of the two. A soft minimum has
/// -p in place of p.
struct SharedParameters {
  double leakage_w = 0.0;                 ///< leakage power at the voltage floor; grows with V^2
  double clock_w_per_mhz = 0.0;           ///< of a running clock, at the floor; grows with V^2
  double dram_nj_per_byte = 0.0;          ///< energy of a byte moved to or from DRAM
  double crossbar_bytes_per_cycle = 0.0;  ///< DRAM traffic the core side can carry per core cycle
  double bandwidth_exponent = 6.0;        ///< of the soft minimum of the two bandwidth limits, > 0
  double overlap_exponent = 0.0;          ///< p of the soft maximum of core and DRAM time, > 0
};

/// Time and energy coefficients of one kernel, per launch. docs/models.md, section 2.
struct KernelCoefficients {
  static constexpr std::size_t count = 7;

  double core_cycles = 0.0;    ///< core-side time x core clock, cycles, > 0
  double dram_bytes = 0.0;     ///< effective DRAM traffic, bytes, > 0
  double fixed_s = 0.0;        ///< launch latency, > 0
  double core_j = 0.0;         ///< core energy at the voltage floor, J, > 0
  double limit_scale = 1.0;    ///< factor on the power that the limit holds this kernel at
  double overlap_scale = 1.0;  ///< factor on the overlap exponent
  double idle_scale = 1.0;     ///< factor on idle power: below 1 where units stay asleep
};

/// Coefficients of a kernel that was measured, with the work it did then, so
/// that they can be carried to another batch size or parallel degree.
struct CalibratedKernel {
  std::string name;  ///< Kernel::name
  KernelClass kind = KernelClass::other;
  std::optional<double> flops;       ///< per launch when measured
  std::optional<double> dram_bytes;  ///< compulsory DRAM bytes per launch when measured
  std::optional<GemmShape> gemm;
  Dtype dtype = Dtype::unknown;  ///< that it computed in when measured
  KernelCoefficients coefficients;
};

/// Coefficients of kernels that were never measured, per unit of their work.
struct ClassCoefficients {
  KernelClass kind = KernelClass::other;
  double cycles_per_unit = 0.0;  ///< unit: FLOP for GEMMs and attention, else DRAM byte
  double dram_factor = 1.0;      ///< effective over compulsory DRAM bytes
  double core_nj_per_unit = 0.0;
  double fixed_s = 0.0;
  double overlap_scale = 1.0;
};

/// A named selection of clocks, e.g. "paper": 6 memory states x 11 core clocks.
struct NamedGrid {
  std::string name;
  std::vector<std::string> mem_states;
  std::vector<std::optional<double>> core_mhz;  ///< nothing: "auto"
};

/// What a change of clock takes: core_ of the core clock, mem_ of the memory clock. A latency is
/// missing where nobody measured it.
struct SwitchLatency {
  std::optional<double> core_s;  ///< latency, from request to effect, >= 0
  std::optional<double> mem_s;
  double core_stall_s = 0.0;  ///< last part of the latency, in which nothing runs, <= latency
  double mem_stall_s = 0.0;
  double core_j = 0.0;  ///< energy of a change beyond idle power, >= 0
  double mem_j = 0.0;
  double dwell_s = 0.0;    ///< from an effect to the next request, >= 0
  std::string guess = {};  ///< why core_s is one, in words; empty: it was measured on this GPU
};

/// The measurements behind a fit. At core clocks outside their range the model extrapolates.
struct FittedRange {
  double min_core_mhz = 0.0, max_core_mhz = 0.0;
  std::uint64_t kernels = 0, points = 0;
};

/// Board power while nothing runs, as measured; linear between its points, constant beyond the
/// ends.
struct WaitingPower {
  std::vector<double> core_mhz;  ///< ascending
  std::vector<double> power_w;   ///< > 0, not falling; at the default memory clock
};

/// What a power log beside a capture said of the core energies of a class, over those that work and
/// class let expect.
struct LoggedEnergy {
  KernelClass kind = KernelClass::other;
  double core_factor = 1.0;     ///< > 0
  double relative_error = 0.0;  ///< standard error of the factor, over the factor
};

/// Everything about one GPU.
struct GpuSpec {
  static constexpr std::uint64_t schema = 1;

  // Defined in spec.cpp: each is four kilobytes of code, and forty source files copy specs.
  GpuSpec();
  GpuSpec(const GpuSpec& other);
  GpuSpec(GpuSpec&& other) noexcept;
  GpuSpec& operator=(const GpuSpec& other);
  GpuSpec& operator=(GpuSpec&& other) noexcept;
  ~GpuSpec();

  std::string name;         ///< "rtx-3080-ti"
  std::string title;        ///< "NVIDIA GeForce RTX 3080 Ti"
  bool calibrated = false;  ///< false: data-sheet constants only, results are rough
  std::vector<MemState> mem_states;
  CoreClocks core;
  std::vector<NamedGrid> grids;
  ClockPair default_clock;
  PowerLimit power_limit;
  VoltageCurve voltage;
  CrossbarCurve crossbar;
  SharedParameters shared;
  double sm_count = 0.0;
  /// Of NVIDIA's GPUs, the generation: 8.6 for GA102. Nothing: not known, or another vendor's.
  std::optional<double> compute_capability;
  double peak_flop_per_cycle = 0.0;    ///< all SMs, 16-bit tensor with fp32 accumulation
  std::optional<double> memory_gb;     ///< device memory, 1e9 bytes; nothing: cards differ
  double link_gbs = 0.0;               ///< bandwidth per GPU and direction of the link to its peers
  std::optional<ClusterSpec> cluster;  ///< that the GPU is part of; nothing: see cluster_of
  PeakRates peaks;
  std::string architecture;  ///< that `operators` are from; empty: none
  std::optional<Operators>
      operators;  ///< kernels from their shapes; nothing: peak rates have to do
  SwitchLatency switching;
  std::vector<CalibratedKernel> kernels;
  std::vector<ClassCoefficients> classes;      ///< go before `operators`, in 16 bits
  std::map<std::string, std::string> sources;  ///< section -> where its numbers come from
  std::map<std::string, double> fit_errors;    ///< e.g. "table1_energy_mae_points"

  std::optional<FittedRange> fitted_range;
  std::optional<WaitingPower> waiting;  ///< nothing: not measured, see waiting_power_w
  std::vector<LoggedEnergy> logged;     ///< of captured kernels that no fit knows; empty: no log

  /// The ensemble: draws around the fit, for intervals. A draw is what to add to the natural
  /// logarithms of the parameters: of spec_parameters, then of seven coefficients per kernel (or of
  /// spec_parameters alone). Empty: not known.
  std::vector<std::vector<double>> ensemble;
};

/// Reads and checks a spec, also against what holds for every GPU (spec_laws.hpp).
/// @throws DataError naming the first wrong or missing entry
[[nodiscard]] GpuSpec parse_gpu_spec(std::string_view json_text, std::string name_for_messages);

/// JSON text, each entry of a section on a line of its own. parse_gpu_spec reads it back to the
/// same values.
[[nodiscard]] std::string to_json(const GpuSpec& spec);

/// A shipped spec by name, or a file. @throws UsageError (unknown name, with the
/// nearest), IoError, DataError
[[nodiscard]] GpuSpec load_gpu_spec(std::string_view name_or_path);

/// The cluster that collectives run on: the spec's own or, where it has none, a guess from the
/// GPU's link. The guess: nodes of eight GPUs, as many as are asked for; NVLink for links of
/// 100 GB/s and more, PCIe below; at the share of the link's rate that collectives reach on A100
/// (docs/network.md).
[[nodiscard]] ClusterSpec cluster_of(const GpuSpec& spec);

/// Names of the shipped specs.
[[nodiscard]] std::vector<std::string> shipped_gpu_specs();

}  // namespace rubato
