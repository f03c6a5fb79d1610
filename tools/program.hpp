#pragma once
// One run of the program, from words to what they ask for.

#include "common/error.hpp"

namespace rubato {

/// Parses the command line and runs its subcommand; --help and --version are printed.
/// @throws UsageError for words that are not understood, and what the subcommand throws;
/// InterruptedError
///         where the user asked to stop a command that gives no parts
[[nodiscard]] ExitStatus run_program(int argc, char** argv);

}  // namespace rubato
