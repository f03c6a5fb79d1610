#include "traces/files/capture_parts.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "traces/files/kernel_json.hpp"

namespace rubato {

namespace {

std::optional<std::int32_t> optional_priority(const JsonNode& node) {
  const auto found = node.find("priority");
  if (!found) return std::nullopt;
  const std::int64_t value = found->integer();
  if (!std::in_range<std::int32_t>(value)) found->fail("expected a whole number of 32 bits");
  return static_cast<std::int32_t>(value);
}

std::optional<std::uint32_t> optional_32(const JsonNode& node, std::string_view key) {
  const auto found = node.find(key);
  return found ? std::optional(read_count_32(*found)) : std::nullopt;
}

std::optional<std::uint64_t> optional_count(const JsonNode& node, std::string_view key) {
  const auto found = node.find(key);
  return found ? std::optional(found->count()) : std::nullopt;
}

using Column = std::vector<std::optional<std::int64_t>>;

// A required column has no null; an optional one may be missing.
Column column(const JsonNode& node, std::string_view key, std::size_t size, bool required) {
  const auto found = node.find(key);
  if (!found) return Column(size);
  Column values = found->integers();
  if (values.size() != size)
    found->fail(fmt::format("has {} values, 'kernel' has {}", values.size(), size));
  const auto hole =
      std::ranges::find_if(values, [](const auto& value) { return !value.has_value(); });
  if (required && hole != values.end())
    found->fail(fmt::format("value {} is null; expected a whole number", hole - values.begin()));
  return values;
}

// Names of an enumeration; empty if there is no such column.
template <class Enum>
std::vector<Enum> name_column(const JsonNode& node, std::string_view key) {
  std::vector<Enum> values;
  const auto found = node.find(key);
  if (!found) return values;
  for (const JsonNode& name : found->items()) values.push_back(read_name<Enum>(name));
  return values;
}

// A value that is a position in some list. CaptureReader::finish() checks that the list has it.
std::uint32_t position(const JsonNode& node, std::string_view key, std::int64_t value) {
  if (value < 0 || !std::in_range<std::uint32_t>(value))
    node.fail(fmt::format("{} {} does not exist", key, value));
  return static_cast<std::uint32_t>(value);
}
std::optional<std::uint32_t> position(const JsonNode& node, std::string_view key,
                                      const std::optional<std::int64_t>& value) {
  return value ? std::optional(position(node, key, *value)) : std::nullopt;
}

std::int64_t duration(const JsonNode& node, std::size_t i, std::int64_t duration_ns) {
  if (duration_ns < 0 || duration_ns > longest_launch_ns)
    node.fail(fmt::format("duration_ns[{}] is {}; expected 0 to a day", i, duration_ns));
  return duration_ns;
}

}  // namespace

CaptureDevice read_device(const JsonNode& node) {
  node.expect_keys({"id", "name"}, {"compute_capability", "sm_count"});
  CaptureDevice device{.id = read_count_32(node.at("id")), .name = node.at("name").text()};
  if (const auto said = node.find("compute_capability")) device.compute_capability = said->number();
  device.sm_count = optional_32(node, "sm_count");
  return device;
}

CaptureStream read_stream(const JsonNode& node) {
  node.expect_keys({"device", "id"}, {"priority"});
  return {read_count_32(node.at("device")), node.at("id").integer(), optional_priority(node)};
}

CaptureGroup read_group(const JsonNode& node) {
  node.expect_keys({"name", "description"}, {"size", "ranks"});
  CaptureGroup group{.name = node.at("name").text(),
                     .description = node.at("description").text(),
                     .size = optional_32(node, "size"),
                     .ranks = {}};
  if (const auto ranks = node.find("ranks")) {
    for (const JsonNode& rank : ranks->items()) group.ranks.push_back(read_count_32(rank));
  }
  return group;
}

CapturedCollective read_collective(const JsonNode& node) {
  node.expect_keys({"kind"},
                   {"group", "sequence", "in_bytes", "out_bytes", "source_rank", "target_rank"});
  return {.kind = read_name<CollectiveKind>(node.at("kind")),
          .group = optional_32(node, "group"),
          .sequence = optional_count(node, "sequence"),
          .in_bytes = optional_count(node, "in_bytes"),
          .out_bytes = optional_count(node, "out_bytes"),
          .source_rank = optional_32(node, "source_rank"),
          .target_rank = optional_32(node, "target_rank")};
}

LaunchColumns read_launches(const JsonNode& node) {
  node.expect_keys({"kernel", "stream", "start_ns", "duration_ns"},
                   {"launch_ns", "step", "pass", "call", "collective"});
  const std::size_t size = node.at("kernel").integers().size();
  const Column kernels = column(node, "kernel", size, true),
               streams = column(node, "stream", size, true),
               starts = column(node, "start_ns", size, true),
               durations = column(node, "duration_ns", size, true),
               launch_times = column(node, "launch_ns", size, false),
               calls = column(node, "call", size, false),
               collectives = column(node, "collective", size, false),
               steps = column(node, "step", size, false);
  const auto passes = name_column<Pass>(node, "pass");
  if (!passes.empty() && passes.size() != size)
    node.at("pass").fail(fmt::format("has {} values, 'kernel' has {}", passes.size(), size));
  LaunchColumns block{.launches = std::vector<CapturedLaunch>(size), .own_pass = !passes.empty()};
  for (std::size_t i = 0; i < size; ++i) {
    CapturedLaunch& launch = block.launches[i];
    launch.kernel = id_at<KernelId>(position(node, "kernel", *kernels[i]));
    launch.stream = position(node, "stream", *streams[i]);
    launch.start_ns = *starts[i];
    launch.duration_ns = duration(node, i, *durations[i]);
    launch.launch_ns = launch_times[i];
    launch.call = position(node, "call", calls[i]);
    launch.collective = position(node, "collective", collectives[i]);
    launch.step = position(node, "step", steps[i]);
    if (!passes.empty()) launch.pass = passes[i];
  }
  return block;
}

std::vector<CapturedCall> read_calls(const JsonNode& node) {
  node.expect_keys({"kind", "thread", "start_ns", "duration_ns"},
                   {"stream", "record", "recorded_stream"});
  const auto kinds = name_column<CallKind>(node, "kind");
  const std::size_t size = kinds.size();
  const Column threads = column(node, "thread", size, true),
               starts = column(node, "start_ns", size, true),
               durations = column(node, "duration_ns", size, true),
               streams = column(node, "stream", size, false),
               records = column(node, "record", size, false),
               recorded = column(node, "recorded_stream", size, false);
  std::vector<CapturedCall> calls(size);
  for (std::size_t i = 0; i < size; ++i) {
    calls[i] = {.kind = kinds[i],
                .thread = position(node, "thread", *threads[i]),
                .start_ns = *starts[i],
                .duration_ns = duration(node, i, *durations[i]),
                .stream = position(node, "stream", streams[i]),
                .record = position(node, "record", records[i]),
                .recorded_stream = position(node, "recorded_stream", recorded[i])};
  }
  return calls;
}

}  // namespace rubato
