#include "common/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/suggest.hpp"

namespace rubato {
namespace {

TEST(Printable, ShowsControlCharactersInsteadOfObeyingThem) {
  EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // C1: some terminals obey it
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(printable("größe 25 µs"), "größe 25 µs");
}

RC_GTEST_PROP(Printable, LeavesNoControlByte, (const std::string& text)) {
  for (const char c : printable(text)) {
    RC_ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  }
}

TEST(Suggest, FindsTheNearestName) {
  const std::vector<std::string> known{"kernel", "pass", "iteration"};
  EXPECT_EQ(nearest("kernal", known), "kernel");
  EXPECT_EQ(nearest("kenrel", known), "kernel");  // a swap counts once
  EXPECT_FALSE(nearest("clock", known));
  EXPECT_EQ(did_you_mean("clock", known), "; expected one of kernel, pass, iteration");
}

TEST(Text, IsOneWordToAShell) {
  EXPECT_EQ(shell_word("runs/r-1.db"), "runs/r-1.db");
  EXPECT_EQ(shell_word("my runs.db"), "'my runs.db'");
  EXPECT_EQ(shell_word("it's; rm -rf $HOME"), "'it'\\''s; rm -rf $HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Suggest, NamesThatHoldAPartAreTheCandidates) {
  const std::vector<std::string> known{"a100-sxm4-80gb", "a100-pcie-80gb", "a40", "h100-sxm5"};
  EXPECT_EQ(did_you_mean("A100", known), "; did you mean one of a100-sxm4-80gb, a100-pcie-80gb?");
  EXPECT_EQ(did_you_mean("a100-sxm4", known), "; did you mean 'a100-sxm4-80gb'?");
  EXPECT_EQ(did_you_mean("a41", known), "; did you mean 'a40'?");  // nearest, since none holds it
  EXPECT_EQ(did_you_mean("0", known),
            "; expected one of a100-sxm4-80gb, a100-pcie-80gb, a40, h100-sxm5");
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndZeroOnlyForEqualWords,
              (const std::string& a, const std::string& b)) {
  RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
  RC_ASSERT((edit_distance(a, b) == 0) == (a == b));
  RC_ASSERT(edit_distance(a, b) <= std::max(a.size(), b.size()));
}

}  // namespace
}  // namespace rubato
