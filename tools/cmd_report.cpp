#include "tools/command.hpp"
namespace rubato {
Action setup_report(CLI::App&) {
  return [](const RunContext&) { return ExitStatus::done; };
}
}  // namespace rubato
