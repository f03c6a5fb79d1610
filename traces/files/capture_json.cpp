#include "traces/files/capture_json.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "common/gzip.hpp"
#include "common/json.hpp"
#include "traces/files/kernel_json.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t rows_per_block = 1000;

// Times are written from the first start on, which keeps them short. With absurd times among them
// all are written as they are.
std::int64_t origin_of(const Capture& capture) {
  constexpr std::int64_t limit = std::int64_t{1} << 61;
  const auto sane = [](std::int64_t ns) { return -limit < ns && ns < limit; };
  const bool all_sane =
      std::ranges::all_of(capture.launches,
                          [&](const CapturedLaunch& l) {
                            return sane(l.start_ns) && sane(l.launch_ns.value_or(0));
                          }) &&
      std::ranges::all_of(capture.calls, [&](const CapturedCall& c) { return sane(c.start_ns); }) &&
      std::ranges::all_of(
          capture.steps, [&](const CapturedStep& s) { return sane(s.start_ns) && sane(s.end_ns); });
  if (!all_sane || capture.launches.empty()) return 0;
  return std::ranges::min_element(capture.launches, {}, &CapturedLaunch::start_ns)->start_ns;
}

template <class List, class ToJson>
Json listed(const List& list, const ToJson& to) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(to(item));
  return json;
}

// One column of a block, "name": [1,null,2].
template <class Row, class Value>
void append_column(std::string& text, std::string_view name, std::span<const Row> block,
                   const Value& value) {
  text += fmt::format("{}\"{}\": [", text.ends_with('{') ? "" : ", ", name);
  for (const Row& row : block) {
    const std::optional<std::int64_t> number = value(row);
    if (number) {
      fmt::format_to(std::back_inserter(text), "{},", *number);
    } else {
      text += "null,";
    }
  }
  text.back() = ']';
}

// The same, left out if it says nothing.
template <class Row, class Value>
void append_optional(std::string& text, std::string_view name, std::span<const Row> block,
                     const Value& value) {
  if (std::ranges::any_of(block, [&](const Row& row) { return value(row).has_value(); }))
    append_column(text, name, block, value);
}

// Rows in blocks of columns: far shorter than a list of objects.
template <class Row, class Append>
std::string in_blocks(std::span<const Row> rows, const Append& append) {
  std::string text = "[";
  for (std::size_t first = 0; first < rows.size(); first += rows_per_block) {
    text += first > 0 ? ",\n    " : "\n    ";
    append(text, rows.subspan(first, std::min(rows_per_block, rows.size() - first)));
  }
  return text + (rows.empty() ? "]" : "\n  ]");
}

using Number = std::optional<std::int64_t>;

void append_block(std::string& text, const Capture& capture, std::span<const CapturedLaunch> block,
                  std::int64_t origin_ns) {
  text += '{';
  append_column(text, "kernel", block, [](const auto& l) { return Number(index(l.kernel)); });
  append_column(text, "stream", block, [](const auto& l) { return Number(l.stream); });
  append_column(text, "start_ns", block,
                [&](const auto& l) { return Number(l.start_ns - origin_ns); });
  append_column(text, "duration_ns", block, [](const auto& l) { return Number(l.duration_ns); });
  // A launch with a call has the call's time. The pass is the kernel's, as a rule.
  append_optional(text, "launch_ns", block, [&](const auto& l) {
    return l.launch_ns && !l.call ? Number(*l.launch_ns - origin_ns) : std::nullopt;
  });
  append_optional(text, "call", block, [](const auto& l) { return Number(l.call); });
  append_optional(text, "collective", block, [](const auto& l) { return Number(l.collective); });
  append_optional(text, "step", block, [](const auto& l) { return Number(l.step); });
  const auto own_pass = [&](const auto& l) {
    return l.pass != capture.kernels[index(l.kernel)].pass;
  };
  if (std::ranges::any_of(block, own_pass)) {
    const Json names = listed(block, [](const auto& l) { return name_of(l.pass); });
    text += ", \"pass\": " + json_text(names);
  }
  text += '}';
}

void append_calls(std::string& text, std::span<const CapturedCall> block, std::int64_t origin_ns) {
  const Json kinds = listed(block, [](const CapturedCall& c) { return name_of(c.kind); });
  text += "{\"kind\": " + json_text(kinds);
  append_column(text, "thread", block, [](const auto& c) { return Number(c.thread); });
  append_column(text, "start_ns", block,
                [&](const auto& c) { return Number(c.start_ns - origin_ns); });
  append_column(text, "duration_ns", block, [](const auto& c) { return Number(c.duration_ns); });
  append_optional(text, "stream", block, [](const auto& c) { return Number(c.stream); });
  append_optional(text, "record", block, [](const auto& c) { return Number(c.record); });
  append_optional(text, "recorded_stream", block,
                  [](const auto& c) { return Number(c.recorded_stream); });
  text += '}';
}

