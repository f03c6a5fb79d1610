// What `rubato help terms` prints: words and signs of tables. docs/terms.md of the site is made
// from it.

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "explorer/marks.hpp"
#include "tools/help.hpp"
#include "tools/terminal/terminal.hpp"

namespace rubato {

namespace {

constexpr std::array columns_of_plans{
    MarkWords{
        "one clock for",
        "what shares a clock: the run, a GPU, a stage, a pass, a kernel, a launch; a segment is "
        "a stretch of launches that the search found"},
    MarkWords{"clocks", "memory/core in MHz, or how many clocks; auto: as the driver chooses"},
    MarkWords{"time %, energy %", "change against the default clocks, negative is less"},
    MarkWords{"90 %", "90 % interval of the change of energy"},
    MarkWords{"odds", "how likely the plan stays within the time asked for"},
    MarkWords{"gap %", "how far the plan may be from the best of its row: no such plan saves more"},
    MarkWords{"switches/s", "how often the plan changes a clock"},
    MarkWords{"cost %", "change of the cost at your prices"},
    MarkWords{"slack %", "how much more time was allowed"},
    MarkWords{"goal", "what is minimised, where several were asked for"},
    MarkWords{"aggregation", "global: the whole run keeps the time; local: each part does"},
    MarkWords{"status", "what the search proved: optimal, feasible, infeasible, or ended early"},
    MarkWords{"comm SMs", "SMs that collectives take beside compute"},
    MarkWords{"jittered s, 95 % below s",
              "time with --disturb: the mean, and what 95 % stay below"},
    MarkWords{"set with",
              "nvidia-smi, rubato apply, or why nothing sets it: cannot be set, late, late "
              "too often, not known (measure it first), unlikely to save"},
    MarkWords{"-", "does not apply, or is not known"}};

constexpr std::array sources_of_times{
    MarkWords{"measured", "on this GPU"},
    MarkWords{"anchored", "captured at one clock, modelled at the others"},
    MarkWords{"scaled", "measured at other shapes"},
    MarkWords{"derived", "from FLOPs, bytes and the GPU's architecture"},
    MarkWords{"guessed", "from peaks alone"},
    MarkWords{"fixed", "does not depend on clocks"}};

void add_terms(std::string& text, std::string_view title, std::span<const MarkWords> terms) {
  constexpr std::size_t narrowest = 60, meanings_at = 28;
  text += fmt::format("{}{}\n", text.empty() ? "" : "\n", title);
  for (const MarkWords& term : terms) {
    text += fmt::format("  {:<{}}", term.name, meanings_at - 2);
    add_wrapped(text, term.meaning, std::max(line_width(), narrowest),
                std::string(meanings_at, ' '), meanings_at);
  }
}

}  // namespace

std::string terms_text() {
  std::string text;
  add_terms(text, "Columns of plans", columns_of_plans);
  add_terms(text, "Where times of kernels come from", sources_of_times);
  add_terms(text, "Marks of plans and runs (notes; v_caveats in SQL)", mark_words());
  return text;
}

}  // namespace rubato
