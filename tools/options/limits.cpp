#include "tools/options/limits.hpp"

#include "tools/command_line.hpp"

namespace rubato {

void add_limit_options(CommandLine& app, LimitOptions& o) {
  constexpr double least_s = 0.001, most_s = 1e6, most_pct = 100.0;
  app.add_option("--time-limit S", o.time_s,
                 "Stop searching after S seconds; print the best plans so far, with bounds that "
                 "hold")
      ->in_range(least_s, most_s);
  app.add_option("--gap PCT", o.gap_pct,
                 "Stop a search when its plan is proven to be within so many percent of the "
                 "optimum [0]")
      ->in_range(0.0, most_pct);
  app.rare({"--time-limit", "--gap"});
}

}  // namespace rubato
