#pragma once
// Runs, plans and experiments of a result database as a command line names them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "explorer/results/store.hpp"

namespace rubato {

/// Opens a database to read, and says what to know of one that may not be written to.
/// @throws as ResultStore::open_read_only
[[nodiscard]] ResultStore read_results(const std::string& path);

/// The database, where the first of a command's words names it instead of --db; then that word is
/// gone from them.
/// @param words  what is left is what the command asks for besides
/// @throws UsageError if neither says it
void take_database(std::vector<std::string>& words, std::string& db, std::size_t others);

/// Whether a word names a run: its number or "latest".
[[nodiscard]] bool is_run(std::string_view word);

/// The plan_id that --plan gives. @throws UsageError for anything but a number
[[nodiscard]] std::int64_t plan_named(const std::string& word);

/// "rank0.json and 7 more": the files of a captured run, one a line as they are stored.
[[nodiscard]] std::string files_text(std::string_view lines);

/// The experiment with that id, the beginning of one, or that name; "latest" is the one begun last.
/// @throws UsageError naming the experiments there are, if none or several match
[[nodiscard]] std::string experiment_id(const ResultStore& store, const std::string& name);

}  // namespace rubato
