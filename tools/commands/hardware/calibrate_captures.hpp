#pragma once
// rubato calibrate --captures: kernels of one step from captures of it at several clocks.

#include <optional>
#include <string>
#include <vector>

#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "traces/import_options.hpp"
#include "traces/power_log.hpp"

namespace rubato {

struct CaptureCalibration {
  std::vector<std::string> captures;  ///< FILE or FILE@MEMORY/CORE or FILE@CORE
  std::vector<std::string> power;     ///< logs of the captures, in their order
  PowerLogOptions log;
  std::optional<double> power_zone_h;
  ImportOptions import;
  std::string gpu, out = "-", name, title;
  OutputFormat format = OutputFormat::table;
};

/// Writes a spec whose kernels are those of the step.
[[nodiscard]] ExitStatus calibrate_captures(const CaptureCalibration& asked);

}  // namespace rubato
