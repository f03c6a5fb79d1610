#pragma once
// Spaan et al., arXiv 2601.08539: kernel-level clocks for a GPT-3-xl step, published and ours.

#include "explorer/exploration.hpp"
#include "tools/commands/published/section.hpp"

namespace rubato {

/// The tables and figures, and the run behind them.
struct Spaan2026 {
  Reproduction reproduction;
  ExplorationInput input;
  Exploration found;
};

/// @throws InterruptedError; what explore() throws
[[nodiscard]] Spaan2026 reproduce_spaan2026(const RunContext& context);

}  // namespace rubato
