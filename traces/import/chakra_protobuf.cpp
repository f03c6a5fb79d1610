#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/import/chakra_nodes.hpp"

namespace rubato {

namespace {

// One field of a message. Of wire type 0 (varint) `value` holds its content, else `bytes` does.
struct Field {
  std::uint64_t number = 0;  ///< which field, as in et_def.proto
  std::uint64_t wire = 0;
  std::uint64_t value = 0;
  std::string_view bytes;
};

class ProtobufMessage {
 public:
  explicit ProtobufMessage(std::string_view bytes) : rest_(bytes) {}

  [[nodiscard]] bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    field = {tag >> 3, tag & 7, 0, {}};
    switch (field.wire) {
      case 0: field.value = varint(); break;
      case 1: field.bytes = take(8); break;
      case 2: field.bytes = take(varint()); break;
      case 5: field.bytes = take(4); break;
      default: throw DataError(fmt::format("wire type {} is unknown", field.wire));
    }
    return true;
  }

  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    constexpr int most_bits = 64, group = 7;
    for (int shift = 0; shift < most_bits; shift += group) {
      if (rest_.empty()) throw DataError("a number is cut off");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    throw DataError("a number is too long");
  }

  [[nodiscard]] std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) throw DataError("the message ends early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }

 private:
  std::string_view rest_;
};

void add_ids(const Field& field, std::vector<std::uint64_t>& ids) {
  if (field.wire == 0) return ids.push_back(field.value);
  ProtobufMessage packed(field.bytes);
  while (packed.left() > 0) ids.push_back(packed.varint());
}

void read_attribute(std::string_view bytes, ChakraNode& node) {
  enum : std::uint64_t { name = 1, int32 = 7, int64 = 9, uint32 = 11, uint64 = 13, boolean = 27 };
  ProtobufMessage message(bytes);
  Field field;
  std::string_view key;
  std::optional<std::uint64_t> value;
  while (message.next(field)) {
    if (field.number == name) key = field.bytes;
    if (field.wire == 0 && field.number >= int32 && field.number <= boolean) value = field.value;
  }
  if (!value) return;
  if (key == "is_cpu_op") node.on_device = *value == 0;
  if (key == "tid") node.stream = static_cast<std::int64_t>(*value);
  if (key == "comm_type") node.comm_type = *value;
  if (key == "comm_size") node.comm_bytes = *value;
}

ChakraNode read_node(std::string_view bytes) {
  ChakraNode node;
  ProtobufMessage message(bytes);
  Field field;
  while (message.next(field)) {
    switch (field.number) {
      case 1: node.id = field.value; break;
      case 2: node.name = field.bytes; break;
      case 3: node.type = field.value; break;
      case 4: add_ids(field, node.callers); break;
      case 5: add_ids(field, node.data); break;
      case 6: node.start_us = static_cast<double>(field.value); break;
      case 7: node.duration_us = static_cast<double>(field.value); break;
      case 10: read_attribute(field.bytes, node); break;
      default: break;  // inputs, outputs, and what later versions add
    }
  }
  return node;
}

}  // namespace

bool has_times(const ChakraNode& node) {
  constexpr double ns_per_us = 1000.0;
  constexpr double most_us = static_cast<double>(max_time_ns) / ns_per_us;
  return std::abs(node.start_us) <= most_us && std::abs(node.duration_us) <= most_us;
}

bool begins_as_chakra_protobuf(std::string_view head) {
  try {
    ProtobufMessage file(head);
    ProtobufMessage metadata(file.take(file.varint()));
    Field field;
    bool any = false;
    while (metadata.next(field)) {  // a version (1), attributes (2)
      if (field.number < 1 || field.number > 2) return false;
      any = true;
    }
    if (!any || file.left() == 0) return any;
    const std::uint64_t length = file.varint();
    if (length > file.left()) return true;  // beyond the head, or cut off
    ProtobufMessage node(file.take(length));
    while (node.next(field)) {
    }
    return true;
  } catch (const DataError&) {
    return false;
  }
}

void read_chakra_protobuf(const std::filesystem::path& path, const ImportOptions& options,
                          std::vector<ChakraNode>& nodes) {
  std::string damage;
  const std::string text =
      read_expanded(path, options.max_expanded_bytes, options.partial ? &damage : nullptr);
  ProtobufMessage file(text);
  bool metadata = true;
  while (file.left() > 0) {
    const std::size_t at = text.size() - file.left();
    try {
      const std::string_view bytes = file.take(file.varint());
      if (!metadata) nodes.push_back(read_node(bytes));
      metadata = false;
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: byte {}: {}", printable(path.string()), at, error.what()),
                      {.in = {}, .hint = "expected a Chakra execution trace in protobuf form"});
    }
  }
  if (!damage.empty()) throw DataError(damage);
}

}  // namespace rubato
