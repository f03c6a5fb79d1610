#pragma once
// Options of all commands that read a sweep.

#include <string>
#include <vector>

#include "models/calibration/sweep.hpp"

namespace rubato {

class CommandLine;

/// Which file, and how its columns are named.
struct SweepOptions {
  std::string file, idle;
  std::vector<std::string> columns, where;
  bool keep_implausible = false;
};

/// Adds SWEEP, --idle, --column, --where and --keep-implausible. `options` must
/// outlive parsing.
void add_sweep_options(CommandLine& app, SweepOptions& options);

/// The file's columns as the reader takes them. @throws UsageError
[[nodiscard]] SweepColumns sweep_columns(const SweepOptions& options);

/// Reads the sweep and prints to standard error what was left out.
[[nodiscard]] Sweep load_sweep(const SweepOptions& options, const GpuSpec& spec);

}  // namespace rubato
