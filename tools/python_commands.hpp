#pragma once
// Commands that the Python package runs: `rubato apply` is `python3 -m rubato apply` with the
// package that belongs to this program.

#include <span>
#include <string>
#include <string_view>

namespace rubato {

[[nodiscard]] bool is_python_command(std::string_view name);

/// Becomes python3, which finds the package where it was installed or built with this program, else
/// where python3 looks itself (a .deb, pip).
/// @param words  the command and all behind it
/// @throws IoError if python3 cannot be started
[[noreturn]] void run_python_command(std::span<const std::string> words);

}  // namespace rubato
