#include "traces/files/kernel_json.hpp"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "traces/plausible.hpp"

namespace rubato {

namespace {

std::array<std::uint32_t, 3> read_triple(const JsonNode& node) {
  const auto items = node.items();
  if (items.size() != 3) node.fail("expected three whole numbers");
  std::array<std::uint32_t, 3> triple{};
  for (std::size_t i = 0; i < 3; ++i) triple[i] = read_count_32(items[i]);
  return triple;
}

}  // namespace

std::uint32_t read_count_32(const JsonNode& node) {
  const std::uint64_t value = node.count();
  if (value > std::numeric_limits<std::uint32_t>::max())
    node.fail(fmt::format("found {}; expected a whole number below 2^32", value));
  return static_cast<std::uint32_t>(value);
}

Kernel read_kernel(const JsonNode& node) {
  node.expect_keys({"name", "label", "class", "pass", "dtype", "work_source"},
                   {"flops", "dram_bytes", "gemm", "attention", "collective", "grid", "block",
                    "measured_time_s"});
  Kernel kernel;
  kernel.name = node.at("name").text();
  kernel.label = node.at("label").text();
  kernel.kind = read_name<KernelClass>(node.at("class"));
  kernel.pass = read_name<Pass>(node.at("pass"));
  kernel.dtype = read_name<Dtype>(node.at("dtype"));
  kernel.work_source = read_name<WorkSource>(node.at("work_source"));
  kernel.flops = node.optional_number("flops", Range::non_negative);
  kernel.dram_bytes = node.optional_number("dram_bytes", Range::non_negative);
  kernel.measured_time_s = node.optional_number("measured_time_s", Range::positive);
  if (const auto wrong = implausible_launch_time(kernel.measured_time_s))
    node.at("measured_time_s").fail(*wrong);
  if (const auto gemm = node.find("gemm")) {
    gemm->expect_keys({"m", "n", "k", "batch"});
    kernel.gemm = GemmShape{gemm->at("m").count(), gemm->at("n").count(), gemm->at("k").count(),
                            gemm->at("batch").count()};
  }
  if (const auto attention = node.find("attention")) {
    attention->expect_keys(
        {"batch", "q_tokens", "kv_tokens", "heads", "kv_heads", "head_dim", "causal"});
    kernel.attention =
        AttentionShape{attention->at("batch").count(),     attention->at("q_tokens").count(),
                       attention->at("kv_tokens").count(), attention->at("heads").count(),
                       attention->at("kv_heads").count(),  attention->at("head_dim").count(),
                       attention->at("causal").boolean()};
  }
  if (const auto collective = node.find("collective")) {
    collective->expect_keys({"kind", "message_bytes", "group_size"}, {"stride"});
    kernel.collective = Collective{read_name<CollectiveKind>(collective->at("kind")),
                                   collective->at("message_bytes").number(Range::positive),
                                   read_count_32(collective->at("group_size")), 1};
    if (const auto stride = collective->find("stride"))
      kernel.collective->stride = read_count_32(*stride);
  }
  if (node.find("grid") || node.find("block")) {
    kernel.launch = LaunchShape{read_triple(node.at("grid")), read_triple(node.at("block"))};
  }
  return kernel;
}

nlohmann::ordered_json kernel_json(const Kernel& kernel) {
  using Json = nlohmann::ordered_json;
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
  if (const auto& a = kernel.attention)
    json["attention"] = {{"batch", a->batch},         {"q_tokens", a->q_tokens},
                         {"kv_tokens", a->kv_tokens}, {"heads", a->heads},
                         {"kv_heads", a->kv_heads},   {"head_dim", a->head_dim},
                         {"causal", a->causal}};
  if (const auto& c = kernel.collective) {
    json["collective"] = {{"kind", name_of(c->kind)},
                          {"message_bytes", c->message_bytes},
                          {"group_size", c->group_size}};
    if (c->stride != 1) json["collective"]["stride"] = c->stride;
  }
  if (kernel.launch) {
    json["grid"] = kernel.launch->grid;
    json["block"] = kernel.launch->block;
  }
  if (kernel.measured_time_s) json["measured_time_s"] = *kernel.measured_time_s;
  return json;
}

}  // namespace rubato
