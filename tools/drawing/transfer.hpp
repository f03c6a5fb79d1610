#pragma once
// Pictures of a plan applied to other traces.

#include <span>
#include <string>

#include "explorer/transfer.hpp"
#include "tools/drawing/answer.hpp"
#include "tools/drawing/svg.hpp"

namespace rubato {

/// A trace the plan was applied to, and where it belongs in the picture.
struct DrawnTransfer {
  Transfer transfer;
  std::string panel;    ///< traces of one panel are next to each other in the list and share axes
  double batch = 0.0;   ///< > 0, its place on the axis; 0: a trace named by the user, in order
  bool source = false;  ///< the plan was found on this trace
};

/// What the picture says about the plan.
struct TransferCaption {
  std::string plan;      ///< "plan 4 (kernel, global, strict_waste)"
  std::string found_on;  ///< trace
  std::string gpu;
  std::string clocks;  ///< the grid
  double power_limit_w = 0.0;
  std::string model_error = {};  ///< see model_error_text
};

/// Three rows of small multiples, one column per panel: energy saved by the plan and by the
/// trace's own, the regret between them, and both changes of time. All against the default
/// clocks of each trace.
/// @param transfers  at least one
[[nodiscard]] std::string transfer_svg(const TransferCaption& caption,
                                       std::span<const DrawnTransfer> transfers,
                                       Screen screen = Screen::desk);

/// Average power, W.
[[nodiscard]] inline double power_w(const Cost& total) { return total.energy_j / total.time_s; }

/// What the plan saves on average, on how many deadlines are kept where there are some, and what
/// plans of their own would save.
[[nodiscard]] Answer transfer_answer(std::span<const DrawnTransfer> transfers);

/// An HTML page with the picture and the numbers behind it.
[[nodiscard]] std::string transfer_page(const TransferCaption& caption,
                                        std::span<const DrawnTransfer> transfers);

}  // namespace rubato
