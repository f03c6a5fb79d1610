#pragma once
// Options of commands that take what was captured: which part of it, and the clocks it ran at.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/calibration/power_scales.hpp"
#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
#include "traces/capture.hpp"
#include "traces/capture_match.hpp"
#include "traces/import_options.hpp"
#include "traces/power_log.hpp"
#include "traces/trace.hpp"

namespace rubato {

class CommandLine;
class Option;

/// The clocks of a capture: given, or from a power log.
struct CapturedClockOptions {
  std::string clock;  ///< MEMORY/CORE
  std::string power;  ///< file of a power log
  PowerLogOptions log;
  std::optional<double> power_zone_h;  ///< of a log in local time
};

/// A capture, and the clock that it ran at where that was said.
struct ClockedFile {
  std::string file;
  std::optional<std::string> clock;  ///< MEMORY/CORE
};

/// "run.json.gz@1593/1110", or "@1110" where the memory clock is the GPU's default.
[[nodiscard]] ClockedFile clocked_file(const std::string& text);

/// The readings of a power log inside a capture, by the kernels of `step`. Standard error says how
/// the log was placed.
/// @param times  of the step's kernels in the capture, shape [kernels]
[[nodiscard]] std::vector<PowerWindow> told_windows(
    const PowerLog& log, std::optional<double> zone_h, const GpuSpec& spec, const Trace& step,
    const Capture& capture, std::span<const std::optional<TypicalTime>> times);

/// Adds --captured-clock, --power, --power-gpu, --power-period and --power-zone. `options` must
/// outlive parsing.
void add_captured_clock_options(CommandLine& app, CapturedClockOptions& options);

/// import_capture(), with a note on standard error for each kind of record that was left out.
[[nodiscard]] Capture read_told_capture(const std::string& file, const ImportOptions& options = {});

/// read_power_log(), with a note on standard error for each kind of line that was left out.
[[nodiscard]] PowerLog read_told_power_log(const std::filesystem::path& path,
                                           const PowerLogOptions& options);

/// What --captured-clock says, else the log's, for a trace, which has no times to put a log beside.
/// @throws UsageError if both are given; what read_power_log throws
[[nodiscard]] std::optional<std::string> captured_clock_label(const CapturedClockOptions& options);

/// The capture that others are set beside.
struct FirstCapture {
  const Capture& recorded;  ///< as its power log lies beside it
  const Capture& planned;   ///< without odd steps
};

/// What options and log say of captured runs.
class CapturedLog {
 public:
  /// @throws what read_power_log throws
  CapturedLog(const CapturedClockOptions& options, const GpuSpec& spec);

  /// What --captured-clock says, else the log's; nothing: neither does.
  [[nodiscard]] const std::optional<std::string>& clock() const noexcept { return clock_; }

  /// The spec with the power that the log has of the run, see with_logged_power(). Standard error
  /// says what came of the log.
  [[nodiscard]] GpuSpec with_power(GpuSpec spec, const std::vector<Capture>& captures,
                                   const ClockPair& clock) const;

  /// A spec whose kernels are those of a capture that were also captured at other clocks, fitted to
  /// all of them, and to their power logs where the first and another one have such. Standard error
  /// says how much of the first capture was found in each other one.
  /// @param also  captures at other clocks: a ClockedFile, and ",power=LOG" behind it
  /// @throws UsageError for a file without a clock, or with one that was captured already;
  ///         DataError for one with nothing of the first; what reading captures and logs throws
  [[nodiscard]] GpuSpec with_other_captures(const GpuSpec& spec, const FirstCapture& first,
                                            const ClockPair& clock,
                                            const std::vector<std::string>& also,
                                            const ImportOptions& options) const;

 private:
  PowerLogOptions options_;
  std::optional<double> zone_h_;
  std::optional<PowerLog> log_;
  std::optional<std::string> clock_;
};

/// Which step of a capture, and how damage is taken.
struct StepOptions {
  std::string step;  ///< its name or its position from 0; empty: the whole capture
  ImportOptions import = {};
};

/// Adds --phase of a server's capture.
Option* add_phase_option(CommandLine& app, ImportOptions& options);

/// Adds --step, --phase and --partial.
void add_step_options(CommandLine& app, StepOptions& options);

/// Whether that is a file of a capture: no shipped name, and no trace of ours.
[[nodiscard]] bool names_capture(const std::string& name_or_path);

/// A trace of ours by shipped name or file, plain or gzip.
/// @throws what load_trace and import_trace throw
[[nodiscard]] Trace load_own_trace(const std::string& name_or_path, const StepOptions& options);

/// The spec for a trace: the one asked for, else that of the GPU it was captured on, else
/// `fallback`. Standard error says which where the trace was captured, and at which clocks.
/// @param gpu  name or file; may be empty
[[nodiscard]] GpuSpec load_gpu_for_trace(const std::string& gpu, const Trace& trace,
                                         const std::string& file);

}  // namespace rubato
