#include "tools/drawing/answer.hpp"

#include <utility>

#include "common/text.hpp"
#include "tools/drawing/page_parts.hpp"

namespace rubato {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A number stays with its unit.
std::string part_html(const AnswerPart& part) {
  const std::string text = page_text(part.text);
  std::string html;
  for (const char c : text) {
    const bool after_number = !html.empty() && is_digit(html.back());
    if (c == ' ' && (after_number || part.style == AnswerPart::Style::unbroken_lead)) {
      html += "&nbsp;";
    } else {
      html += c;
    }
  }
  return part.style == AnswerPart::Style::plain ? html : "<b>" + html + "</b>";
}

}  // namespace

Answer& Answer::say(std::string text, AnswerPart::Style style) {
  if (lines.empty()) lines.emplace_back();
  lines.back().push_back({std::move(text), style});
  return *this;
}

Answer& Answer::next_line() {
  lines.emplace_back();
  return *this;
}

std::string answer_html(const Answer& answer) {
  std::string html;
  for (const auto& line : answer.lines) {
    if (&line != &answer.lines.front()) html += "<br>";
    for (const AnswerPart& part : line) html += part_html(part);
  }
  return html;
}

std::string answer_text(std::string_view question, const Answer& answer) {
  std::string text = std::string(question) + '\n';
  for (const auto& line : answer.lines) {
    for (const AnswerPart& part : line) text += printable(part.text);
    text += '\n';
  }
  return text + '\n';
}

}  // namespace rubato
