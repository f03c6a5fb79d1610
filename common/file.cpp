#include "common/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/process/interruption.hpp"

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

// What everybody may do with a file that is there.
std::optional<mode_t> mode_of(const std::filesystem::path& path) {
  constexpr mode_t permissions = 0777;
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return found.st_mode & permissions;
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

TemporaryFile::TemporaryFile(const std::filesystem::path& beside, std::string_view suffix,
                             unsigned mode) {
  make_folder_of(beside);
  constexpr int most_tries = 100;
  std::random_device random;
  for (int i = 0; i < most_tries && descriptor_ < 0; ++i) {
    path_ = beside.parent_path() / fmt::format("rubato-{:08x}{:08x}{}", random(), random(), suffix);
    constexpr int new_file = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    descriptor_ = ::open(path_.c_str(), new_file, mode_of(beside).value_or(mode));
    if (descriptor_ < 0 && errno != EEXIST) break;
  }
  if (descriptor_ < 0) fail(beside, "create", errno);
  place_ = remove_when_ended(path_);
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  forget_to_remove(place_);
  if (!path_.empty()) std::remove(path_.c_str());
}

void TemporaryFile::write(std::string_view text) {
  const File file(::fdopen(take_descriptor(), "wb"));
  if (!file || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0)
    fail(path_, "write", errno);
}

void TemporaryFile::become(const std::filesystem::path& target) {
  if (const auto mode = mode_of(target)) (void)::chmod(path_.c_str(), *mode);  // not as masked
  if (std::rename(path_.c_str(), target.c_str()) != 0) fail(target, "replace", errno);
  forget_to_remove(std::exchange(place_, -1));
  path_.clear();
}

std::filesystem::path partial_path(const std::filesystem::path& path) {
  std::filesystem::path part = path;
  return part.replace_extension(".partial" + path.extension().string());
}

FileWriter::FileWriter(const std::filesystem::path& path) : path_(path), shown_(path) {
  refuse_if_interrupted();
  if (path_ == "-") {
    shown_ = "standard output";
    file_ = stdout;
    return;
  }
  std::error_code none;  // of a target that is not there yet
  const std::filesystem::file_status target = std::filesystem::status(path, none);
  if (std::filesystem::exists(target) && !std::filesystem::is_regular_file(target) &&
      !std::filesystem::is_directory(target)) {
    file_ = std::fopen(path.c_str(), "wbe");
    if (file_ == nullptr) fail(path, "create", errno);
    return;
  }
  if (std::filesystem::is_symlink(path, none)) path_ = std::filesystem::weakly_canonical(path);
  part_.emplace(path_);
  file_ = ::fdopen(part_->take_descriptor(), "wb");
  if (file_ == nullptr) fail(path, "create", errno);
}

FileWriter::~FileWriter() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
}

void FileWriter::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size())
    fail_to_write(shown_, file_ == stdout);
}

void FileWriter::finish() {
  if (file_ == stdout) {
    if (std::fflush(file_) != 0) fail_to_write(shown_, true);
  } else if (std::fclose(std::exchange(file_, nullptr)) != 0) {
    fail_to_write(shown_, false);
  }
}

std::filesystem::path FileWriter::commit() {
  finish();
  if (!part_) return shown_;
  refuse_if_interrupted();
  const bool whole = !is_part();
  part_->become(whole ? path_ : partial_path(path_));
  return whole ? shown_ : partial_path(shown_);
}

std::filesystem::path write_file(const std::filesystem::path& path, std::string_view text) {
  FileWriter file(path);
  file.write(text);
  return file.commit();
}

}  // namespace rubato
