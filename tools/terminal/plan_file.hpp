#pragma once
// Plan files as commands write them.

#include <string>

#include "explorer/plan/plan_file.hpp"

namespace rubato {

/// Writes the file; unless it goes to standard output, says what it promises and what plays it.
/// @throws IoError as write_file
void write_plan_file(const std::string& path, const PlanFile& file);

}  // namespace rubato
