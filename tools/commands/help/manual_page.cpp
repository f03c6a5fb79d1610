#include "tools/commands/help/manual_page.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

namespace rubato {

namespace {

// Text without meaning to roff: a hyphen would be set as a dash, quotes and accents as typographic
// ones.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      case '"': out += "\\(dq"; break;
      default: out += c;
    }
  }
  return out.starts_with(".") ? "\\&" + out : out;
}

std::string bold(const std::string& text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + plain(text) + "\\fR"; }

// A footer of --help: prose, then a line that begins with "Example" and indented commands.
struct Remarks {
  std::string prose;
  std::string exit_status;
  std::string examples;
};

Remarks remarks_of(const std::string& footer) {
  Remarks remarks;
  std::istringstream lines(footer);
  bool in_status = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Exit status")) in_status = true;
    if (const std::string title = "Exit status: "; line.starts_with(title))
      line.erase(0, title.size());
    if (line.empty() || line.starts_with("Example")) in_status = false;
    if (line.starts_with("  ")) {
      remarks.examples += plain(line.substr(2)) + "\n";
    } else if (line.starts_with("Example")) {
      continue;
    } else if (!line.empty()) {
      (in_status ? remarks.exit_status : remarks.prose) += plain(line) + "\n";
    }
  }
  return remarks;
}

std::string section(std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format(".SH {}\n{}", title, body);
}

std::string example_block(const std::string& examples) {
  return examples.empty() ? "" : ".EX\n" + examples + ".EE\n";
}

std::string synopsis(const CommandHelp& command) {
  if (!command.commands.empty()) {
    std::string lines;
    for (const CommandHelp& inner : command.commands) {
      if (!lines.empty()) lines += ".br\n";
      lines += synopsis(inner);
    }
    return lines;
  }
  std::string line = bold(command.path);
  bool any_option = false;
  for (const OptionHelp& option : command.options) any_option |= !option.positional;
  if (any_option) line += " [" + italic("OPTIONS") + "]";
  for (const OptionHelp& option : command.options) {
    if (!option.positional) continue;
    const std::string word = italic(option.names.front()) + (option.repeated ? "..." : "");
    line += option.required ? " " + word : " [" + word + "]";
  }
  return line + "\n";
}

std::string option_entry(const OptionHelp& option) {
  std::string head;
  for (const std::string& name : option.names) {
    if (!head.empty()) head += ", ";
    head += option.positional ? italic(name) : bold(name);
  }
  if (!option.positional && !option.value.empty())
    head += " " + italic(option.value) + (option.repeated ? "..." : "");
  std::string more;
  for (const std::string& choice : option.choices)
    more += (more.empty() ? " One of " : ", ") + bold(choice);
  if (!more.empty()) more += ".";
  if (!option.default_value.empty()) more += " Default: " + bold(option.default_value) + ".";
  if (option.required && !option.positional) more += " Required.";
  std::string text = plain(option.text);
  if (!more.empty() && !text.empty() && !text.ends_with(".")) text += ".";
  return fmt::format(".TP\n{}\n{}{}\n", head, text, text.empty() ? more.erase(0, 1) : more);
}

// Arguments first, then the options by group, as in --help.
std::string options(const CommandHelp& command) {
  std::vector<std::string> groups;
  std::string body;
  for (const OptionHelp& option : command.options) {
    if (option.positional) {
      body += option_entry(option);
    } else if (std::ranges::find(groups, option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string& group : groups) {
    if (group != "Options") body += fmt::format(".PP\n{}:\n", plain(group));
    for (const OptionHelp& option : command.options) {
      if (!option.positional && option.group == group) body += option_entry(option);
    }
  }
  return body;
}

std::string reference(const CommandHelp& command) {
  return fmt::format(".BR {} (1)", plain(manual_name(command)));
}

std::string see_also(const CommandHelp& root, const CommandHelp& command) {
  std::string lines = &root == &command ? "" : reference(root) + "\n";
  if (&root == &command) {
    for (const CommandHelp& other : root.commands) {
      if (!lines.empty()) lines.insert(lines.size() - 1, ",");
      lines += reference(other) + "\n";
    }
  }
  return lines;
}

// What a command with further ones below it has: a section for each of those.
std::string command_sections(const CommandHelp& command) {
  std::string text;
  for (const CommandHelp& inner : command.commands) {
    const Remarks remarks = remarks_of(inner.footer);
    text += fmt::format(".SH {}\n{}.\n", plain(inner.path), plain(inner.text));
    if (!remarks.prose.empty()) text += ".PP\n" + remarks.prose;
    if (!remarks.exit_status.empty()) text += ".PP\n" + remarks.exit_status;
    text += options(inner);
    if (!remarks.examples.empty()) text += ".PP\nExample:\n.PP\n" + example_block(remarks.examples);
  }
  return text;
}

std::string command_list(const CommandHelp& root) {
  std::string text;
  for (const CommandHelp& command : root.commands) {
    text += fmt::format(".TP\n.BR {} (1)\n{}\n", plain(manual_name(command)), plain(command.text));
  }
  return text;
}

}  // namespace

std::string manual_name(const CommandHelp& command) {
  std::string name = command.path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string manual_page(const CommandHelp& root, const CommandHelp& command,
                        const std::string& version) {
  const bool whole = &root == &command;
  const Remarks remarks = remarks_of(command.footer);
  std::string title = manual_name(command);
  std::ranges::transform(title, title.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  std::string description = command.text;
  std::string name = description.substr(0, description.find('\n'));
  if (const std::string own = "Rubato: "; name.starts_with(own)) name = name.substr(own.size());

  std::string page =
      fmt::format(".\\\" Made by: rubato man {}\n.TH {} 1 \"\" \"rubato {}\" \"Rubato\"\n",
                  whole ? "" : command.name, plain(title), plain(version));
  page += section("NAME", fmt::format("{} \\- {}\n", plain(manual_name(command)), plain(name)));
  page += section("SYNOPSIS", whole ? fmt::format("{} {} [{}]...\n", bold("rubato"),
                                                  italic("COMMAND"), italic("ARGUMENT"))
                                    : synopsis(command));
  page += section("DESCRIPTION", plain(description) + (whole ? "" : ".") + "\n" +
                                     (remarks.prose.empty() ? "" : ".PP\n" + remarks.prose));
  if (whole) page += section("COMMANDS", command_list(root));
  page += section("OPTIONS", options(command));
  if (!whole) page += command_sections(command);
  page += section("EXIT STATUS", remarks.exit_status);
  page += section("EXAMPLES", example_block(remarks.examples));
  page += section("SEE ALSO", see_also(root, command));
  return page;
}

}  // namespace rubato
