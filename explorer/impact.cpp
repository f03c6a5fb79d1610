#include "explorer/impact.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/json.hpp"

namespace rubato {

namespace {

constexpr double j_per_kwh = 3.6e6, s_per_h = 3600.0, g_per_kg = 1000.0;

SourcedNumber sourced(const JsonNode& root, std::string_view key, Range range) {
  const JsonNode node = root.at(key);
  if (!node.is_object())
    node.fail("a number alone; expected {value = ..., source = \"...\"}",
              "a result is worth what its inputs are: say where each is from");
  const bool price = key == "price_per_kwh";
  if (price) {
    node.expect_keys({"value", "currency", "source"});
  } else {
    node.expect_keys({"value", "source"});
  }
  SourcedNumber number{std::string(key), node.at("value").number(range), node.at("source").text()};
  if (number.source.find_first_not_of(" \t\n") == std::string::npos)
    node.at("source").fail("the source is empty");
  return number;
}

std::optional<SourcedNumber> optional_sourced(const JsonNode& root, std::string_view key,
                                              Range range) {
  if (!root.find(key)) return std::nullopt;
  return sourced(root, key, range);
}

}  // namespace

std::vector<SourcedNumber> ImpactInputs::given() const {
  std::vector<SourcedNumber> list{tokens, gpus, pue, price_per_kwh, grid_gco2e_per_kwh};
  for (const auto& number : {host_w_per_gpu, tokens_per_iteration, gpus_per_replica}) {
    if (number) list.push_back(*number);
  }
  return list;
}

ImpactInputs parse_impact_inputs(std::string_view text, std::string name) {
  const JsonDocument document = JsonDocument::parse_toml(text, std::move(name));
  document.expect_schema(ImpactInputs::schema);
  const JsonNode root = document.root();
  root.expect_keys({"schema", "tokens", "gpus", "pue", "price_per_kwh", "grid_gco2e_per_kwh"},
                   {"host_w_per_gpu", "tokens_per_iteration", "gpus_per_replica"});
  ImpactInputs inputs{
      .tokens = sourced(root, "tokens", Range::positive),
      .gpus = sourced(root, "gpus", Range::positive),
      .pue = sourced(root, "pue", Range::positive),
      .price_per_kwh = sourced(root, "price_per_kwh", Range::non_negative),
      .grid_gco2e_per_kwh = sourced(root, "grid_gco2e_per_kwh", Range::non_negative),
      .currency = root.at("price_per_kwh").at("currency").text(),
      .host_w_per_gpu = optional_sourced(root, "host_w_per_gpu", Range::non_negative),
      .tokens_per_iteration = optional_sourced(root, "tokens_per_iteration", Range::positive),
      .gpus_per_replica = optional_sourced(root, "gpus_per_replica", Range::positive)};
  if (inputs.pue.value < 1.0)
    root.at("pue").at("value").fail(
        fmt::format("found {}; expected a number >= 1", inputs.pue.value));
  if (inputs.gpus.value != std::floor(inputs.gpus.value))
    root.at("gpus").at("value").fail(
        fmt::format("found {}; expected a whole number", inputs.gpus.value));
  return inputs;
}

std::string impact_template() {
  return R"(# What a training run is and costs. Nothing has a default: put in your own numbers, and say where each is from.
# Use it:  rubato impact FILE --db results.db
schema = 1

# Tokens of the whole run.
tokens = {value = nan, source = ""}
# GPUs it runs on; a multiple of the GPUs that share a replica.
gpus = {value = nan, source = ""}
# Energy of the building over energy of its computers, >= 1.
pue = {value = nan, source = ""}
# What the operator pays per kWh of the building.
price_per_kwh = {value = nan, currency = "", source = ""}
# Emissions of the grid, grams of CO2 equivalent per kWh; say which place, year and method.
grid_gco2e_per_kwh = {value = nan, source = ""}

# Power of the rest of the server per GPU, W. Without it only the boards are counted.
# host_w_per_gpu = {value = nan, source = ""}

# For captured runs and fixed traces; generated ones know theirs. Tokens of one replica's iteration (one step of a
# captured run), and the GPUs of a replica.
# tokens_per_iteration = {value = nan, source = ""}
# gpus_per_replica = {value = nan, source = ""}
)";
}

Impact impact(const ImpactInputs& inputs, const IterationWork& work,
              const IterationTotals& iteration) {
  const double gpus = inputs.gpus.value;
  const double replicas = gpus / work.gpus_per_replica;
  if (replicas < 1.0 || replicas != std::floor(replicas)) {
    throw DataError(
        fmt::format("{} GPUs cannot be divided into replicas of {}", gpus, work.gpus_per_replica),
        {.in = {}, .hint = "gpus must be a multiple of the GPUs of a replica"});
  }
  const double iterations = inputs.tokens.value / (work.tokens * replicas);
  const double time_s = iterations * iteration.time_s;
  const double host_w = inputs.host_w_per_gpu ? inputs.host_w_per_gpu->value : 0.0;
  Impact total;
  total.wall_time_h = time_s / s_per_h;
  total.gpu_kwh = iterations * iteration.energy_j * gpus / j_per_kwh;
  total.host_kwh = time_s * host_w * gpus / j_per_kwh;
  total.facility_kwh = (total.gpu_kwh + total.host_kwh) * inputs.pue.value;
  total.cost = total.facility_kwh * inputs.price_per_kwh.value;
  total.kg_co2e = total.facility_kwh * inputs.grid_gco2e_per_kwh.value / g_per_kg;
  return total;
}

}  // namespace rubato
