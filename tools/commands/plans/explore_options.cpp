#include "tools/commands/plans/explore_help.hpp"

namespace rubato {

void head_explore_options(CommandLine& app) {
  app.group("What is planned",
            {"--ranks", "--step", "--partial", "--captured-clock", "--power", "--power-gpu",
             "--power-period", "--straggler", "--throttle", "--slow-link", "--jitter"});
  app.group("Measured cells instead of a model",
            {"--table", "--column", "--where", "--keep-implausible", "--missing"});
  app.group("Question", {"--goal", "--slack", "--tolerance", "--energy-budget", "--power-budget",
                         "--price-per-kwh", "--price-per-gpu-hour", "--pue", "--granularity",
                         "--aggregation", "--comm-sms", "--own-steps", "--gap", "--time-limit"});
  app.group("GPU and power", {"--gpu", "--clocks", "--power-limit", "--host-power", "--cluster"});
  app.group("Changes of clock",
            {"--switching", "--switch-latency-us", "--switch-stall-us", "--switch-energy-j",
             "--switch-dwell-us", "--mem-switch-latency-us", "--mem-switch-stall-us",
             "--mem-switch-energy-j"});
  app.group("Output", {"--db", "--timeline", "--per-kernel", "--per-segment", "--per-pass",
                       "--json", "--csv", "--json-lines", "--output"});
}

}  // namespace rubato
