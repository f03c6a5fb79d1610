#include "common/process/interruption.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/file.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace rubato {
namespace {

// Each in a process of its own, since that is what a signal changes.
[[noreturn]] void in_order(bool right) { std::_Exit(right ? 0 : 1); }

TEST(Interruption, EndsWhatDoesNotLook) {
  const TemporaryFolder folder;
  EXPECT_EXIT(
      {
        handle_interruptions();
        const TemporaryFile temporary(folder / "x.csv");
        std::raise(SIGINT);
        while (true) ::pause();
      },
      testing::ExitedWithCode(130), "interrupted: ended early");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Interruption, TheSecondEndsAtOnce) {
  EXPECT_EXIT(
      {
        handle_interruptions();
        give_parts();
        std::raise(SIGTERM);
        std::raise(SIGINT);
        in_order(false);
      },
      testing::ExitedWithCode(130), "");
}

TEST(Interruption, WithoutPartsNothingIsWritten) {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", "older");
  EXPECT_EXIT(
      {
        handle_interruptions();
        FileWriter file(folder / "x.csv");
        file.write("half");
        std::raise(SIGINT);
        try {
          file.commit();
        } catch (const InterruptedError& error) {
          in_order(error.status() == ExitStatus::interrupted && must_end() && !is_part());
        }
        in_order(false);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(folder / "x.csv"), "older");
}

TEST(Interruption, PartsGoBesideTheOlderFile) {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", "older");
  EXPECT_EXIT(
      {
        handle_interruptions();
        give_parts();
        std::raise(SIGINT);
        in_order(is_part() && write_file(folder / "x.csv", "part") == folder / "x.partial.csv");
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(folder / "x.csv"), "older");
  EXPECT_EQ(read_file(folder / "x.partial.csv"), "part");
}

}  // namespace
}  // namespace rubato
