#pragma once
// A plan as a file that sets clocks, of every kind of run: what `rubato export --plan`, `rubato
// explore --plan-file` writes and the Python package plays.
// docs/plan.schema.json says what the names mean, docs/apply.md how the file is used.
//
// Energies and changes of energy are of the GPUs alone, without the rest of the node.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/plan/applicable.hpp"
#include "models/gpu/spec.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

inline constexpr int plan_file_schema = 1;

/// What a GPU is told. Nothing: the driver's choice.
struct PlanFileClock {
  std::string label;
  std::optional<double> core_mhz, mem_mhz, power_limit_w;

  friend bool operator==(const PlanFileClock&, const PlanFileClock&) = default;
};

/// @param label  of ClockGrid, "1593/1410" or "auto/auto"; one of memory states of `spec` by name
/// @param spec   null: states are read as MHz
[[nodiscard]] PlanFileClock plan_file_clock(std::string_view label, const GpuSpec* spec);

/// A launch: the index-th of its kernel in the pass, from 0.
struct PlanFileLaunch {
  std::string kernel;
  std::int64_t index = 0;
};

/// Launches in a row, or a pass of a stage, at one clock. In order they are a step, which repeats.
struct PlanFileSegment {
  std::string pass;
  std::optional<std::int64_t> microbatch = {}, chunk = {};
  bool begins_pass = true;                  ///< else it goes on in the pass of the one before
  std::optional<std::size_t> clock = {};    ///< in PlanFile::clocks; nothing: its kernels differ
  std::optional<std::int64_t> choice = {};  ///< of PlanFileKernel, where kernels differ
  std::int64_t launches = 1;
  double time_s = 0.0;  ///< until the next one begins
  double energy_j = 0.0;
  std::optional<PlanFileLaunch> first = {};  ///< nothing: a whole pass
};

/// Who is told these clocks.
struct PlanFileGpu {
  std::string label;                      ///< "rank 2", "stage 0"
  std::optional<std::int64_t> rank = {};  ///< nothing: every rank, or every one of the stage
  std::optional<std::int64_t> device = {}, stage = {};
  std::vector<PlanFileSegment> segments = {};
};

/// A change against the default clocks in percent, with its 90 % interval where there is one.
struct PlanFileChange {
  double value_pct = 0.0;
  std::optional<double> low_pct = {}, high_pct = {};
};

/// As applied, with its changes of clock counted.
struct PlanFilePromise {
  double time_s = 0.0, energy_j = 0.0;
  PlanFileChange time, energy;
  std::optional<double> odds_in_time_pct = {}, lower_bound_j = {}, gap_pct = {};
  std::optional<std::int64_t> clock_changes = {};
};

enum class PlanRole {
  answer,
  coarser,  ///< of the same question, to fall back on
  slower    ///< of the answer's granularity with more slack, for when another rank is late
};

struct PlanFilePlan {
  PlanRole role = PlanRole::answer;
  std::optional<std::int64_t> plan_id = {};
  std::string granularity;
  std::string goal = "energy";           ///< energy, edp, ed2p, time or cost
  std::optional<double> slack_pct = {};  ///< nothing: any time
  std::optional<double> odds_pct = {};   ///< asked for; nothing: not known
  PlanVerdict verdict = {};
  std::optional<double> comm_sms = {};  ///< nothing: as captured
  PlanFilePromise promise = {};
  std::string by_hand = {};  ///< lines that set it, where each GPU has one clock; else empty
  std::vector<PlanFileGpu> gpus = {};
};

/// Of launches that share GPU, pass and clock: how they are recognised.
struct PlanFileKernel {
  std::size_t gpu = 0;  ///< in the answer's gpus
  std::string pass, name;
  std::optional<std::int64_t> choice = {};  ///< of the segments it is in; nothing: any
  std::optional<std::size_t> clock = {};
  std::optional<std::int64_t> launches = {};
  std::optional<double> time_s = {};
  std::string launched_as = {};  ///< kernel_key(); empty: by its name
};

struct PlanFileRun {
  std::string kind = {};  ///< trace, capture or pipeline
  std::optional<std::int64_t> run_id = {};
  std::string work, command;
  std::int64_t gpus = 1;  ///< whose energies these are
  double default_time_s = 0.0, default_energy_j = 0.0;
  double host_power_w = 0.0;  ///< of the rest of the node for each GPU; counted by the planner
  std::optional<std::string> schedule = {};
  std::optional<std::int64_t> stages = {}, tensor_parallel = {}, data_parallel = {};
};

struct PlanFileSpec {
  std::string spec;
  std::optional<std::string> title = {}, default_clock = {};
  std::optional<double> power_limit_w = {};
  std::optional<GpuSpec> known = {};  ///< is not written
};

/// @param spec  null: only its name is known
[[nodiscard]] PlanFileSpec plan_file_spec(std::string name, const GpuSpec* spec,
                                          std::optional<double> power_limit_w);

/// What a change takes, as planner, verdict and applier see it, and where that comes from.
struct PlanFileSwitching {
  SwitchModel model;
  std::string source = "free";  ///< free, measured, recalled, assumed (of the GPU spec) or given
  std::optional<std::string> note = {};
};

/// @param model  see switching_in_earnest()
/// @param spec   null: not known
[[nodiscard]] PlanFileSwitching plan_file_switching(SwitchModel model, const GpuSpec* spec);

struct PlanFile {
  std::string created_utc;  ///< ISO 8601
  PlanFileRun run;
  std::optional<PlanFileSpec> gpu = {};  ///< nothing: a measured profile that names none
  PlanFileSwitching switching = {};
  std::vector<PlanFileClock> clocks = {};
  std::vector<PlanFilePlan> plans = {};  ///< the answer, then the coarser, then the slower ones
  std::vector<PlanFileKernel> kernels = {};

  /// Position of a clock in `clocks`, where it is added if it is new.
  std::size_t clock_id(const PlanFileClock& clock);
};

/// Adds launches to a step; they join the last segment if pass and clock are the same.
void add_launches(std::vector<PlanFileSegment>& step, PlanFileSegment launches);

/// "strict_waste", "least_edp" and the like as files name goals.
[[nodiscard]] std::string plan_file_goal(std::string_view goal);

[[nodiscard]] std::string_view name_of(PlanRole value) noexcept;

/// The text of the file. @pre there is a plan
[[nodiscard]] std::string plan_file_json(const PlanFile& file);

}  // namespace rubato
