#pragma once
// What --help prints.

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace rubato {

/// Usage, words, options by group, examples: as wide as the terminal.
class HelpFormatter : public CLI::FormatterBase {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override;
};

/// Lines to type of a command, "trace gen"; none of a word that is no command.
[[nodiscard]] std::vector<std::string_view> examples_of(std::string_view command);

/// What `rubato help terms` says: words and signs of tables.
[[nodiscard]] std::string terms_text();

/// What `rubato` alone says: what one may have, and the command for it.
[[nodiscard]] std::string first_words();

}  // namespace rubato
