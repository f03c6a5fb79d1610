#pragma once
// What a kind of run cannot answer, and why: one table for commands and experiments.

#include "explorer/goal.hpp"

namespace rubato {

/// What is planned: one step of a GPU as a folded trace, captured ranks, or stages of a pipeline.
enum class RunKind { trace, capture, stages };

/// Whether such a run has plans for a question. What nobody asked for by name is left out without.
[[nodiscard]] bool is_answerable(RunKind kind, const Question& question);

/// @throws UsageError with the reason, if no plan of such a run answers the question
void refuse_unanswerable(RunKind kind, const Question& question);

}  // namespace rubato
