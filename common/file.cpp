#include "common/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

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

void make_folder_of(const std::filesystem::path& path) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error) fail(path, "make its folder", error.value());
}

// Whoever reads standard output may have seen enough, as head does. That is no error.
void fail_to_write(const std::filesystem::path& path, bool to_standard_output) {
  if (to_standard_output && errno == EPIPE) return;
  fail(path, "write", errno);
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

FileWriter::FileWriter(const std::filesystem::path& path) : path_(path) {
  if (path_ == "-") {
    path_ = "standard output";
    file_ = stdout;
    return;
  }
  make_folder_of(path_);
  part_ = path_.string() + fmt::format(".part{}", ::getpid());
  file_ = std::fopen(part_.c_str(), "wb");
  if (file_ == nullptr) fail(path_, "create", errno);
}

FileWriter::~FileWriter() {
  if (file_ == nullptr || part_.empty()) return;
  std::fclose(file_);
  std::remove(part_.c_str());
}

void FileWriter::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
    fail_to_write(path_, part_.empty());
}

void FileWriter::commit() {
  if (part_.empty()) {
    if (std::fflush(file_) != 0) fail_to_write(path_, part_.empty());
    return;
  }
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  const int close_error = errno;
  std::error_code error;
  if (closed) std::filesystem::rename(part_, path_, error);
  if (closed && !error) return;
  std::remove(part_.c_str());
  fail(path_, closed ? "replace" : "write", closed ? error.value() : close_error);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  FileWriter file(path);
  file.write(text);
  file.commit();
}

}  // namespace rubato
