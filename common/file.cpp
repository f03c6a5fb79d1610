#include "common/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "common/error.hpp"

namespace rubato {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action, int error) {
  const std::string hint = error == ENOENT   ? "check the spelling and the folder you are in"
                           : error == ENOSPC ? "free some space and run the command again"
                                             : "";
  throw IoError(fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error)),
                {.in = {}, .hint = hint});
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::size_t limit_bytes) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail(path, "open", errno);
  std::string text;
  constexpr std::size_t chunk_bytes = std::size_t{1} << 16;
  while (true) {
    const std::size_t before = text.size();
    text.resize(before + chunk_bytes);
    const std::size_t got = std::fread(text.data() + before, 1, chunk_bytes, file.get());
    text.resize(before + got);
    if (text.size() > limit_bytes) {
      throw IoError(fmt::format("{}: larger than {} bytes", path.string(), limit_bytes));
    }
    if (got < chunk_bytes) break;
  }
  if (std::ferror(file.get()) != 0) fail(path, "read", errno);
  return text;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  if (path == "-") {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
      fail("standard output", "write", errno);
    }
    return;
  }
  const std::filesystem::path part = path.string() + fmt::format(".part{}", ::getpid());
  File file(std::fopen(part.c_str(), "wb"));
  if (!file) fail(path, "create", errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  const int write_error = errno;
  const bool closed = std::fclose(file.release()) == 0;
  if (!written || !closed) {
    const int error = written ? errno : write_error;
    std::remove(part.c_str());
    fail(path, "write", error);
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) {
    std::remove(part.c_str());
    fail(path, "replace", error.value());
  }
}

}  // namespace rubato
