#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/process/interruption.hpp"
#include "explorer/results/merge.hpp"
#include "explorer/results/merge_references.hpp"
#include "explorer/results/merge_tables.hpp"
#include "explorer/results/provenance.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

namespace {

// What SQLite put beside a database.
void remove_beside(const std::filesystem::path& path) {
  std::error_code ignored;
  for (const char* suffix : {"-wal", "-shm", "-journal"})
    std::filesystem::remove(path.string() + suffix, ignored);
}

std::int64_t number(const SqlConnection& connection, std::string_view sql) {
  SqlStatement statement(connection, sql);
  return statement.next() ? value_as<std::int64_t>(statement.value(0)) : 0;
}

// Whatever users added to a file stays there.
bool has_our_tables_only(const SqlConnection& connection) {
  std::set<std::string, std::less<>> known{"cells", "cell_rows", "merges", "cells_of_nobody"};
  for (const MergedTable& table : merged_tables) known.emplace(table.name);
  SqlStatement names(connection,
                     "SELECT name FROM sqlite_schema WHERE type IN ('table', 'trigger')");
  while (names.next()) {
    const std::string name = value_as<std::string>(names.value(0));
    if (!name.starts_with("sqlite_") && !known.contains(name)) return false;
  }
  return true;
}

// Checks a file copied whole as merge() checks the rows that it copies.
void refuse_broken_copy(const std::filesystem::path& copy, const std::filesystem::path& source) {
  SqlConnection nothing(":memory:", SqlConnection::Mode::create);
  SqlStatement(nothing, "ATTACH ? AS source").run(copy.string());
  refuse_broken_references(nothing, source);
  refuse_missing_cells(nothing, source);
}

MergeCounts counts_of_copy(const SqlConnection& connection) {
  MergeCounts counts;
  counts.new_runs = number(connection, "SELECT count(*) FROM runs");
  counts.new_plans = number(connection, "SELECT count(*) FROM plans");
  counts.new_measurements = number(connection, "SELECT count(*) FROM measurements");
  return counts;
}

}  // namespace

MergeTarget::MergeTarget(std::filesystem::path path) : path_(std::move(path)) {
  if (std::filesystem::exists(path_)) {
    connection_ = open_result_database(path_);
    return;
  }
  begin_anew();
}

void MergeTarget::begin_anew() {
  if (made_) remove_beside(made_->path());
  made_.emplace(path_, ".merging");
  ::close(made_->take_descriptor());  // or closing it later would take SQLite's locks
}

MergeTarget::~MergeTarget() {
  try {
    if (!must_end()) finish();
  } catch (const Error&) {
    // Whoever wants to know calls finish().
  }
  connection_.reset();
  if (made_) remove_beside(made_->path());
}

// A file copied whole has all rows of the source, except the table merges: the source's own
// history.
MergeCounts MergeTarget::take_first(const std::filesystem::path& source) {
  bool copied = false;
  {
    const SqlConnection whole(source, SqlConnection::Mode::read_only);
    if (has_our_tables_only(whole)) {
      SqlConnection copy(made_->path(), SqlConnection::Mode::create);
      copy.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
      whole.copy_to(copy);
      copied = true;
    }
  }
  if (copied) refuse_broken_copy(made_->path(), source);
  connection_ = open_result_database(made_->path());
  // Rolling back is for sources that are refused, not for power cuts: nobody sees the file yet.
  connection_->execute("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF");
  if (!copied) return merge(*connection_, path_, source);
  connection_->execute("DELETE FROM merges");
  const MergeCounts counts = counts_of_copy(*connection_);
  record_merge(*connection_, source, counts);
  return counts;
}

MergeCounts MergeTarget::take(const std::filesystem::path& source) {
  if (connection_) return merge(*connection_, path_, source);
  check_result_database(source);
  try {
    return take_first(source);
  } catch (...) {
    connection_.reset();
    begin_anew();
    throw;
  }
}

void MergeTarget::finish() {
  if (!connection_) return;
  refuse_if_interrupted();
  if (!made_) {
    connection_.reset();
    return;
  }
  // Changing the journal mode waits for the disk, and for all that was written before.
  connection_->execute("PRAGMA synchronous = FULL");
  connection_->use_write_ahead_log();
  connection_.reset();
  std::error_code failed;
  std::filesystem::create_hard_link(made_->path(), path_, failed);  // never over what is there
  if (failed && !std::filesystem::exists(path_)) {  // a file system without such links
    made_->become(path_);
  } else if (failed) {  // somebody else made it meanwhile
    SqlConnection other = open_result_database(path_);
    (void)merge(other, path_, made_->path());
  }
  remove_beside(made_->path());
  made_.reset();
}

}  // namespace rubato
