#include "traces/files/trace_json.hpp"

#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/suggest.hpp"
#include "traces/files/kernel_json.hpp"
#include "traces/files/trace_csv.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_traces();

namespace {

using Json = nlohmann::ordered_json;

template <class List, class ToJson>
std::string lines(const List& list, ToJson to) {
  std::string text;
  for (const auto& item : list)
    text += fmt::format("{}\n    {}", text.empty() ? "" : ",", json_text(to(item)));
  return text;
}

CaptureConditions read_conditions(const JsonNode& node) {
  node.expect_keys({"device"}, {"clock"});
  CaptureConditions captured{.device = node.at("device").text(), .clock = {}};
  if (const auto clock = node.find("clock")) captured.clock = clock->text();
  return captured;
}

// A line of the file, or nothing.
std::string captured_line(const std::optional<CaptureConditions>& captured) {
  if (!captured) return {};
  Json json{{"device", captured->device}};
  if (captured->clock) json["clock"] = *captured->clock;
  return fmt::format("  \"captured\": {},\n", json_text(json));
}

}  // namespace

Trace parse_trace_json(std::string_view text, std::string name) {
  const JsonDocument document = JsonDocument::parse(text, std::move(name));
  const JsonNode root = document.root();
  root.expect_keys({"schema", "name", "provenance", "kernels", "segments"}, {"captured"});
  document.expect_schema(trace_schema);
  Trace trace;
  trace.name = root.at("name").text();
  const JsonNode provenance = root.at("provenance");
  provenance.expect_keys({"generator", "source", "options"});
  trace.provenance = {provenance.at("generator").text(), provenance.at("source").text(),
                      provenance.at("options").text()};
  if (const auto captured = root.find("captured")) trace.captured = read_conditions(*captured);
  std::unordered_map<std::string, KernelId> ids;
  for (const JsonNode& item : root.at("kernels").items()) {
    trace.kernels.push_back(read_kernel(item));
    const std::string& name_of_kernel = trace.kernels.back().name;
    const bool is_new =
        ids.emplace(name_of_kernel, id_at<KernelId>(trace.kernels.size() - 1)).second;
    if (!is_new) item.fail(fmt::format("kernel name '{}' occurs twice", name_of_kernel));
  }
  for (const JsonNode& item : root.at("segments").items()) {
    item.expect_keys({"name", "repeat", "launches"});
    Segment segment{
        .name = item.at("name").text(), .repeat = read_count_32(item.at("repeat")), .launches = {}};
    for (const JsonNode& launch : item.at("launches").items()) {
      const auto found = ids.find(launch.text());
      if (found == ids.end()) launch.fail(fmt::format("there is no kernel '{}'", launch.text()));
      segment.launches.push_back(found->second);
    }
    trace.segments.push_back(std::move(segment));
  }
  validate(trace, root.where());
  return trace;
}

std::string to_json(const Trace& trace) {
  const auto segment_json = [&](const Segment& segment) {
    Json launches = Json::array();
    for (const KernelId kernel : segment.launches)
      launches.push_back(trace.kernels[index(kernel)].name);
    return Json{
        {"name", segment.name}, {"repeat", segment.repeat}, {"launches", std::move(launches)}};
  };
  const Json provenance{{"generator", trace.provenance.generator},
                        {"source", trace.provenance.source},
                        {"options", trace.provenance.options}};
  return fmt::format(
      "{{\n  \"schema\": {},\n  \"name\": {},\n  \"provenance\": {},\n{}  \"kernels\": [{}\n  ],\n"
      "  \"segments\": [{}\n  ]\n}}\n",
      trace_schema, json_text(trace.name), json_text(provenance), captured_line(trace.captured),
      lines(trace.kernels, kernel_json), lines(trace.segments, segment_json));
}

std::vector<std::string> shipped_traces() { return names_of(embedded_traces()); }

Trace load_trace(std::string_view name_or_path) {
  const NamedText named = read_named(embedded_traces(), name_or_path, "trace",
                                     "give a shipped name or the path of a .json or .csv file");
  if (named.path.extension() == ".csv") return parse_trace_csv(named.text, named.path.string());
  return parse_trace_json(named.text, named.path.string());
}

}  // namespace rubato
