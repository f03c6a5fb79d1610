#include "tools/drawing/page_parts.hpp"

#include <gtest/gtest.h>

namespace rubato {
namespace {

TEST(TerminalText, HasNeitherTagsNorEntities) {
  EXPECT_EQ(terminal_text("a: <b>-1&nbsp;%</b>,<br>b<br>\nc"), "a: -1 %,\nb\nc\n\n");
  const std::string name = "<b>&lt; \"'&nbsp;";  // as it may stand in a file
  EXPECT_EQ(terminal_text(page_text(name)), name + "\n\n");
  EXPECT_EQ(terminal_text(""), "");
}

}  // namespace
}  // namespace rubato
