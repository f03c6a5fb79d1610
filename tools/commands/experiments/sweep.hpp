#pragma once
// Parts of rubato sweep that have files of their own.

#include "tools/commands/command.hpp"

namespace rubato {

void setup_sweep_slurm(CLI::App& app, Action& action);

}  // namespace rubato
