#pragma once
// What --help says, as data: from it completions and manual pages are made, so that neither can say
// anything else. Start here; completion_scripts.hpp and manual_page.hpp turn it into text,
// completion.cpp and man.cpp print that.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rubato {

/// An option, a flag or a positional argument of a command.
struct OptionHelp {
  std::vector<std::string> names;  ///< with dashes: "-o", "--output"; of a positional its one name
  std::string value;               ///< "FLOAT"; empty: a flag
  std::vector<std::string> choices;  ///< all values it takes, where that is a fixed list
  std::vector<std::string> shipped;  ///< names it takes besides files
  std::string between;               ///< what several values in one word have between them
  std::string default_value;         ///< as text, empty: none
  std::string text;
  std::string group;  ///< heading in --help, "Options" unless set
  bool positional = false;
  bool repeated = false;  ///< takes several values
  bool required = false;
};

/// A command with everything below it.
struct CommandHelp {
  std::string name;  ///< "run"
  std::string path;  ///< "rubato sweep run"
  std::string text;
  std::string footer;  ///< remarks and examples
  std::vector<OptionHelp> options;
  std::vector<CommandHelp> commands;
};

/// Whole tree below `app`, in the order of --help; hidden options are left out.
/// @param path  words to type for `app` itself
[[nodiscard]] CommandHelp describe(const CLI::App& app, const std::string& path);

}  // namespace rubato
