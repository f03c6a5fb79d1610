#include "tools/terminal/stored_runs.hpp"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

// A name as a message has it, cut to 100 bytes.
std::string short_name(std::string text) {
  constexpr std::size_t most = 100;
  if (text.size() > most) text = text.substr(0, most - 3) + "...";
  return text;
}

}  // namespace

ResultStore read_results(const std::string& path) {
  ResultStore store = ResultStore::open_read_only(path);
  if (!store.note().empty()) tell("note: {} {}\n", printable(path), store.note());
  return store;
}

void take_database(std::vector<std::string>& words, std::string& db, std::size_t others) {
  if (words.size() > others) {
    db = words.front();
    words.erase(words.begin());
  }
  if (words.size() > others)
    throw UsageError(fmt::format("'{}' is one word too many", printable(words.back())));
  if (db.empty())
    throw UsageError("which result database?",
                     {.in = {},
                      .hint = "name it first, or with --db; 'rubato explore ... --db results.db' "
                              "makes one"});
}

bool is_run(std::string_view word) { return word == "latest" || parse_count(word).has_value(); }

std::int64_t plan_named(const std::string& word) {
  const auto number = parse_count(word);
  if (!number || *number == 0 || *number > std::uint64_t{1} << 62U)
    throw UsageError(fmt::format("--plan is '{}'; expected a plan_id", printable(word)));
  return static_cast<std::int64_t>(*number);
}

std::string files_text(std::string_view lines) {
  const std::vector<std::string_view> files = split(lines, '\n');
  std::string text(files.front());
  if (files.size() > 1) text += fmt::format(" and {} more", files.size() - 1);
  return text;
}

std::string experiment_id(const ResultStore& store, const std::string& name) {
  const QueryResult found =
      name == "latest"
          ? store.query(
                "SELECT experiment_id FROM experiments ORDER BY first_run_utc DESC, experiment_id "
                "LIMIT 1")
          : store.query(
                "SELECT experiment_id FROM experiments WHERE name = ?1 OR "
                "substr(experiment_id, 1, length(?1)) = ?1 ORDER BY first_run_utc, experiment_id",
                {name});
  if (found.rows.size() == 1) return value_as<std::string>(found.rows.front().front());
  const QueryResult all =
      store.query("SELECT substr(experiment_id, 1, 8) || ' ' || name FROM experiments ORDER BY 1");
  std::string list;
  for (const auto& row : all.rows)
    list += (list.empty() ? "" : ", ") + short_name(printable(value_as<std::string>(row.front())));
  throw UsageError(
      fmt::format("{} experiment '{}'",
                  found.rows.empty() ? "there is no" : "there is more than one",
                  short_name(printable(name))),
      {.in = {},
       .hint = list.empty() ? "the database has no experiments; 'rubato experiment run' stores one"
                            : "the database has: " + list});
}

}  // namespace rubato
