#pragma once
// Queries that have a row in every sound database.

#include <utility>
#include <vector>

#include "common/error.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// @throws DataError if there is none, as where rows refer to others that are gone
[[nodiscard]] inline std::vector<SqlValue> first_row(QueryResult found) {
  if (!found.rows.empty()) return std::move(found.rows.front());
  throw DataError("the database lacks a row that another one refers to",
                  {.in = {}, .hint = "it is damaged; restore a copy"});
}

}  // namespace rubato
