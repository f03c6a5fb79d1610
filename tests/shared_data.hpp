#pragma once
// Measured data that is not part of the project: tests that need it skip
// without it.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/paths.hpp"

namespace rubato {

inline std::filesystem::path shared_data(const std::string& name) {
  return shared_dir() / "data" / name;
}

}  // namespace rubato

/// First line of a test that reads shared data.
#define RUBATO_NEEDS_SHARED(name)                          \
  if (!std::filesystem::exists(rubato::shared_data(name))) \
  GTEST_SKIP() << "measured data '" << (name) << "' is not here"
