#include "tools/options/file_kinds.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "common/byte_source.hpp"
#include "common/error.hpp"
#include "common/text.hpp"
#include "tools/options/files.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

struct FileKind {
  std::string_view name;
  /// Commands and options that take such a file, each between blanks: "calibrate", "--power",
  /// "verify:--measured".
  std::string_view readers;
  std::string_view hint;  ///< {0} is the file
};

// In the order in which they are looked for.
constexpr std::array kinds{
    FileKind{"a result database", " show top compare query merge --db ",
             "look at it: rubato show {0}"},
    FileKind{
        "a plan", " --plan ",
        "apply it: rubato apply {0} -- python3 train.py; compare it with a measurement: rubato "
        "verify --plan {0} --measured ab.csv"},
    FileKind{"a description of a pipeline", " explore ", "plan it: rubato explore {0}"},
    FileKind{"a GPU model", " gpus --gpu ", "use it: rubato explore gpt3-xl --gpu {0}"},
    FileKind{"an experiment", " experiment ", "run it: rubato experiment run {0} --db results.db"},
    FileKind{"a description of a table", " --table ",
             "plan on it: rubato explore --table {0} --gpu NAME"},
    FileKind{"jobs of a budget", " budget ", "rubato budget {0} --watts 6400"},
    FileKind{"what a training run costs", " impact ", "rubato impact {0} --db results.db"},
    FileKind{"a profile of pipeline stages", " explore --profile --table calibrate ",
             "plan it: rubato explore {0} --microbatches 8"},
    FileKind{"a table of measurements", " calibrate validate --table suggest:--measured ",
             "plan on it: rubato explore --table {0} --gpu NAME; fit a GPU model: rubato calibrate "
             "{0}"},
    FileKind{"a power log", " --power ",
             "give it with its profile: rubato explore run.pt.trace.json.gz --power {0}"},
    FileKind{"a measurement of a plan", " verify:--measured ",
             "compare it with the plan: rubato verify --plan plan.json --measured {0}"},
    FileKind{"a trace of one step",
             " explore trace replay suggest transfer latency-scan remeasure --trace ",
             "plan it: rubato explore {0}; measurements of a GPU are what rubato calibrate reads"},
    FileKind{"a profile",
             " explore trace replay network suggest transfer --captures --also --ranks --trace ",
             "plan it: rubato explore {0}; fit kernels to profiles at several clocks: rubato "
             "calibrate --captures FAST@1410 SLOW@1110 --power FAST.csv SLOW.csv"}};

// Null: there is none of that name.
const FileKind* kind_named(std::string_view name) {
  const auto found = std::ranges::find(kinds, name, &FileKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

const FileKind* kind_of(const std::string& path) {
  constexpr std::size_t enough = 4096;
  std::string head = first_bytes(path, enough);
  const auto has = [&](std::string_view words) { return head.find(words) != std::string::npos; };
  if (head.starts_with("SQLite format 3")) {
    constexpr std::size_t application_id_at = 68;
    return kind_named(head.substr(application_id_at).starts_with("RUBO") ? "a result database"
                                                                         : "a profile");
  }
  std::erase(head, ' ');
  if (has(R"("format":"rubato-plan")")) return kind_named("a plan");
  if (has(R"("format":"rubato-pipeline")")) return kind_named("a description of a pipeline");
  if (has(R"("peak_flop_per_cycle")") || has(R"("sm_count")")) return kind_named("a GPU model");
  if (path.ends_with(".toml"))
    return kind_named(has("[axes]")                                 ? "an experiment"
                      : has("\nfile=") || head.starts_with("file=") ? "a description of a table"
                      : has("[[job]]")                              ? "jobs of a budget"
                      : has("tokens")                               ? "what a training run costs"
                                                                    : "");
  const std::string_view titles = std::string_view(head).substr(0, head.find_first_of("\r\n"));
  const std::vector<std::string_view> columns = split(titles, ',');
  const auto column = [&](std::string_view name) {
    return std::ranges::find(columns, name) != columns.end();
  };
  if (column("stage") && column("instruction") && column("frequency"))
    return kind_named("a profile of pipeline stages");
  if (column("pair") && column("arm")) return kind_named("a measurement of a plan");
  if (column("kernel") && column("core_mhz") && (column("time_s") || column("power_w")))
    return kind_named("a table of measurements");
  if (has(R"("tune_params_keys")")) return kind_named("a table of measurements");
  if (titles.find("power.draw[W]") != std::string_view::npos) return kind_named("a power log");
  try {
    return kind_named(is_trace(capture_format(path)) ? "a trace of one step" : "a profile");
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

OtherKind other_kind(std::span<const std::string> words, std::string_view error) {
  std::size_t command = 1;  // behind options of the program
  while (command < words.size() && words[command].starts_with('-')) ++command;
  for (std::size_t i = command + 1; i < words.size(); ++i) {
    const std::string shown = printable(words[i]);
    std::error_code unknown;
    if (!error.starts_with(shown) || !std::filesystem::is_regular_file(words[i], unknown)) continue;
    std::size_t before = i - 1;  // an option may take several files
    while (before > command + 1 && std::filesystem::is_regular_file(words[before], unknown))
      --before;
    const std::string& reader = words[before].starts_with("--") ? words[before] : words[command];
    const FileKind* kind = kind_of(words[i]);
    const auto reads = [&](const std::string& name) {
      return kind->readers.find(fmt::format(" {} ", name)) != std::string_view::npos;
    };
    if (kind == nullptr || reads(reader) || reads(words[command] + ':' + reader)) continue;
    return {fmt::format("{} is {}; {}{} takes another kind of file", shown, kind->name,
                        reader.starts_with("--") ? "" : "rubato ", reader),
            fmt::format(fmt::runtime(kind->hint), shell_word(words[i]))};
  }
  return {};
}

}  // namespace rubato
