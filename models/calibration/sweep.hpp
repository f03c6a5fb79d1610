#pragma once
// Measured times and powers of kernels over clocks, from a tidy CSV file: one
// row per kernel and clock pair.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "traces/trace.hpp"

namespace rubato {

/// One measurement of one kernel. Time, power or both are there.
struct SweepPoint {
  ClockPair clock;
  std::optional<double> time_s;       ///< per launch, > 0
  std::optional<double> power_w;      ///< average board power, > 0
  std::optional<double> power_cap_w;  ///< limit during the measurement; nothing: the GPU's default
  std::optional<double> dram_bytes;   ///< counted per launch
  bool cap_assumed = false;  ///< power_cap_w was not said: the least that the sweep's powers allow
};

/// All points of one kernel.
struct SweepKernel {
  std::string name;  ///< "workload:id:kernel" of the columns that the file has (read_sweep)
  std::vector<SweepPoint> points;
  std::uint32_t count = 1;  ///< launches in an iteration, where the file says so
  Pass pass = Pass::unknown;
  KernelClass kind = KernelClass::other;  ///< where the file says so
};

/// Board power while no kernel runs.
struct IdlePoint {
  ClockPair clock;
  double power_w = 0.0;
};

/// Measurements of one GPU.
struct Sweep {
  std::string file;
  std::string gpu;             ///< as in the file
  bool applied_clocks = true;  ///< false: core clocks are requests, see read_sweep
  std::vector<SweepKernel> kernels;
  std::vector<IdlePoint> idle;
  std::vector<std::string> left_out;    ///< a line for every row left out
  std::vector<std::string> notes = {};  ///< what was assumed

  [[nodiscard]] std::size_t points() const noexcept;
};

/// How to read a file whose columns are named otherwise or that holds more than is wanted.
struct SweepColumns {
  std::map<std::string, std::string> renamed = {};  ///< column -> "name in the file[:unit]"
  std::map<std::string, std::string> where = {};    ///< column in the file -> the value to keep
  bool keep_implausible = false;
};

/// Reads a sweep, a CSV file with a header. Needed columns:
/// - kernel
/// - core_mhz (applied: in effect) or core_mhz_requested (an upper bound); a number or "auto"
/// - mem_mhz, a memory state of `spec`; a table without is at the default one, which notes say
/// - time_s, power_w, energy_j: at least one (two give the third); a row needs time or power
/// Optional columns: count (launches in an iteration), pass, class (of kernels, as in captures),
/// gpu, workload, workload_id, batch_size, power_cap_w, and of DRAM dram_bytes, or
/// dram_read_transactions and dram_write_transactions (32 bytes each), or dram_active (share of the
/// peak, 0..1). Other columns are ignored.
///
/// Other units by renaming (SweepColumns, traces/plausible.hpp). Rows of the kernel "idle" are idle
/// power. Profiles of Zeus and Perseus (stage, instruction, frequency, time, energy; ranks as
/// repeats), Zeus's profiles of power limits (JSON) and caches of Kernel Tuner
/// (traces/import/kernel_tuner.hpp) are read too.
///
/// Time, power and energy of one row must agree within 10 %, and each be one of a GPU
/// (traces/plausible.hpp); times of one kernel must be such that its clocks explain them. A row
/// that is the copy of an earlier one counts once. Rows that cannot be right are left out
/// (implausible.hpp) unless SweepColumns::keep_implausible. Where more power was drawn than the
/// limit of `spec`, rows without power_cap_w get the least limit that allows it.
/// @throws IoError, DataError
[[nodiscard]] Sweep read_sweep(const std::filesystem::path& path, const GpuSpec& spec,
                               const SweepColumns& columns = {});

/// As read_sweep, from a text. @param name  what messages and Sweep::file call it
/// @throws DataError
[[nodiscard]] Sweep parse_sweep(std::string_view text, const std::string& name, const GpuSpec& spec,
                                const SweepColumns& columns = {});

/// The GPU that a sweep names, in its column `gpu` or as a cache's device; empty if it names none
/// or several. @throws IoError, DataError
[[nodiscard]] std::string gpu_in_sweep(const std::filesystem::path& path,
                                       const SweepColumns& columns = {});

/// Adds the rows of an idle file (core_mhz, mem_mhz, power_w or power_w_median).
/// @throws IoError, DataError
void add_idle(Sweep& sweep, const std::filesystem::path& path, const GpuSpec& spec);

}  // namespace rubato
