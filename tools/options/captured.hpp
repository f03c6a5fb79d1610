#pragma once
// Options of commands that take what was captured: which part of it, and the clocks it ran at.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models/gpu/clock_pair.hpp"
#include "models/gpu/spec.hpp"
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
};

/// Adds --captured-clock, --power, --power-gpu and --power-period. `options` must outlive parsing.
/// @return --power, for options that need it
Option* add_captured_clock_options(CommandLine& app, CapturedClockOptions& options);

/// "1593/1410": medians over samples with more than half of the log's power, in which the GPU is
/// busy; "auto" for a clock that the log does not have. Nothing if it has no core clock.
[[nodiscard]] std::optional<std::string> logged_clock(const PowerLog& log);

/// read_power_log(), with a note on standard error for each kind of line that was left out.
[[nodiscard]] PowerLog read_told_power_log(const std::filesystem::path& path,
                                           const PowerLogOptions& options);

/// What --captured-clock says, else the log's, for commands that want no more of a log.
/// @throws UsageError if both are given; what read_power_log throws
[[nodiscard]] std::optional<std::string> captured_clock_label(const CapturedClockOptions& options);

/// Which step of a capture, and how damage is taken.
struct StepOptions {
  std::string step;  ///< its name or its position from 0; empty: the whole capture
  bool partial = false;
};

/// Adds --step and --partial.
void add_step_options(CommandLine& app, StepOptions& options);

/// Whether that is a file of a capture: no shipped name, and no trace of ours.
[[nodiscard]] bool names_capture(const std::string& name_or_path);

/// A trace of ours by shipped name or file, plain or gzip.
/// @throws what load_trace and import_trace throw
[[nodiscard]] Trace load_own_trace(const std::string& name_or_path, const StepOptions& options);

/// The spec for a trace: the one asked for, else that of the GPU it was captured on, else
/// `fallback`. Standard error says which where the trace was captured, and at which clocks.
/// @param gpu  name or file; may be empty
[[nodiscard]] GpuSpec load_gpu_for_trace(const std::string& gpu, const std::string& fallback,
                                         const Trace& trace, const std::string& file);

}  // namespace rubato
