#include "tools/terminal/progress_line.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {
namespace {

// What a terminal gets on both streams while `act` runs.
std::string on_terminal(const std::function<void()>& act) {
  int ours = -1, its = -1;
  EXPECT_EQ(::openpty(&ours, &its, nullptr, nullptr, nullptr), 0);
  std::fflush(stdout);
  const std::array kept{::dup(STDOUT_FILENO), ::dup(STDERR_FILENO)};
  ::dup2(its, STDOUT_FILENO);
  ::dup2(its, STDERR_FILENO);
  ::close(its);
  act();
  std::fflush(stdout);
  ::dup2(kept[0], STDOUT_FILENO);
  ::dup2(kept[1], STDERR_FILENO);
  ::close(kept[0]);
  ::close(kept[1]);
  std::array<char, 4096> read{};
  std::string shown;
  // Until the terminal is gone with the last stream on it.
  for (ssize_t n = 0; (n = ::read(ours, read.data(), read.size())) > 0;)
    shown.append(read.data(), static_cast<std::size_t>(n));
  ::close(ours);
  return shown;
}

constexpr std::chrono::milliseconds at_once{0};

TEST(ProgressLine, IsErasedBeforeAnythingElseIsShown) {
  OutputTable table({{"name"}});
  table.add_row({std::string("a")});
  struct Case {
    std::function<void()> act;
    std::string shown;
  };
  for (const Case& of :
       std::initializer_list<Case>{{[&] { print(table, OutputFormat::table); }, "name"},
                                   {[&] { print(table, OutputFormat::csv); }, "name"},
                                   {[] { print("text\n"); }, "text"},
                                   {[] { tell("note\n"); }, "note"},
                                   {[] { print_message("message"); }, "message"}}) {
    const std::string all = on_terminal([&] {
      ProgressLine line(at_once);
      line.show({.done = 1, .total = 2, .note = "work"});
      of.act();
    });
    EXPECT_TRUE(all.starts_with("\r\x1b[K1 of 2 (50 %)")) << all;
    const std::size_t erased = all.rfind("work\r\x1b[K");
    ASSERT_NE(erased, std::string::npos) << all;
    const std::size_t at = all.find(of.shown, erased);
    ASSERT_NE(at, std::string::npos) << all;
    EXPECT_EQ(all.find('\n', erased), all.find('\n', at)) << all;  // on a line of its own
    EXPECT_EQ(all.find("\x1b[K", at), std::string::npos) << all;   // which stays
  }
}

TEST(ProgressLine, ComesLateAndGoes) {
  EXPECT_EQ(on_terminal([] { ProgressLine(std::chrono::hours(1)).show({.done = 1, .total = 2}); }),
            "");
  EXPECT_TRUE(on_terminal([] {
                ProgressLine(at_once).show({.done = 1, .total = 2});
              }).ends_with("\r\x1b[K"));
}

TEST(ProgressLine, IsShownInANotebookToo) {
  const auto shown = [] {
    testing::internal::CaptureStderr();
    ProgressLine(at_once).show({.done = 1, .total = 2});
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(shown(), "");
  ::setenv("RUBATO_PROGRESS", "1", 1);
  EXPECT_TRUE(shown().starts_with("\r\x1b[K1 of 2 (50 %)"));
  ::unsetenv("RUBATO_PROGRESS");
}

}  // namespace
}  // namespace rubato
