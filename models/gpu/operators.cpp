#include "models/gpu/operators.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/embedded.hpp"
#include "common/error.hpp"
#include "common/json.hpp"
#include "common/suggest.hpp"
#include "common/text.hpp"
#include "traces/files/json_names.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_architectures();

namespace {

std::map<Dtype, MathPath> read_paths(const JsonNode& node) {
  std::map<Dtype, MathPath> paths;
  for (const std::string& key : node.keys()) {
    const auto dtype = from_name<Dtype>(key);
    if (!dtype || *dtype == Dtype::unknown)
      node.fail(
          fmt::format("unknown data type '{}'{}", key, did_you_mean(key, all_names<Dtype>())));
    const JsonNode path = node.at(key);
    path.expect_keys({"flop_per_cycle_sm", "share", "core_pj_per_flop"}, {"source"});
    paths[*dtype] = {.flop_per_cycle_sm = path.at("flop_per_cycle_sm").number(Range::positive),
                     .share = path.at("share").number(Range::positive),
                     .core_pj_per_flop = path.at("core_pj_per_flop").number(Range::positive)};
  }
  if (!paths.contains(Dtype::fp32)) node.fail("key 'fp32' is missing");
  return paths;
}

ProductCosts read_products(const JsonNode& node) {
  node.expect_keys({"tiles", "k_step", "item_cycles", "split_cycles", "operand_bytes_per_cycle",
                    "whole_waves", "launch_s", "overlap"},
                   {"source", "dram_factor"});
  ProductCosts costs{
      .tiles = {},
      .k_step = node.at("k_step").number(Range::positive),
      .item_cycles = node.at("item_cycles").number(Range::non_negative),
      .split_cycles = node.at("split_cycles").number(Range::non_negative),
      .operand_bytes_per_cycle = node.at("operand_bytes_per_cycle").number(Range::positive),
      .whole_waves = node.at("whole_waves").number(Range::fraction),
      .launch_s = node.at("launch_s").number(Range::positive),
      .overlap = node.at("overlap").number(Range::positive),
      .dram_factor = node.optional_number("dram_factor", Range::positive).value_or(1.0)};
  for (const JsonNode& tile : node.at("tiles").items()) {
    const std::vector<double> sides = tile.numbers(Range::positive);
    if (sides.size() != 2) tile.fail("expected [m, n]");
    costs.tiles.push_back({sides[0], sides[1]});
  }
  if (costs.tiles.empty()) node.at("tiles").fail("the list is empty; expected at least one tile");
  return costs;
}

AttentionCosts read_attention(const JsonNode& node) {
  node.expect_keys({"share", "item_cycles", "launch_s", "overlap_prefill", "overlap_decode",
                    "core_pj_per_flop", "backward"},
                   {"source", "dram_factor", "named"});
  AttentionCosts costs{
      .share = node.at("share").number(Range::positive),
      .named = {},
      .backward = node.at("backward").number(Range::positive),
      .item_cycles = node.at("item_cycles").number(Range::positive),
      .launch_s = node.at("launch_s").number(Range::positive),
      .overlap_prefill = node.at("overlap_prefill").number(Range::positive),
      .overlap_decode = node.at("overlap_decode").number(Range::positive),
      .core_pj_per_flop = node.at("core_pj_per_flop").number(Range::positive),
      .dram_factor = node.optional_number("dram_factor", Range::positive).value_or(1.0)};
  if (const auto shares = node.find("named")) {
    for (const std::string& part : shares->keys())
      costs.named[part] = shares->at(part).number(Range::positive);
  }
  return costs;
}

// Keys are classes, "CLASS:PART|PART" of those kernels with a part of a name, and ":PART" of any
// class.
std::vector<StreamingCosts> read_streaming(const JsonNode& node) {
  std::vector<StreamingCosts> named, whole, rest;
  for (const std::string& key : node.keys()) {
    const auto colon = std::min(key.find(':'), key.size());
    const std::string kind = key.substr(0, colon);
    const auto known = from_name<KernelClass>(kind.empty() ? "other" : kind);
    if (!known)
      node.fail(
          fmt::format("unknown class '{}'{}", kind, did_you_mean(kind, all_names<KernelClass>())));
    const JsonNode costs = node.at(key);
    costs.expect_keys({"elements_per_cycle_sm", "dram_factor", "launch_s", "overlap"});
    const std::string_view names = std::string_view(key).substr(std::min(colon + 1, key.size()));
    const auto parts = names.empty() ? std::vector<std::string_view>() : split(names, '|');
    auto& list = colon < key.size() ? named : *known == KernelClass::other ? rest : whole;
    list.push_back(
        {.kind = *known,
         .named = {parts.begin(), parts.end()},
         .elements_per_cycle_sm = costs.at("elements_per_cycle_sm").number(Range::positive),
         .dram_factor = costs.at("dram_factor").number(Range::positive),
         .launch_s = costs.at("launch_s").number(Range::positive),
         .overlap = costs.at("overlap").number(Range::positive)});
  }
  if (rest.empty()) node.fail("key 'other' is missing");
  named.insert(named.end(), whole.begin(), whole.end());
  named.push_back(rest.front());
  return named;
}

// The file of an architecture, with what it is like.
nlohmann::ordered_json architecture_json(std::string_view name, const std::string& where) {
  const auto files = embedded_architectures();
  const auto file = std::ranges::find(files, name, &EmbeddedFile::name);
  if (file == files.end())
    throw DataError(fmt::format("{}: architecture: '{}' is not known{}", where, name,
                                did_you_mean(name, architectures())));
  auto own = nlohmann::ordered_json::parse(file->text);
  const auto like = own.find("like");
  if (like == own.end()) return own;
  auto merged = architecture_json(like->get<std::string>(), where);
  own.erase("like");
  merged.merge_patch(own);
  return merged;
}

}  // namespace

