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
  double voltage_scale = 1.0;          ///< of the voltage above its floor; 1 except for "auto"
};

/// Core clock range and the clocks that act otherwise than requested.
struct CoreClocks {
  double min_mhz = 0.0;
  double max_mhz = 0.0;
  double step_mhz = 0.0;
  std::vector<double> requested_mhz;  ///< ascending; below the last one, effective
  std::vector<double> effective_mhz;  ///< clocks are interpolated, above it they are as requested
};

/// Core voltage relative to its floor, piecewise linear and non-decreasing;
/// beyond the last point the last slope continues.
struct VoltageCurve {
  std::vector<double> core_mhz;    ///< ascending
  std::vector<double> relative_v;  ///< >= 1
};

/// Core-side bandwidth over crossbar_bytes_per_cycle x core clock, piecewise
/// linear, constant beyond the ends; empty: 1 everywhere. GPUs whose L2 and
/// crossbar clock follows the core clock in steps need it.
struct CrossbarCurve {
  std::vector<double> core_mhz;  ///< ascending
  std::vector<double> relative;  ///< > 0
};

/// Board power limit. Under a binding limit the average power settles at
/// regulated_frac x limit_w, a little below the limit.
struct PowerLimit {
  double limit_w = 0.0;
  double min_w = 0.0;  ///< range a user may set
  double max_w = 0.0;
  double regulated_frac = 1.0;
};

/// Dense rates of the whole chip that no kernel can exceed, by the type it computes in; types
/// that are missing are not known. Empty: none is.
struct PeakRates {
  std::map<Dtype, double> tensor_flop_per_cycle;  ///< accumulating in fp32, of fp64 in fp64
  std::map<Dtype, double> cuda_flop_per_cycle;    ///< fused multiply-adds outside tensor cores
  std::optional<double> pcie_gbs;                 ///< link to the host, per direction
};

/// Model parameters without a section of their own.
struct SharedParameters {
  double leakage_w = 0.0;                 ///< times V^2
  double clock_w_per_mhz = 0.0;           ///< times core clock times V^2
  double dram_nj_per_byte = 0.0;          ///< energy of a byte moved to or from DRAM
  double crossbar_bytes_per_cycle = 0.0;  ///< DRAM traffic the core side can carry per core cycle
  double bandwidth_exponent = 6.0;        ///< how sharply the two bandwidth limits meet
  double overlap_exponent = 0.0;          ///< how sharply core and DRAM time meet, > 0
};

/// Time and energy coefficients of one kernel, per launch. docs/models.md, section 2.
struct KernelCoefficients {
  static constexpr std::size_t count = 7;

  double core_cycles = 0.0;    ///< core-side time x core clock, cycles, > 0
  double dram_bytes = 0.0;     ///< effective DRAM traffic, bytes, > 0
  double fixed_s = 0.0;        ///< launch latency, > 0
  double core_j = 0.0;         ///< core energy at the voltage floor, J, > 0
  double limit_scale = 1.0;    ///< regulated power of this kernel over the usual one
  double overlap_scale = 1.0;  ///< of the overlap exponent
  double idle_scale = 1.0;     ///< of the idle power: below 1 where the kernel leaves units asleep
};

