#pragma once
// Traces in Kineto's form that hold no work of a GPU: whose they are.

#include <filesystem>

#include "common/error.hpp"

namespace rubato::kineto {

/// What to say of a file of events without device work: who wrote it, as far as its processes,
/// categories and arguments tell, and what to record instead. Reads the file once more.
[[nodiscard]] DataError no_device_work(const std::filesystem::path& path);

}  // namespace rubato::kineto
