#include "explorer/experiments/captured_work.hpp"

#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/import/file_patterns.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

// The folder is a name, not a pattern: its wildcards are escaped.
std::filesystem::path without_wildcards(const std::filesystem::path& folder) {
  std::string text;
  for (const char c : folder.string()) {
    if (std::string_view("[]*?\\").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

std::vector<std::string> files_of(const std::string& name, const std::filesystem::path& folder) {
  const std::filesystem::path beside = folder / name;
  if (std::filesystem::exists(beside)) return {beside.string()};
  for (const auto& pattern : {without_wildcards(folder) / name, std::filesystem::path(name)}) {
    try {
      return files_of_patterns({pattern.string()});
    } catch (const UsageError&) {
      continue;
    }
  }
  throw IoError(fmt::format("no file is named like '{}', neither in {} nor in {}", printable(name),
                            printable(std::filesystem::absolute(folder).string()),
                            printable(std::filesystem::current_path().string())),
                {.in = {},
                 .hint = "captures are looked for beside the experiment, then in the working "
                         "directory"});
}

// Rounding to a step of the GPU's core clock goes unsaid. A clock out of its range is an error.
void check_core_clock(const std::string& label, const GpuSpec& spec, const ClockPair& taken) {
  const auto asked_mhz = parse_number(label.substr(label.find('/') + 1));
  if (!asked_mhz || !taken.core_mhz || std::abs(*asked_mhz - *taken.core_mhz) <= spec.core.step_mhz)
    return;
  throw UsageError(fmt::format("captured_clock '{}': core clocks of {} are {} to {} MHz",
                               printable(label), spec.name, format_number(spec.core.min_mhz),
                               format_number(spec.core.max_mhz)));
}

}  // namespace

std::size_t CapturedFiles::launches() const {
  std::size_t sum = 0;
  for (const Capture& capture : captures) sum += capture.launches.size();
  return sum;
}

CapturedFiles read_captured_files(const std::string& name, const std::filesystem::path& folder) {
  CapturedFiles run{
      .name = name, .files = files_of(name, folder), .captures = {}, .hash = {}, .notes = {}};
  std::string hashes;
  for (const std::string& file : run.files) {
    hashes += content_hash(read_file(file));
    run.captures.push_back(import_capture(file));
    for (const std::string& line : run.captures.back().left_out)
      run.notes.push_back(fmt::format("{}: left out: {}", file, line));
  }
  run.hash = content_hash(hashes);
  // Ranks that do not belong together are refused here, before the first unit runs.
  const CaptureGraph graph = capture_graph(run.captures);
  run.notes.insert(run.notes.end(), graph.ranks.notes.begin(), graph.ranks.notes.end());
  return run;
}

CapturedWork captured_work(std::shared_ptr<const CapturedFiles> run, const GpuSpec& spec,
                           const Point& point) {
  const std::string& label = point.text(AxisId::captured_clock);
  const bool given = label != "default";
  CapturedWork work{.run = std::move(run),
                    .clock = captured_clock(spec, given ? std::optional(label) : std::nullopt),
                    .clock_label = {},
                    .clock_source = given ? ClockSource::given : ClockSource::gpu_default};
  if (given) check_core_clock(label, spec, work.clock);
  const ClockGrid at_capture(spec, {work.clock});
  work.clock_label = at_capture.label(*at_capture.find(work.clock));
  return work;
}

}  // namespace rubato
