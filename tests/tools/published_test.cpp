// Published experiments that are stopped on their way: no table of plans that were never found.

#include <atomic>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/expect_error.hpp"
#include "tools/commands/published/perseus2024.hpp"
#include "tools/commands/published/spaan2026.hpp"

namespace rubato {
namespace {

TEST(PublishedExperiments, StopWithoutATableWhenInterrupted) {
  const std::atomic<bool> stop = true;
  const RunContext context{.cancelled = &stop};
  expect_error<InterruptedError>([&] { (void)reproduce_perseus2024(context); },
                                 "interrupted before all plans were found");
  expect_error<InterruptedError>([&] { (void)reproduce_spaan2026(context); },
                                 "interrupted before all plans were found");
  try {
    (void)reproduce_spaan2026(context);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::interrupted);
  }
}

}  // namespace
}  // namespace rubato
