#pragma once
// Options of all commands that read a sweep.

#include <string>
#include <vector>

#include "models/calibration/sweep_fit.hpp"

namespace rubato {

class CommandLine;
class Option;

/// Which file, and how its columns are named.
struct SweepOptions {
  std::string file, idle;
  std::vector<std::string> columns, where;
  bool keep_implausible = false;
  std::string missing = "leave-out";  ///< or "model": see MissingCells
};

/// What a table's description says, TOML: file (beside it), columns, where, keep_implausible,
/// missing. Of any other file: that file.
/// @throws IoError, DataError
[[nodiscard]] SweepOptions table_of(const std::string& path);

/// Adds --column, --where and --keep-implausible. `options` must outlive parsing.
void add_column_options(CommandLine& app, SweepOptions& options);

/// Adds SWEEP, --idle, --column, --where and --keep-implausible. `options` must
/// outlive parsing. @return SWEEP
Option* add_sweep_options(CommandLine& app, SweepOptions& options);

/// How to fit a model to the sweep.
struct FitOptions {
  double sigma = 0.01;
  std::vector<double> curve_core_mhz;
  bool power_only = false;
};

/// Adds --sigma, --curve-points and --power-only. `options` must outlive parsing.
void add_fit_options(CommandLine& app, FitOptions& options);
[[nodiscard]] SweepFitOptions fit_options(const FitOptions& options);

/// The file's columns as the reader takes them. @throws UsageError
[[nodiscard]] SweepColumns sweep_columns(const SweepOptions& options);

/// Reads the sweep and prints to standard error what was left out.
[[nodiscard]] Sweep load_sweep(const SweepOptions& options, const GpuSpec& spec);

/// The spec that was asked for, with a line on standard error where the sweep names another GPU;
/// without a name the one of the GPU that the sweep names, else of `fallback`.
/// @throws what load_gpu and load_gpu_of_devices throw
[[nodiscard]] GpuSpec load_gpu_for_sweep(const std::string& gpu, const SweepOptions& options);

}  // namespace rubato
