#pragma once
// One run of the program, from words to what they ask for.

#include <atomic>

#include "common/error.hpp"

namespace rubato {

/// Parses the command line and runs its subcommand; --help and --version are printed.
/// @param interrupted  set from outside to stop early
/// @throws UsageError for words that are not understood, and what the subcommand throws
[[nodiscard]] ExitStatus run_program(int argc, char** argv, const std::atomic<bool>& interrupted);

}  // namespace rubato
