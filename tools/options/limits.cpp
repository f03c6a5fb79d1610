#include "tools/options/limits.hpp"

#include "tools/command_line.hpp"

namespace rubato {

void add_limit_options(CommandLine& app, LimitOptions& o) {
  constexpr double least_s = 0.001, most_s = 1e6, most_pct = 100.0;
  app.add_option("--time-limit", o.time_s,
                 "End searches after so many seconds, with the best plans so far and bounds that "
                 "hold [none]")
      ->in_range(least_s, most_s);
  app.add_option("--gap", o.gap_pct,
                 "End a search when its plan is proven to be within so many "
                 "percent of the optimum [0: as far as the search goes; tables show what is left]")
      ->in_range(0.0, most_pct);
}

}  // namespace rubato
