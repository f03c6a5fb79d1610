// rubato report: one page with the pictures of a run or an experiment.

#include <memory>

#include <fmt/format.h>

#include "common/file.hpp"
#include "explorer/report/run_report.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

Action setup_report(CommandLine& app) {
  struct Options {
    std::string db, experiment, out = "report.html";
    std::int64_t run = 0;
  };
  auto o = std::make_shared<Options>();
  app.add_option("--db", o->db, "Result database")->required();
  auto* run_option = app.add_option("--run", o->run, "Run [the latest]");
  app.add_option("--experiment", o->experiment, "An experiment by name or id, or 'latest'")
      ->excludes(run_option);
  app.add_option("-o,--output", o->out, "HTML file")->capture_default_str();
  app.footer(
      "\nThe page holds everything it needs: open it from disk, send it by mail.\n"
      "Examples:\n  rubato report --db results.db -o report.html\n"
      "  rubato report --db results.db --experiment latest -o experiment.html");
  return [o](const RunContext&) {
    const ResultStore store = ResultStore::open_read_only(o->db);
    if (!o->experiment.empty()) {
      const std::string id = experiment_id(store, o->experiment);
      write_file(o->out, experiment_page(store, id));
      if (o->out != "-") fmt::print(stderr, "wrote {} (experiment {})\n", o->out, id);
      return ExitStatus::done;
    }
    const std::int64_t run = o->run > 0 ? o->run : latest_run(store);
    require_run(store, run);
    write_file(o->out, report_page(store, run));
    if (o->out != "-") fmt::print(stderr, "wrote {} (run {})\n", o->out, run);
    return ExitStatus::done;
  };
}

}  // namespace rubato
