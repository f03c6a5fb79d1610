#pragma once
// Answers of a plan applied to other traces.

#include <span>
#include <string>

#include "explorer/transfer.hpp"

namespace rubato {

/// A trace the plan was applied to, and where it belongs in the picture.
struct DrawnTransfer {
  Transfer transfer;
  std::string panel;    ///< traces of one panel are next to each other in the list and share axes
  double batch = 0.0;   ///< > 0, its place on the axis; 0: a trace named by the user, in order
  bool source = false;  ///< the plan was found on this trace
};

/// Average power, W.
[[nodiscard]] inline double power_w(const Cost& total) { return total.energy_j / total.time_s; }

/// What the plan saves on average, on how many deadlines are kept where there are some, and what
/// plans of their own would save.
[[nodiscard]] std::string transfer_answer(std::span<const DrawnTransfer> transfers);

}  // namespace rubato