std::vector<std::string> architectures() { return names_of(embedded_architectures()); }

Operators read_operators(std::string_view architecture, std::string_view overrides,
                         const std::string& where) {
  nlohmann::ordered_json merged = architecture_json(architecture, where);
  merged.merge_patch(nlohmann::ordered_json::parse(overrides));
  Operators found{.paths = {},
                  .tensor = {},
                  .cuda = {},
                  .attention = {},
                  .streaming = {},
                  .voltage = {},
                  .source = {},
                  .text = json_text(merged)};
  const JsonDocument document = JsonDocument::parse(found.text, where + ": operators");
  const JsonNode root = document.root();
  root.expect_keys({"source", "paths", "tensor", "cuda", "attention", "streaming", "voltage",
                    "core_pj_per_byte", "core_pj_per_sm_cycle", "l2_speedup", "l2_mb"},
                   {"stream_dram_factor"});
  found.source = root.at("source").text();
  found.paths = read_paths(root.at("paths"));
  found.tensor = read_products(root.at("tensor"));
  found.cuda = read_products(root.at("cuda"));
  found.attention = read_attention(root.at("attention"));
  found.streaming = read_streaming(root.at("streaming"));
  const JsonNode voltage = root.at("voltage");
  voltage.expect_keys({"knee_mhz", "slope_per_ghz"}, {"source"});
  found.voltage = {voltage.at("knee_mhz").number(Range::positive),
                   voltage.at("slope_per_ghz").number(Range::non_negative)};
  found.stream_dram_factor =
      root.optional_number("stream_dram_factor", Range::positive).value_or(1.0);
  found.core_pj_per_byte = root.at("core_pj_per_byte").number(Range::positive);
  found.core_pj_per_sm_cycle = root.at("core_pj_per_sm_cycle").number(Range::non_negative);
  found.l2_speedup = root.at("l2_speedup").number(Range::positive);
  found.l2_mb = root.at("l2_mb").number(Range::positive);
  return found;
}

}  // namespace rubato
