#include "tools/commands/help/completion_scripts.hpp"

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rubato {

namespace {

using Visit = std::function<void(const CommandHelp&)>;

// Parents before children.
void for_each_command(const CommandHelp& command, const Visit& visit) {
  visit(command);
  for (const CommandHelp& inner : command.commands) for_each_command(inner, visit);
}

std::vector<std::string> names_of(const std::vector<CommandHelp>& commands) {
  std::vector<std::string> names;
  for (const CommandHelp& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> words_of(const std::vector<OptionHelp>& options) {
  std::vector<std::string> words;
  for (const OptionHelp& option : options) {
    if (!option.positional) words.insert(words.end(), option.names.begin(), option.names.end());
  }
  return words;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// `text` with `before` put before every character of `special`.
std::string escaped(const std::string& text, std::string_view special,
                    std::string_view before = "\\") {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += before;
    out += c;
  }
  return out;
}

// Inside single quotes of bash and zsh.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string zsh_function(const CommandHelp& command) {
  std::string name = "_" + command.path;
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
}

// One argument of _arguments, see zshcompsys(1).
std::string zsh_argument(const OptionHelp& option) {
  const std::string text = escaped(first_line(option.text), "[]:\\");
  std::string value;
  if (!option.value.empty()) {
    std::string action = "_files";
    if (!option.shipped.empty()) {  // the space: called with these arguments and no others
      action = fmt::format(" _rubato_shipped {}", fmt::join(option.shipped, " "));
    } else if (!option.choices.empty() && !option.between.empty()) {
      action = fmt::format("_values -s {} {} {}", option.between, option.value,
                           fmt::join(option.choices, " "));
    } else if (!option.choices.empty()) {
      action = fmt::format("({})", fmt::join(option.choices, " "));
    }
    value = fmt::format(":{}:{}", option.value, action);
  }
  if (option.positional) return quoted((option.repeated ? "*" : "") + value);
  std::string lines;
  for (const std::string& name : option.names) {
    if (!lines.empty()) lines += " \\\n    ";
    lines += quoted(fmt::format("{}{}[{}]{}", option.repeated ? "*" : "", name, text, value));
  }
  return lines;
}

std::string zsh_commands(const CommandHelp& command) {
  std::string names;
  std::string cases;
  for (const CommandHelp& inner : command.commands) {
    names += fmt::format("      {}\n", quoted(inner.name + ":" + first_line(inner.text)));
    cases += fmt::format("        {}) {} ;;\n", inner.name, zsh_function(inner));
  }
  return fmt::format(
      "  case $state in\n"
      "    command)\n"
      "      local -a commands=(\n{}      )\n"
      "      _describe command commands ;;\n"
      "    arguments)\n"
      "      case $line[1] in\n{}      esac ;;\n"
      "  esac\n",
      names, cases);
}

std::string zsh_body(const CommandHelp& command) {
  std::string arguments;
  for (const OptionHelp& option : command.options) arguments += " \\\n    " + zsh_argument(option);
  if (command.commands.empty())
    return fmt::format("{}() {{\n  _arguments -s{}\n}}\n", zsh_function(command), arguments);
  return fmt::format(
      "{}() {{\n"
      "  local curcontext=$curcontext state line\n"
      "  typeset -A opt_args\n"
      "  _arguments -C{} \\\n    '1:command:->command' '*::argument:->arguments'\n{}}}\n",
      zsh_function(command), arguments, zsh_commands(command));
}

// True in fish where the words typed so far lead to `command`.
std::string fish_condition(const CommandHelp& command) {
  std::string condition;
  std::size_t at = command.path.find(' ');
  while (at != std::string::npos) {
    const std::size_t end = command.path.find(' ', at + 1);
    if (!condition.empty()) condition += "; and ";
    condition += "__fish_seen_subcommand_from " + command.path.substr(at + 1, end - at - 1);
    at = end;
  }
  if (command.commands.empty()) return condition;
  if (!condition.empty()) condition += "; and ";
  return fmt::format("{}not __fish_seen_subcommand_from {}", condition,
                     fmt::join(names_of(command.commands), " "));
}

std::string fish_option(const OptionHelp& option, const std::string& start) {
  std::string line = start;
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (!option.value.empty()) line += " -r";
  if (!option.shipped.empty()) {
    line += fmt::format(" -a '{}'", fmt::join(option.shipped, " "));
  } else if (!option.choices.empty()) {
    const std::string words = fmt::format("{}", fmt::join(option.choices, " "));
    line += option.between.empty()
                ? fmt::format(" -f -a '{}'", words)
                : fmt::format(" -f -a '(__fish_append {} {})'", option.between, words);
  }
  return fmt::format("{} -d '{}'\n", line, escaped(first_line(option.text), "'\\"));
}

// A line of `case` for what follows an option.
std::string bash_values(const CommandHelp& command, const OptionHelp& option) {
  std::vector<std::string> patterns;
  for (const std::string& name : option.names)
    patterns.push_back(fmt::format("\"{} {}\"", command.path, name));
  std::string before;
  if (!option.between.empty())
    before = fmt::format(" case \"$current\" in *{0}*) before=\"${{current%{0}*}}{0}\" ;; esac",
                         option.between);
  return fmt::format("    {}) words=\"{}\" shipped=\"{}\"{} ;;\n", fmt::join(patterns, "|"),
                     fmt::join(option.choices, " "), fmt::join(option.shipped, " "),
                     before.empty() ? "" : ";" + before);
}

}  // namespace

std::string bash_completion(const CommandHelp& root) {
  std::vector<std::string> paths;
  std::string words;
  std::string values;
  for_each_command(root, [&](const CommandHelp& command) {
    if (&command != &root) paths.push_back(fmt::format("\"{}\"", command.path));
    std::string shipped;
    for (const OptionHelp& option : command.options) {
      if (option.positional) {
        shipped += fmt::format("{}", fmt::join(option.shipped, " "));
      } else if (!option.value.empty()) {
        values += bash_values(command, option);
      }
    }
    words += fmt::format("    \"{}\") options=\"{}\" commands=\"{}\" shipped=\"{}\" ;;\n",
                         command.path, fmt::join(words_of(command.options), " "),
                         fmt::join(names_of(command.commands), " "), shipped);
  });
  return fmt::format(
      "# bash completion for rubato, made by: rubato completion bash\n"
      "_rubato() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local path=rubato options=\"\" commands=\"\" shipped=\"\" words=\"\" before=\"\" i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case \"$path ${{COMP_WORDS[i]}}\" in\n"
      "      {}) path=\"$path ${{COMP_WORDS[i]}}\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$path\" in\n{}"
      "  esac\n"
      "  words=\"$commands\"\n"
      "  case \"$path $previous\" in\n{}"
      "    *) case \"$current\" in -*) words=\"$options\" shipped=\"\" ;; esac ;;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words $shipped\" -P \"$before\" -- "
      "\"${{current#\"$before\"}}\"))\n"
      "  if [ -n \"$shipped\" ]; then  # or a file\n"
      "    local IFS=$'\\n'\n"
      "    COMPREPLY+=($(compgen -f -- \"$current\"))\n"
      "    compopt -o filenames 2> /dev/null\n"
      "  fi\n"
      "  return 0\n"
      "}}\n"
      "complete -o bashdefault -o default -F _rubato rubato\n",
      fmt::join(paths, "|"), words, values);
}

std::string zsh_completion(const CommandHelp& root) {
  std::string script =
      "#compdef rubato\n# zsh completion for rubato, made by: rubato completion zsh\n\n"
      "_rubato_shipped() {\n  _alternative \"names:shipped name:($*)\" 'files:file:_files'\n}\n\n";
  for_each_command(root, [&](const CommandHelp& command) { script += zsh_body(command) + "\n"; });
  // Read from the function path it is the body of _rubato itself; sourced, it must register.
  return script +
         "if [ \"$funcstack[1]\" = \"_rubato\" ]; then _rubato \"$@\"; else compdef _rubato "
         "rubato; fi\n";
}

std::string fish_completion(const CommandHelp& root) {
  std::string script = "# fish completion for rubato, made by: rubato completion fish\n";
  for_each_command(root, [&](const CommandHelp& command) {
    const std::string start = fmt::format("complete -c rubato -n '{}'", fish_condition(command));
    for (const CommandHelp& inner : command.commands)
      script += fmt::format("{} -f -a {} -d '{}'\n", start, inner.name,
                            escaped(first_line(inner.text), "'\\"));
    for (const OptionHelp& option : command.options) {
      if (!option.positional) {
        script += fish_option(option, start);
      } else if (!option.shipped.empty()) {
        script += fmt::format("{} -a '{}'\n", start, fmt::join(option.shipped, " "));
      }
    }
  });
  return script;
}

}  // namespace rubato
