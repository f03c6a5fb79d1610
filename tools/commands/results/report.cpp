// rubato report: one page with the pictures of a run or an experiment.

#include <functional>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/file.hpp"
#include "explorer/report/run_report.hpp"
#include "explorer/results/plan_choice.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"
#include "tools/terminal/stored_runs.hpp"

namespace rubato {

namespace {

// Pages are filled from texts of the database, some of them JSON.
std::string page_of(const std::string& db, const std::function<std::string()>& make) {
  try {
    return make();
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: a value is not what it must be: {}", db, error.what()),
                    {.in = {}, .hint = "the database is damaged; restore a copy"});
  }
}

}  // namespace

Action setup_report(CommandLine& app) {
  struct Options {
    std::string db, run = "latest", experiment, out = "report.html";
  };
  auto o = std::make_shared<Options>();
  app.add_option("--db", o->db, "Result database")->required();
  auto* run_option =
      app.add_option("--run", o->run, "Run, by its number; 'all': a list, as rubato serve shows it")
          ->capture_default_str();
  app.add_option("--experiment", o->experiment, "An experiment by name or id, or 'latest'")
      ->excludes(run_option);
  app.add_option("-o,--output", o->out, "HTML file")->capture_default_str();
  app.footer("The page holds everything it needs: open it from disk, send it by mail.");
  return [o](const RunContext&) {
    check_extension("--output", o->out, {".html", ".htm"});
    if (!o->experiment.empty()) check_result_database(o->db);
    const ResultStore store = read_results(o->db);
    if (!o->experiment.empty()) {
      const std::string id = experiment_id(store, o->experiment);
      write_file(o->out, page_of(o->db, [&] { return experiment_page(store, id); }));
      if (o->out != "-") tell("wrote {} (experiment {})\n", o->out, id);
      return ExitStatus::done;
    }
    if (o->run == "all") {
      write_output(o->out, page_of(o->db, [&] { return index_page(store, o->db); }));
      return ExitStatus::done;
    }
    const StoredRun run = find_stored_run(store, o->run);
    write_file(o->out, page_of(o->db, [&] { return run_page(store, run.id, o->db); }));
    if (o->out != "-") tell("wrote {} (run {})\n", o->out, run.id);
    return ExitStatus::done;
  };
}

}  // namespace rubato
