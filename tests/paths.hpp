#pragma once
// Where the tests find the project and its data. Compiled once (paths.cpp): as
// definitions on the command line they would make every test file depend on where the clone lies.

#include <filesystem>
#include <string>

namespace rubato {

/// The root of the project.
[[nodiscard]] const std::filesystem::path& source_dir();

/// Numbers that specs were fitted to: a file or folder below models/data/measured.
[[nodiscard]] std::filesystem::path measured_data(const std::string& name);

}  // namespace rubato
