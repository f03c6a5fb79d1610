#include "tools/terminal/output.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/process/interruption.hpp"
#include "common/text.hpp"
#include "tools/command_line.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

// What goes into the file of --output once the command has ended. There is one for the process.
struct KeptOutput {
  std::string path, text;
};
KeptOutput kept;

// What was said of a part of an answer.
struct Part {
  bool printed = false, marked = false, told = false;
};
Part part;

// A JSON object, which says of a part that it is one.
std::string marked_object(std::string json) {
  if (!is_part()) return json;
  part.marked = true;
  return json.insert(json.find('{') + 1, "\n \"interrupted\": true,");
}

// Rows in a form for programs. An array of a part becomes an object, so that nobody takes it for
// the whole.
std::string marked_rows(std::string rows, OutputFormat format) {
  if (!is_part()) return rows;
  part.marked = true;
  switch (format) {
    case OutputFormat::json: return fmt::format("{{\"interrupted\": true, \"rows\": {}}}\n", rows);
    case OutputFormat::json_lines: return rows + "{\"interrupted\": true}\n";
    default: return rows + "# interrupted: a part of what was asked\n";
  }
}

}  // namespace

void add_format_options(CommandLine& app, OutputFormat& format) {
  auto* json = app.add_flag_callback(
      "--json", [&format] { format = OutputFormat::json; }, "Print JSON");
  auto* csv = app.add_flag_callback(
      "--csv", [&format] { format = OutputFormat::csv; }, "Print CSV");
  auto* lines = app.add_flag_callback(
      "--json-lines", [&format] { format = OutputFormat::json_lines; },
      "Print one JSON object per row");
  app.group(output_group, {"--json", "--csv", "--json-lines"});
  json->excludes(csv)->excludes(lines);
  csv->excludes(lines);
  if (app.knows("--output")) return;
  const auto keep = [&format](const std::string& path) {
    check_extension("--output", path, {".csv", ".json", ".jsonl"});
    if (path == "-") return;
    format = path.ends_with(".csv")    ? OutputFormat::csv
             : path.ends_with(".json") ? OutputFormat::json
                                       : OutputFormat::json_lines;
    kept = {path, ""};
  };
  app.add_word_callback("-o,--output", keep, "Write tables to FILE (.csv, .json, .jsonl)")
      ->group(output_group)
      ->excludes(json)
      ->excludes(csv)
      ->excludes(lines);
}

void end_output() {
  if (is_part() && part.printed) print("\nInterrupted: this is a part of what was asked.\n");
  if (is_part() && !part.told) tell("interrupted: what is finished is a part of what was asked\n");
  if (!kept.path.empty() && (!kept.text.empty() || !is_part())) write_output(kept.path, kept.text);
}

void print_tables(const std::vector<NamedTable>& tables, OutputFormat format, int schema) {
  switch (format) {
    case OutputFormat::json: {
      std::string json = render_json_object(tables);
      if (schema > 0) json.insert(json.find('{') + 1, fmt::format("\n \"schema\": {},", schema));
      return print(marked_object(std::move(json)));
    }
    case OutputFormat::json_lines:
    case OutputFormat::csv: return print(*tables.back().table, format);
    case OutputFormat::table: break;
  }
  for (const NamedTable& named : tables) {
    print(*named.table, format);
    print("\n");
  }
}

void tell_written(const std::filesystem::path& path) {
  if (path != "-" && path != "standard output") tell("wrote {}\n", printable(path.string()));
}

void write_output(const std::string& path, std::string_view text) {
  tell_written(write_file(path, text));
}

void check_extension(std::string_view option, const std::string& path,
                     std::initializer_list<std::string_view> known) {
  const auto ends = [&](std::string_view extension) { return path.ends_with(extension); };
  if (path == "-" || std::ranges::any_of(known, ends)) return;
  throw UsageError(fmt::format("{} is '{}'; expected a name that ends in {}", option,
                               printable(path), fmt::join(known, ", ")));
}

void tell_done(std::size_t done, std::size_t total, std::string_view what) {
  if (!is_part()) return;
  tell("interrupted: {} of {} {} done\n", done, total, what);
  part.told = true;
}

void print(std::string_view text) {
  refuse_if_interrupted();
  clear_progress();
  if (!kept.path.empty()) {
    kept.text += text;
    return;
  }
  if (::isatty(STDOUT_FILENO) != 1) {
    write_file("-", text);
    return;
  }
  std::string safe;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    safe += printable(text.substr(0, end));
    if (end < text.size()) safe += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  write_file("-", safe);
}

std::string answer_text(std::string_view question, std::string_view answer) {
  std::string text = std::string(question) + '\n';
  if (answer.empty()) return text + '\n';
  for (const std::string_view line : split(answer, '\n')) text += printable(line) + '\n';
  return text + '\n';
}

void print_notes(std::string_view text) { print(wrapped(text, line_width())); }

void print(const OutputTable& table, OutputFormat format, bool whole) {
  if (format != OutputFormat::table) return print(marked_rows(table.render(format), format));
  refuse_if_interrupted();
  clear_progress();
  part.printed = part.printed || is_part();
  // Its names are printable, its inks our own.
  write_file("-", whole ? table.whole_text(table_style()) : table.text(table_style()));
}

}  // namespace rubato
