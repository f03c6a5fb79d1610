#include "tests/fuzz/fuzz.hpp"

#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include "common/text.hpp"

namespace rubato::fuzz {

namespace {

Outcome outcome = Outcome::refused;
std::string report_of_error;

// Beyond this nobody reads on: 20 lines of the length that ErrorList and Error allow.
constexpr std::size_t longest_report = 64 * 1024;

void check_report(const std::string& report) {
  require(report.size() <= longest_report, "the report of an error is short");
  require(report.ends_with('\n'), "the report of an error ends its line");
  for (const std::string_view line : split(report, '\n'))
    require(printable(line) == line, "the report of an error can be shown: " + printable(report));
}

// One file for the life of the process.
class Scratch {
 public:
  Scratch() {
    // Memory, where there is such a folder.
    const char* const folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string name = std::string(folder) + "/rubato_fuzz_XXXXXX";
    file_ = ::mkstemp(name.data());
    require(file_ >= 0, "a scratch file can be made");
    path_ = name;
  }
  ~Scratch() {
    ::close(file_);
    ::unlink(path_.c_str());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& write(std::string_view bytes) {
    require(::ftruncate(file_, 0) == 0, "the scratch file can be emptied");
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto wrote =
          ::pwrite(file_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      require(wrote > 0, "the scratch file can be written");
      done += static_cast<std::size_t>(wrote);
    }
    return path_;
  }

 private:
  int file_ = -1;
  std::filesystem::path path_;
};

}  // namespace

Outcome last_outcome() noexcept { return outcome; }
const std::string& last_report() noexcept { return report_of_error; }

int check(const std::uint8_t* data, std::size_t size,
          const std::function<void(std::string_view)>& read) {
  try {
    read({reinterpret_cast<const char*>(data), size});
    outcome = Outcome::accepted;
  } catch (const Error& error) {
    report_of_error = error.report();
    check_report(report_of_error);
    outcome = Outcome::refused;
  }
  return 0;
}

void broken(std::string_view law) {
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(law.size()), law.data());
  std::abort();
}

const std::filesystem::path& as_file(std::string_view bytes) {
  static Scratch scratch;
  return scratch.write(bytes);
}

}  // namespace rubato::fuzz
