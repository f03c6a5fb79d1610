#pragma once
// Captured runs as work of an experiment.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "explorer/experiments/axes.hpp"
#include "explorer/results/capture_rows.hpp"
#include "models/gpu/spec.hpp"
#include "traces/capture.hpp"

namespace rubato {

/// The files of one captured run, read once however many settings use them.
struct CapturedFiles {
  std::string name;  ///< file or pattern, as the experiment has it
  std::vector<std::string> files;
  std::vector<Capture> captures;   ///< one, or one of each rank
  std::string hash;                ///< of the files' bytes, in order
  std::vector<std::string> notes;  ///< what was left out or assumed of ranks, one line each

  /// Launches of all ranks.
  [[nodiscard]] std::size_t launches() const;
};

/// @param name    a file, or a pattern for the ranks of one run
/// @param folder  where relative names start, before the working directory
/// @throws IoError if it names no file; what import_capture and capture_graph throw
[[nodiscard]] CapturedFiles read_captured_files(const std::string& name,
                                                const std::filesystem::path& folder);

/// A captured run at the clocks it is taken to have run at.
struct CapturedWork {
  std::shared_ptr<const CapturedFiles> run;
  ClockPair clock;
  std::string clock_label;  ///< MEMORY/CORE
  ClockSource clock_source = ClockSource::gpu_default;
};

/// The run at the clocks that axis captured_clock of the point says, rounded to the nearest memory
/// state and step of the core clock.
/// @throws UsageError if it is no pair of clocks, or the core clock is out of the GPU's range
[[nodiscard]] CapturedWork captured_work(std::shared_ptr<const CapturedFiles> run,
                                         const GpuSpec& spec, const Point& point);

}  // namespace rubato
