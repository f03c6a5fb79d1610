#pragma once
// Files of tests.

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace rubato {

/// A folder that nobody else has, since tests run beside each other, and that is removed in the
/// end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("rubato_test_" + std::to_string(::getpid()) + "_" + std::to_string(++made));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

  /// Writes a file. @return where it is
  [[nodiscard]] std::filesystem::path file(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// Tests of what is read from files.
class FileTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path file(const std::string& name, const std::string& text) const {
    return folder_.file(name, text);
  }

  TemporaryFolder folder_;
};

}  // namespace rubato