// What is not known is left out.
template <class Value>
void put(Json& json, const char* key, const std::optional<Value>& value) {
  if (value) json[key] = *value;
}

std::string communication_json(const Capture& capture) {
  std::string text;
  if (capture.rank) text += fmt::format("  \"rank\": {},\n", *capture.rank);
  if (capture.world_size) text += fmt::format("  \"world_size\": {},\n", *capture.world_size);
  const Json groups = listed(capture.groups, [](const CaptureGroup& g) {
    Json json{{"name", g.name}, {"description", g.description}};
    put(json, "size", g.size);
    if (!g.ranks.empty()) json["ranks"] = g.ranks;
    return json;
  });
  if (!groups.empty()) text += fmt::format("  \"groups\": {},\n", json_text(groups));
  const Json collectives = listed(capture.collectives, [](const CapturedCollective& c) {
    Json json{{"kind", name_of(c.kind)}};
    put(json, "group", c.group);
    put(json, "sequence", c.sequence);
    put(json, "in_bytes", c.in_bytes);
    put(json, "out_bytes", c.out_bytes);
    put(json, "source_rank", c.source_rank);
    put(json, "target_rank", c.target_rank);
    return json;
  });
  if (!collectives.empty()) text += fmt::format("  \"collectives\": {},\n", json_text(collectives));
  return text;
}

std::string calls_json(const Capture& capture, std::int64_t origin_ns) {
  if (capture.threads.empty()) return {};
  const Json threads = listed(capture.threads, [](const CaptureThread& t) {
    return Json{{"process", t.process}, {"id", t.id}};
  });
  return fmt::format("  \"threads\": {},\n  \"calls\": {},\n", json_text(threads),
                     in_blocks(std::span(capture.calls), [&](std::string& text, auto block) {
                       append_calls(text, block, origin_ns);
                     }));
}

std::string head_json(const Capture& capture, std::int64_t origin_ns) {
  const Provenance& p = capture.provenance;
  const Json provenance{{"generator", p.generator}, {"source", p.source}, {"options", p.options}};
  const Json devices = listed(capture.devices, [](const CaptureDevice& d) {
    Json json{{"id", d.id}, {"name", d.name}};
    put(json, "compute_capability", d.compute_capability);
    put(json, "sm_count", d.sm_count);
    return json;
  });
  const Json streams = listed(capture.streams, [](const CaptureStream& s) {
    Json json{{"device", s.device}, {"id", s.id}};
    put(json, "priority", s.priority);
    return json;
  });
  const Json steps = listed(capture.steps, [&](const CapturedStep& s) {
    return Json{
        {"name", s.name}, {"start_ns", s.start_ns - origin_ns}, {"end_ns", s.end_ns - origin_ns}};
  });
  std::string text = fmt::format(
      "{{\n  \"schema\": {},\n  \"kind\": \"capture\",\n  \"name\": {},\n  \"provenance\": {},\n",
      capture_schema, json_text(capture.name), json_text(provenance));
  if (capture.epoch_ns) text += fmt::format("  \"epoch_ns\": {},\n", *capture.epoch_ns);
  text += fmt::format(
      "  \"origin_ns\": {},\n  \"devices\": {},\n  \"streams\": {},\n  \"step_source\": \"{}\",\n"
      "  \"steps\": {},\n  \"left_out\": {},\n",
      origin_ns, json_text(devices), json_text(streams), name_of(capture.step_source),
      json_text(steps), json_text(Json(capture.left_out)));
  return text;
}

}  // namespace

std::string capture_json(const Capture& capture) {
  const std::int64_t origin_ns = origin_of(capture);
  std::string text = head_json(capture, origin_ns);
  text += communication_json(capture);
  text += calls_json(capture, origin_ns);
  text += "  \"kernels\": [";
  for (std::size_t k = 0; k < capture.kernels.size(); ++k)
    text += (k > 0 ? ",\n    " : "\n    ") + json_text(kernel_json(capture.kernels[k]));
  text += "\n  ],\n  \"launches\": ";
  text += in_blocks(std::span(capture.launches), [&](std::string& out, auto block) {
    append_block(out, capture, block, origin_ns);
  });
  return text + "\n}\n";
}

void save_capture(const Capture& capture, const std::filesystem::path& path) {
  write_text(path, capture_json(capture));
}

}  // namespace rubato
