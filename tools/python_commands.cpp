#include "tools/python_commands.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "common/error.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"

namespace rubato {

namespace {

constexpr std::array python_commands{"apply",  "measure", "energy", "watch",   "serve",
                                     "doctor", "latency", "match",  "capture", "restore"};

// The program's own file; empty where the system does not say.
std::filesystem::path own_path() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown);
}

// The folder of the package `rubato` beside this program: below the prefix that it was installed
// to, in the sources that it was built in, or the one that it lies in itself (a wheel). Empty:
// none.
std::filesystem::path package_folder(const std::filesystem::path& program) {
  const std::filesystem::path folder = program.parent_path();
  for (const std::filesystem::path& known :
       {folder / "../share/rubato/python", folder / "../../tools/python", folder / "../.."}) {
    std::error_code ignored;
    if (std::filesystem::exists(known / "rubato" / "__main__.py", ignored))
      return known.lexically_normal();
  }
  return {};
}

}  // namespace

bool is_python_command(std::string_view name) {
  return std::ranges::find(python_commands, name) != python_commands.end();
}

void run_python_command(std::span<const std::string> words) {
  const std::filesystem::path program = own_path();
  // Of a wheel's command `rubato`, whose Python has the package.
  const char* const named = std::getenv("RUBATO_PYTHON");
  const std::string python = named != nullptr && *named != '\0' ? named : "python3";
  ::unsetenv("RUBATO_PYTHON");
  if (const std::filesystem::path folder = package_folder(program);
      !folder.empty() && python == "python3") {
    const char* const other = std::getenv("PYTHONPATH");
    const bool has_other = other != nullptr && *other != '\0';
    ::setenv("PYTHONPATH", (folder.string() + (has_other ? fmt::format(":{}", other) : "")).c_str(),
             1);
  }
  if (!program.empty()) ::setenv("RUBATO", program.c_str(), 0);
  ::setenv("RUBATO_CALLED_AS", "rubato", 1);
  std::vector<std::string> line{python, "-m", "rubato"};
  line.insert(line.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  throw IoError(fmt::format("{} cannot be started: {}", python, std::strerror(errno)),
                {.in = {}, .hint = "'rubato " + words.front() + "' runs Rubato's Python package"});
}

// run_program runs such a line before it is parsed, unless words stand before the command.
Action setup_python(CommandLine& /*app*/) {
  return [](const RunContext&) -> ExitStatus {
    throw UsageError("give options behind the command",
                     {.in = {}, .hint = "rubato apply --help says which it has"});
  };
}

}  // namespace rubato
