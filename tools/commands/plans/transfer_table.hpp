#pragma once
// How rubato transfer names plans, and its table.

#include <span>
#include <string>

#include "explorer/transfer.hpp"
#include "tools/drawing/transfer.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

/// A plan as sentences and tables name it.
struct TransferredPlan {
  std::string plan;      ///< "plan 9", "the given plan"
  std::string question;  ///< "kernel, global, strict_waste", "segment, in at most 1 % more time"
  std::string found_on;  ///< a trace, or files, one a line
  std::string gpu;       ///< "RTX 3080 Ti, 350 W", printable
  Cell id;               ///< missing of a given plan
  bool captured = false;
};

[[nodiscard]] TransferredPlan name_of(const StoredPlan& plan);
[[nodiscard]] TransferredPlan name_of(const StoredGraphPlan& plan);

/// "plan 9 (kernel, global, strict_waste)".
[[nodiscard]] std::string plan_words(const TransferredPlan& plan);
/// "plan 9 (kernel, global, strict_waste), found on gpt3-xl".
[[nodiscard]] std::string found_words(const TransferredPlan& plan);

/// A row for each run, with the columns that plans of traces or of captured runs have.
/// @param runs  at least one
[[nodiscard]] OutputTable transfer_table(const TransferredPlan& plan,
                                         std::span<const DrawnTransfer> runs);

}  // namespace rubato
