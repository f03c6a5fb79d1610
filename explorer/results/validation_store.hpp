#pragma once
// Validations in a result database.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "models/validation/errors.hpp"

namespace rubato {

/// Stores one validation in the tables validations and validation_points; the database
/// is created where there is none. @return its validation_id
/// @throws IoError; nothing is stored then
std::int64_t store_validation(const std::filesystem::path& path, const GpuSpec& spec,
                              const Sweep& sweep, const ValidationOptions& options,
                              std::span<const ValidatedPoint> points, const std::string& command);

}  // namespace rubato
