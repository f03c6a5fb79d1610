#pragma once
// Completion of a command line for the scripts in tools/packaging/completions.

#include <span>
#include <string>

namespace CLI {
class App;
}

namespace rubato {

/// What may stand where the last of `words` does: a line each, with a tab before what --help says
/// of it. ":files" is a line where a file's name may stand too.
/// @param words  what was typed behind the program's name; the last one may be empty or half a word
[[nodiscard]] std::string completions(const CLI::App& app, std::span<const std::string> words);

}  // namespace rubato
