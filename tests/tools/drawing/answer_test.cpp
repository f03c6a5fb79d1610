#include "tools/drawing/answer.hpp"

#include <gtest/gtest.h>

#include "tools/drawing/page_parts.hpp"

namespace rubato {
namespace {

const std::string hostile = "<b>&lt; \"'&nbsp;\t";  // a name as it may stand in a file

Answer two_lines() {
  Answer answer;
  answer.say("a: ").unbroken_lead("energy -1 %").say(",").next_line();
  return answer.lead("b c").say(" on " + hostile);
}

TEST(Answer, StandsOnAPageAsHtml) {
  EXPECT_EQ(answer_html(two_lines()),
            "a: <b>energy&nbsp;-1&nbsp;%</b>,<br>"
            "<b>b c</b> on &lt;b&gt;&amp;lt; &quot;&#39;&amp;nbsp;\\x09");
  EXPECT_EQ(answer_html({}), "");
  EXPECT_EQ(answer_html(Answer().say("if it takes 1 us: 2 % ")),
            "if it takes 1&nbsp;us: 2&nbsp;% ");
}

TEST(Answer, IsPlainTextOnATerminal) {
  EXPECT_EQ(answer_text("on what", two_lines()),
            "on what\na: energy -1 %,\nb c on <b>&lt; \"'&nbsp;\\x09\n\n");
  EXPECT_EQ(answer_text("on what", {}), "on what\n\n");
}

TEST(Answer, OfNoLinesLeavesNoMarkOnAPage) {
  const std::string title = "title", subtitle = "on what";
  EXPECT_EQ(whole_page({title, subtitle, {}, ""}, "").find("class=\"answer\""), std::string::npos);
  EXPECT_NE(whole_page({title, subtitle, two_lines(), ""}, "")
                .find("<p class=\"answer\">" + answer_html(two_lines()) + "</p>"),
            std::string::npos);
}

}  // namespace
}  // namespace rubato
