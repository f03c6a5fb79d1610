// rubato reproduce: published experiments beside ours.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/suggest.hpp"
#include "explorer/results/store.hpp"
#include "explorer/results/trace_rows.hpp"
#include "tools/command_line.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/published/kareus2026.hpp"
#include "tools/commands/published/perseus2024.hpp"
#include "tools/commands/published/spaan2026.hpp"
#include "tools/commands/published/steps.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/standard_error.hpp"

namespace rubato {

namespace {

struct ReproduceOptions {
  std::string experiment, db, report;
  bool json = false;
};

// Everything that was asked for. @param spaan  kept for the database
std::vector<Reproduction> reproductions(const ReproduceOptions& o, const RunContext& context,
                                        std::optional<Spaan2026>& spaan) {
  const bool all = o.experiment == "all";
  std::vector<Reproduction> list;
  if (all || o.experiment == "spaan2026") {
    spaan = reproduce_spaan2026(context);
    list.push_back(spaan->reproduction);
  }
  if (all || o.experiment == "perseus2024") list.push_back(reproduce_perseus2024(context));
  if (o.experiment == "kareus2026") list.push_back(reproduce_kareus2026());
  if (all || o.experiment == "steps") list.push_back(training_steps());
  throw_if_interrupted(context);
  return list;
}

// Checks the name before anything is made. @throws UsageError
void expect_known(const std::string& experiment) {
  const std::vector<std::string> known{"all", "kareus2026", "perseus2024", "spaan2026", "steps"};
  if (std::ranges::find(known, experiment) != known.end()) return;
  throw UsageError(
      fmt::format("there is no experiment '{}'{}", experiment, did_you_mean(experiment, known)));
}

// Checks the extension before anything is planned. @throws UsageError
bool is_markdown(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".html" || extension == ".md") return extension == ".md";
  throw UsageError(
      fmt::format("--report is '{}'; expected a name that ends in .html or .md", path));
}

ExitStatus reproduce(const ReproduceOptions& o, const RunContext& context) {
  expect_known(o.experiment);
  const bool markdown = !o.report.empty() && is_markdown(o.report);
  if (!o.db.empty()) {
    if (o.experiment != "spaan2026" && o.experiment != "all")
      throw UsageError(fmt::format("--db stores the run of spaan2026; {} has none", o.experiment));
    (void)open_result_database(o.db);  // better known before the work than after it
  }
  std::optional<Spaan2026> spaan;
  const std::vector<Reproduction> list = reproductions(o, context, spaan);
  if (!o.report.empty()) write_output(o.report, markdown ? markdown_of(list) : page_of(list));
  if (o.json) {
    print(json_of(list));
  } else {
    print_notes(answer_text(list.size() == 1 ? std::string_view(list.front().title) : report_title,
                            reproduction_answer(list)));
    for (const Reproduction& one : list) {
      if (list.size() > 1) print_notes(fmt::format("== {}\n{}\n\n", one.name, one.title));
      print_sections(one);
      if (&one != &list.back()) print("\n");
    }
  }
  if (!o.db.empty()) {
    const std::int64_t run_id = store_trace(
        o.db, spaan->input, spaan->found, {context.command_line, R"({"experiment":"spaan2026"})"});
    tell("stored as run {} in {}\n", run_id, o.db);
  }
  return ExitStatus::done;
}

}  // namespace

Action setup_reproduce(CommandLine& app) {
  auto o = std::make_shared<ReproduceOptions>();
  app.add_option(
         "EXPERIMENT", o->experiment,
         "spaan2026: kernel-level clocks for a GPT-3-xl step (arXiv 2601.08539); perseus2024: "
         "clocks for pipelines (SOSP 2024); steps: times of training steps; all: these three; "
         "kareus2026: errors of kernels beside a collective (OSDI 2026)")
      ->required();
  app.add_option("--db", o->db, "Store the run of spaan2026 in this SQLite database");
  app.add_option("--report", o->report,
                 "Write everything with pictures as one page (.html), or as Markdown (.md)");
  app.add_flag("--json", o->json, "All tables, every row, as one JSON object");
  app.footer(
      "Each table says what of it our fits have seen: Table 2 of spaan2026 was not used to fit the "
      "model, but Table 1 was, and one row of Table 2 is its sum: 'blind' is the fit without it "
      "(spec rtx-3080-ti-without-table1). See docs/models.md.");
  return [o](const RunContext& context) { return reproduce(*o, context); };
}

}  // namespace rubato
