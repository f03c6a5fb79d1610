#include "traces/import/kineto/head.hpp"

#include <simdjson.h>

#include "common/error.hpp"

namespace rubato::kineto {

namespace {

namespace dom = simdjson::dom;

std::optional<std::uint32_t> rank_at(const dom::element& object, std::string_view key) {
  std::int64_t value = 0;
  return object.at_key(key).get(value) == simdjson::SUCCESS ? rank_of(value) : std::nullopt;
}

std::string text_at(const dom::element& object, std::string_view key) {
  std::string_view text;
  return object.at_key(key).get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

void read_devices(const dom::element& list, Events& events) {
  dom::array devices;
  if (list.get(devices) != simdjson::SUCCESS) return;
  for (const dom::element device : devices) {
    const auto number_at = [&](std::string_view key) {
      std::int64_t value = 0;
      return device.at_key(key).get(value) == simdjson::SUCCESS ? std::optional(value)
                                                                : std::nullopt;
    };
    NamedDevice& one = events.devices.emplace_back(NamedDevice{
        .id = {},
        .name = text_at(device, "name"),
        .compute_capability = capability_of(number_at("computeMajor"), number_at("computeMinor")),
        .sm_count = sms_of(number_at("numSms"))});
    const auto id = number_at("id");
    if (id && *id >= 0 && *id <= most_devices) one.id = static_cast<std::uint32_t>(*id);
  }
}

void read_distribution(const dom::element& info, Events& events) {
  events.rank = rank_at(info, "rank");
  events.world_size = rank_at(info, "world_size");
  dom::array groups;
  if (info.at_key("pg_config").get(groups) != simdjson::SUCCESS) return;
  for (const dom::element entry : groups) {
    CaptureGroup group{.name = text_at(entry, "pg_name"),
                       .description = text_at(entry, "pg_desc"),
                       .size = rank_at(entry, "pg_size"),
                       .ranks = {}};
    if (group.name.empty()) continue;
    dom::array ranks;
    if (entry.at_key("ranks").get(ranks) == simdjson::SUCCESS) {
      for (const dom::element rank : ranks) {
        std::int64_t value = -1;
        if (rank.get(value) == simdjson::SUCCESS && rank_of(value))
          group.ranks.push_back(*rank_of(value));
      }
    }
    if (group.size && group.ranks.size() != *group.size) group.ranks.clear();
    events.groups.push_back(std::move(group));
  }
}

}  // namespace

bool is_head_member(std::string_view key) {
  return key == "baseTimeNanoseconds" || key == "deviceProperties" || key == "distributedInfo";
}

void read_head_member(std::string_view key, std::string_view value, Events& events) {
  dom::parser parser;
  dom::element root;
  const simdjson::error_code error = parser.parse(value.data(), value.size(), false).get(root);
  if (error != simdjson::SUCCESS) throw DataError(simdjson::error_message(error));
  std::int64_t base = 0;
  if (key == "baseTimeNanoseconds") {
    if (root.get(base) == simdjson::SUCCESS) events.epoch_ns = base;
  } else if (key == "distributedInfo") {
    read_distribution(root, events);
  } else if (key == "deviceProperties") {
    read_devices(root, events);
  }
}

std::optional<std::uint32_t> rank_of(std::optional<std::int64_t> value) {
  constexpr std::int64_t most_ranks = 10'000'000;
  if (!value || *value < 0 || *value > most_ranks) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

}  // namespace rubato::kineto
