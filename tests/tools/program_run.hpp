#pragma once
// The program as a user runs it, in a folder of its own.

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/temporary_folder.hpp"

namespace rubato {

struct Outcome {
  int status = -1;
  std::string text;  ///< standard output and error
};

class ProgramRun : public testing::Test {
 protected:
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    const std::string command =
        "cd '" + folder_.path().string() + "' && '" RUBATO_PROGRAM "' " + arguments + " 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    Outcome outcome;
    std::array<char, 4096> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
      outcome.text.append(buffer.data(), got);
    outcome.status = WEXITSTATUS(::pclose(pipe));
    return outcome;
  }

  void expect(const std::string& arguments, int status, std::string_view text) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(text), std::string::npos)
        << arguments << "\nexpected: " << text << "\nfound: " << outcome.text;
  }

  TemporaryFolder folder_;
};

}  // namespace rubato
