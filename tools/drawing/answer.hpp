#pragma once
// What a command answers, said first on its terminal and on top of its page: plain text, of which
// some stands out.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// A piece of a line; plain text, which may come from files.
struct AnswerPart {
  enum class Style {
    plain,
    lead,          ///< stands out on a page
    unbroken_lead  ///< as lead, on one line of the page
  };
  std::string text;
  Style style = Style::plain;
};

/// Lines, each of parts.
struct Answer {
  std::vector<std::vector<AnswerPart>> lines;

  /// Adds to the last line, or begins the first.
  Answer& say(std::string text, AnswerPart::Style style = AnswerPart::Style::plain);
  Answer& lead(std::string text) { return say(std::move(text), AnswerPart::Style::lead); }
  Answer& unbroken_lead(std::string text) {
    return say(std::move(text), AnswerPart::Style::unbroken_lead);
  }
  /// What is said from now on stands on a line of its own.
  Answer& next_line();
};

/// For a page: HTML; of no lines nothing.
[[nodiscard]] std::string answer_html(const Answer& answer);

/// For a terminal: what was asked, the answer's lines below it, and an empty line.
/// @param question  printable, without the end of its last line
[[nodiscard]] std::string answer_text(std::string_view question, const Answer& answer);

}  // namespace rubato
