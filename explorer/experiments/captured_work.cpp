#include "explorer/experiments/captured_work.hpp"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/file.hpp"
#include "common/hash.hpp"
#include "common/numbers.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "models/gpu/clock_grid.hpp"
#include "models/gpu/device.hpp"
#include "traces/graph/capture_graph.hpp"
#include "traces/import/file_patterns.hpp"
#include "traces/import/readers.hpp"

namespace rubato {

namespace {

std::vector<std::string> files_of(const std::string& name, const std::filesystem::path& folder) {
  try {
    return files_of_patterns({(folder / name).string()});
  } catch (const UsageError&) {
    return files_of_patterns({name});
  }
}

}  // namespace

std::size_t CapturedFiles::launches() const {
  std::size_t sum = 0;
  for (const Capture& capture : captures) sum += capture.launches.size();
  return sum;
}

std::vector<std::string> CapturedFiles::devices() const {
  std::vector<std::string> names;
  for (const Capture& capture : captures) {
    for (const CaptureDevice& device : capture.devices) names.push_back(device.name);
  }
  return names;
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
  // Ranks that do not belong together are better known before the first unit.
  const CaptureGraph graph = run.captures.size() == 1 ? capture_graph(run.captures.front())
                                                      : capture_graph(std::span(run.captures));
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
  const ClockGrid at_capture(spec, {work.clock});
  work.clock_label = at_capture.label(*at_capture.find(work.clock));
  return work;
}

GraphQuestion graph_question_of(const Point& point) {
  const std::string& granularity = point.text(AxisId::granularity);
  const auto grain = grain_named(granularity);
  if (!grain) {
    throw UsageError(fmt::format(
        "granularity '{}' is not known for captured runs{}", printable(granularity),
        did_you_mean(granularity, std::vector<std::string>{"iteration", "gpu", "pass", "kernel",
                                                           "launch", "auto"})));
  }
  if (point.text(AxisId::aggregation) != "global" || point.text(AxisId::goal) != "waste" ||
      point.number(AxisId::tolerance_pct) != 0.0) {
    throw UsageError(
        "captured runs are planned for goal 'waste' with global aggregation and no tolerance only");
  }
  return {.grain = *grain, .slack_frac = point.number(AxisId::slack_pct) / percent};
}

}  // namespace rubato
