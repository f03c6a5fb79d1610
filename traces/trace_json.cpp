#include "traces/trace_json.hpp"

#include <limits>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/suggest.hpp"
#include "traces/trace_csv.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_traces();

namespace {

using Json = nlohmann::ordered_json;

template <class Enum>
Enum read_name(const JsonNode& node) {
  const std::string text = node.text();
  if (const auto value = from_name<Enum>(text)) return *value;
  node.fail(fmt::format("'{}' is not known{}", text, did_you_mean(text, all_names<Enum>())));
}

std::optional<double> optional_number(const JsonNode& node, std::string_view key, Range range) {
  const auto found = node.find(key);
  return found ? std::optional(found->number(range)) : std::nullopt;
}

std::uint32_t read_small(const JsonNode& node) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t value = node.count();
  if (value > most) node.fail(fmt::format("found {}; expected at most {}", value, most));
  return static_cast<std::uint32_t>(value);
}

std::array<std::uint32_t, 3> read_triple(const JsonNode& node) {
  const auto items = node.items();
  if (items.size() != 3) node.fail("expected three whole numbers");
  std::array<std::uint32_t, 3> triple{};
  for (std::size_t i = 0; i < 3; ++i) triple[i] = read_small(items[i]);
  return triple;
}

Kernel read_kernel(const JsonNode& node) {
  node.expect_keys(
      {"name", "label", "class", "pass", "dtype", "work_source"},
      {"flops", "dram_bytes", "gemm", "collective", "grid", "block", "measured_time_s"});
  Kernel kernel;
  kernel.name = node.at("name").text();
  kernel.label = node.at("label").text();
  kernel.kind = read_name<KernelClass>(node.at("class"));
  kernel.pass = read_name<Pass>(node.at("pass"));
  kernel.dtype = read_name<Dtype>(node.at("dtype"));
  kernel.work_source = read_name<WorkSource>(node.at("work_source"));
  kernel.flops = optional_number(node, "flops", Range::non_negative);
  kernel.dram_bytes = optional_number(node, "dram_bytes", Range::non_negative);
  kernel.measured_time_s = optional_number(node, "measured_time_s", Range::positive);
  if (const auto gemm = node.find("gemm")) {
    gemm->expect_keys({"m", "n", "k", "batch"});
    kernel.gemm = GemmShape{gemm->at("m").count(), gemm->at("n").count(), gemm->at("k").count(),
                            gemm->at("batch").count()};
  }
  if (const auto collective = node.find("collective")) {
    collective->expect_keys({"kind", "message_bytes", "group_size"});
    kernel.collective = Collective{read_name<CollectiveKind>(collective->at("kind")),
                                   collective->at("message_bytes").number(Range::positive),
                                   read_small(collective->at("group_size"))};
  }
  if (node.find("grid") || node.find("block")) {
    kernel.launch = LaunchShape{read_triple(node.at("grid")), read_triple(node.at("block"))};
  }
  return kernel;
}

Json kernel_json(const Kernel& kernel) {
  Json json{{"name", kernel.name},
            {"label", kernel.label},
            {"class", name_of(kernel.kind)},
            {"pass", name_of(kernel.pass)},
            {"dtype", name_of(kernel.dtype)},
            {"work_source", name_of(kernel.work_source)}};
  if (kernel.flops) json["flops"] = *kernel.flops;
  if (kernel.dram_bytes) json["dram_bytes"] = *kernel.dram_bytes;
  if (const auto& g = kernel.gemm)
    json["gemm"] = {{"m", g->m}, {"n", g->n}, {"k", g->k}, {"batch", g->batch}};
  if (const auto& c = kernel.collective) {
    json["collective"] = {{"kind", name_of(c->kind)},
                          {"message_bytes", c->message_bytes},
                          {"group_size", c->group_size}};
  }
  if (kernel.launch) {
    json["grid"] = kernel.launch->grid;
    json["block"] = kernel.launch->block;
  }
  if (kernel.measured_time_s) json["measured_time_s"] = *kernel.measured_time_s;
  return json;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class List, class ToJson>
std::string lines(const List& list, ToJson to) {
  std::string text;
  for (const auto& item : list)
    text += fmt::format("{}\n    {}", text.empty() ? "" : ",", dumped(to(item)));
  return text;
}

}  // namespace

Trace parse_trace_json(std::string_view text, std::string name) {
  const JsonDocument document = JsonDocument::parse(text, std::move(name));
  const JsonNode root = document.root();
  root.expect_keys({"schema", "name", "provenance", "kernels", "segments"});
  document.expect_schema(trace_schema);
  Trace trace;
  trace.name = root.at("name").text();
  const JsonNode provenance = root.at("provenance");
  provenance.expect_keys({"generator", "source", "options"});
  trace.provenance = {provenance.at("generator").text(), provenance.at("source").text(),
                      provenance.at("options").text()};
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
        .name = item.at("name").text(), .repeat = read_small(item.at("repeat")), .launches = {}};
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
      "{{\n  \"schema\": {},\n  \"name\": {},\n  \"provenance\": {},\n  \"kernels\": [{}\n  ],\n"
      "  \"segments\": [{}\n  ]\n}}\n",
      trace_schema, dumped(trace.name), dumped(provenance), lines(trace.kernels, kernel_json),
      lines(trace.segments, segment_json));
}

std::vector<std::string> shipped_traces() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_traces()) names.emplace_back(file.name);
  return names;
}

Trace load_trace(std::string_view name_or_path) {
  for (const EmbeddedFile& file : embedded_traces()) {
    if (file.name == name_or_path) return parse_trace_json(file.text, std::string(file.name));
  }
  const std::filesystem::path path(name_or_path);
  if (!path.has_extension() && !path.has_parent_path()) {
    throw UsageError(fmt::format("there is no trace '{}'{}", name_or_path,
                                 did_you_mean(name_or_path, shipped_traces())),
                     {.in = {}, .hint = "give a shipped name or the path of a .json or .csv file"});
  }
  const std::string text = read_file(path);
  if (path.extension() == ".csv") return parse_trace_csv(text, path.string());
  return parse_trace_json(text, path.string());
}

}  // namespace rubato
