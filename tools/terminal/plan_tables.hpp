#pragma once
// Tables of plans that every kind of run has, made of the rows that a database gets.

#include <vector>

#include "explorer/results/stored_rows.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

/// An exploration of any kind, as a database keeps it.
struct PlannedRun {
  RunRows run;
  std::vector<PlanRows> plans;
};

/// What was planned, in one row: the columns of table `runs`, and the clocks to choose from.
[[nodiscard]] OutputTable run_table(const RunRows& run);

/// What each kind of pass takes on each GPU or stage: a row per plan, GPU and pass.
[[nodiscard]] OutputTable passes_table(const PlannedRun& of);

/// What the launches of each kernel take, by pass: a row per plan, kernel and clock.
[[nodiscard]] OutputTable kernels_table(const PlannedRun& of);

/// What is set, in order: a row per plan and stretch of a GPU with one clock within one pass. Times
/// and energies are of one repeat.
[[nodiscard]] OutputTable segments_table(const PlannedRun& of);

}  // namespace rubato
