#pragma once
// Runs, plans and experiments of a result database as a command line names them.

#include <cstdint>
#include <string>
#include <string_view>

#include "explorer/results/store.hpp"

namespace rubato {

/// Opens a database to read, and says what to know of one that may not be written to.
/// @throws as ResultStore::open_read_only
[[nodiscard]] ResultStore read_results(const std::string& path);

/// A plan as a command line names it.
struct PlanName {
  bool captured = false;  ///< graph_plan_id of a captured run, else plan_id
  std::int64_t id = 0;
};

/// "12", or "graph:12" of a captured run. @throws UsageError naming --plan for anything else
[[nodiscard]] PlanName plan_named(const std::string& word);

/// "rank0.json and 7 more": the files of a captured run, one a line as they are stored.
[[nodiscard]] std::string files_text(std::string_view lines);

/// The newest run of a database. @throws UsageError if there is none
[[nodiscard]] std::int64_t latest_run(const ResultStore& store);

/// The experiment with that id, the beginning of one, or that name; "latest" is the one begun last.
/// @throws UsageError naming the experiments there are, if none or several match
[[nodiscard]] std::string experiment_id(const ResultStore& store, const std::string& name);

/// @throws UsageError naming the runs there are, if `run` is not one of them
void require_run(const ResultStore& store, std::int64_t run);

}  // namespace rubato
