#pragma once
// What commands print: on standard output, or in the file that --output names.

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

class CommandLine;

/// Adds --json, --json-lines and --csv, and --output unless there is one: a file for what is
/// printed, whose name says the format. The referenced format must outlive parsing.
void add_format_options(CommandLine& app, OutputFormat& format);

/// Writes tables to standard output. JSON: one document with every table. JSON lines and CSV: the
/// last table. Text: all, with an empty line after each.
/// @param schema  number of the JSON document's form, its first member; 0: it has none
void print_tables(const std::vector<NamedTable>& tables, OutputFormat format, int schema = 0);

/// Says on standard error that a file or folder was written, or a part of what was asked; nothing
/// of
/// "-".
void tell_written(const std::filesystem::path& path);

/// Writes a file that was asked for and says so on standard error; "-" is standard output.
/// @throws IoError as write_file
void write_output(const std::string& path, std::string_view text);

/// @throws UsageError if the file's name ends in none of these, such as ".html"; "-" may be
/// anything
void check_extension(std::string_view option, const std::string& path,
                     std::initializer_list<std::string_view> known);

/// Where Ctrl-C ended the command, says how much of what was asked was done.
void tell_done(std::size_t done, std::size_t total, std::string_view what);

/// Ends what was printed: says of a part that it is one, and writes the file that --output names.
/// @throws as write_file
void end_output();

/// Writes to standard output, or keeps it for --output; on a terminal every control character is
/// made visible. After Ctrl-C JSON and CSV say that they are a part of what was asked.
/// @throws IoError if it is closed or the disk is full; InterruptedError if the user asked to stop
///         a command that gives no parts
void print(std::string_view text);

/// For a terminal: what was asked, the answer's lines below it, and an empty line. What stands
/// between the ends of lines is made printable.
/// @param question  printable, without the end of its last line
[[nodiscard]] std::string answer_text(std::string_view question, std::string_view answer);

/// Lines below a table, wrapped to the width that tables have; what begins with a space, such as
/// lines to type, is left whole.
void print_notes(std::string_view text);

/// A table as the terminal shows it, JSON, JSON lines or CSV.
/// @param whole  no column may be left out (OutputTable::whole_text)
void print(const OutputTable& table, OutputFormat format, bool whole = false);

}  // namespace rubato
