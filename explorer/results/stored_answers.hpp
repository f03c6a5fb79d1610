#pragma once
// Answers in a result database: plans with what makes them contenders, and which of them are named.

#include <cstdint>
#include <string>
#include <vector>

#include "common/sqlite.hpp"
#include "explorer/plan/answer.hpp"

namespace rubato {

/// A family of tables.
enum class RunKind { trace, capture, pipeline };

/// SQL of the plans of a run (?) that were asked for, and their keys: rows for stored_contender().
[[nodiscard]] std::string contenders_sql(RunKind kind);
[[nodiscard]] Contender stored_contender(const std::vector<SqlValue>& row);

/// Keeps what a plan is as a contender, in an open transaction.
void store_contender(const SqlConnection& connection, RunKind kind, std::int64_t plan_id,
                     const Contender& plan);

/// Chooses the answers among all stored plans of a run, and its headline if somebody asked for it.
/// For whoever has stored plans of it, in the same transaction.
void store_answers(const SqlConnection& connection, RunKind kind, std::int64_t run_id);

}  // namespace rubato