/// Coefficients of a kernel that was measured, with the work it did then, so
/// that they can be carried to another batch size or parallel degree.
struct CalibratedKernel {
  std::string name;  ///< Kernel::name
  KernelClass kind = KernelClass::other;
  std::optional<double> flops;       ///< per launch when measured
  std::optional<double> dram_bytes;  ///< compulsory DRAM bytes per launch when measured
  std::optional<GemmShape> gemm;
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

/// What is known of changing clocks; latencies are missing where nobody measured them.
struct SwitchLatency {
  std::optional<double> core_s;  ///< from request to effect, >= 0
  std::optional<double> mem_s;
  double core_stall_s = 0.0;  ///< for the last part of the latency the device waits, <= latency
  double mem_stall_s = 0.0;
  double core_j = 0.0;  ///< energy of a change beyond idle power, >= 0
  double mem_j = 0.0;
  double dwell_s = 0.0;    ///< from an effect to the next request, >= 0
  std::string guess = {};  ///< why core_s is one, in words; empty: it was measured on this GPU
};

/// Power of a kernel from the utilisation of the GPU's units at one clock.
/// Formula: docs/models.md, section 7.
struct UtilisationModel {
  double core_mhz = 0.0;  ///< clock at which the utilisations are given
  std::string mem_state;  ///< memory state at which they are given
  std::map<std::string, double>
      unit_w;           ///< core units: W at full use, at this clock, at the voltage floor
  double dram_w = 0.0;  ///< W at full use of DRAM
  double core_share_exponent =
      1.0;  ///< share of time the core bounds: its most used unit to this power
  double dram_share_exponent = 1.0;  ///< the same for DRAM
  double overlap_exponent = 2.0;     ///< how sharply the two meet
  double latency_core_share = 0.5;   ///< of the rest of the time, what scales with the core clock
};

/// The measurements behind a fit; outside, the model extrapolates.
struct FittedRange {
  double min_core_mhz = 0.0, max_core_mhz = 0.0;
  std::uint64_t kernels = 0, points = 0;
};

/// Everything about one GPU.
struct GpuSpec {
  static constexpr std::uint64_t schema = 1;

  // Defined once: four kilobytes of code each, and forty units hold a spec.
  GpuSpec();
  GpuSpec(const GpuSpec& other);
  GpuSpec(GpuSpec&& other) noexcept;
  GpuSpec& operator=(const GpuSpec& other);
  GpuSpec& operator=(GpuSpec&& other) noexcept;
  ~GpuSpec();

  std::string name;         ///< "rtx-3080-ti"
  std::string title;        ///< "NVIDIA GeForce RTX 3080 Ti"
  bool calibrated = false;  ///< false: constants only, results are rough
  std::vector<MemState> mem_states;
  CoreClocks core;
  std::vector<NamedGrid> grids;
  ClockPair default_clock;
  PowerLimit power_limit;
  VoltageCurve voltage;
  CrossbarCurve crossbar;
  SharedParameters shared;
  double sm_count = 0.0;
  double peak_flop_per_cycle = 0.0;    ///< all SMs, 16-bit tensor with fp32 accumulation
  std::optional<double> memory_gb;     ///< device memory, 1e9 bytes; nothing: cards differ
  double link_gbs = 0.0;               ///< bandwidth per GPU and direction of the link to its peers
  std::optional<ClusterSpec> cluster;  ///< it is part of; nothing: see cluster_of
  PeakRates peaks;
  SwitchLatency switching;
  std::vector<CalibratedKernel> kernels;
  std::vector<ClassCoefficients> classes;
  std::map<std::string, std::string> sources;  ///< section -> where its numbers come from
  std::map<std::string, double> fit_errors;    ///< e.g. "table1_energy_mae_points"

  std::optional<FittedRange> fitted_range;
  std::optional<UtilisationModel> utilisation;

  /// Draws around the fit, for intervals: what to add to the logarithms of the
  /// parameters (spec_parameters, then seven per kernel, or parameters alone). Empty: not known.
  std::vector<std::vector<double>> ensemble;
};

/// Reads and checks a spec. @throws DataError naming the first wrong or missing entry
[[nodiscard]] GpuSpec parse_gpu_spec(std::string_view json_text, std::string name_for_messages);

/// JSON text, one section per line; parse_gpu_spec reads it back to the same values.
[[nodiscard]] std::string to_json(const GpuSpec& spec);

/// A shipped spec by name, or a file. @throws UsageError (unknown name, with the
/// nearest), IoError, DataError
[[nodiscard]] GpuSpec load_gpu_spec(std::string_view name_or_path);

/// The cluster that collectives run on: the spec's, or a guess from its link: nodes of eight, as
/// many as are asked for, NVLink from 100 GB/s up and PCIe below, at the shares of their rates that
/// collectives reach on A100 (docs/network.md).
[[nodiscard]] ClusterSpec cluster_of(const GpuSpec& spec);

/// Names of the shipped specs.
[[nodiscard]] std::vector<std::string> shipped_gpu_specs();

}  // namespace rubato
