#pragma once
// The arguments of Kineto's events, read in one go from front to back.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <simdjson.h>

#include "common/json_fields.hpp"
#include "traces/import/kineto/events.hpp"

namespace rubato::kineto {

/// The key as written, escapes and all.
[[nodiscard]] inline std::string_view key_of(simdjson::ondemand::field& field) {
  const char* const key = field.key().raw();
  const char* end = key;
  while (*end != '"') ++end;
  return {key, static_cast<std::size_t>(end - key)};
}

/// The field that a loop over an object has found.
/// @throws simdjson::simdjson_error where the text is no JSON
[[nodiscard]] inline simdjson::ondemand::field field_of(
    simdjson::simdjson_result<simdjson::ondemand::field>&& found) {
  simdjson::ondemand::field field;
  const simdjson::error_code error = std::move(found).get(field);
  if (error != simdjson::SUCCESS) throw simdjson::simdjson_error(error);
  return field;
}

/// Calls use(key, value) for every field of an object. A value that is
/// not looked at is passed over.
/// @throws simdjson::simdjson_error for what is no JSON
template <class Use>
void for_fields(simdjson::ondemand::object& object, const Use& use) {
  for (auto found : object) {
    simdjson::ondemand::field field = field_of(std::move(found));
    const std::string_view key = key_of(field);
    use(key, field.value());
  }
}

/// The number, if the value is a whole number or a text that holds one.
[[nodiscard]] std::optional<std::int64_t> integer_of(simdjson::ondemand::value value);

/// The whole number that a text is, blanks around it aside; nothing if it is none.
[[nodiscard]] std::optional<std::int64_t> integer_in(std::string_view text);

/// The whole number at the end of a label: "7", "stream 7", "GPU 0".
[[nodiscard]] std::optional<std::int64_t> number_behind(std::string_view label);

/// Decimal microseconds as whole nanoseconds; a double would lose the last digits. Nothing for what
/// stands for an unknown time: null, not a number, or beyond all times, as the -2^63 that Kineto
/// takes for the end of what had not ended.
/// @throws DataError for what is no number
[[nodiscard]] std::optional<std::int64_t> ns_of_us(std::string_view text);

/// Reads the `args` objects of events. What several events share goes into Events.
class ArgsReader {
 public:
  explicit ArgsReader(Events& events) : events_(events) {}

  /// @param device, stream  set where the arguments say them
  void device_work(simdjson::ondemand::object args, DeviceWork& work,
                   std::optional<std::int64_t>& device, std::optional<std::int64_t>& stream);
  [[nodiscard]] std::optional<std::int64_t> correlation(simdjson::ondemand::object args);
  void sync(simdjson::ondemand::object args);

  /// External id and shapes of an operator.
  void cpu_operator(simdjson::ondemand::object args, Span& span);

  /// Bytes of the tensors that an annotation of a collective names; nothing if one of them is not
  /// understood.
  [[nodiscard]] std::optional<std::uint64_t> sent_bytes(simdjson::ondemand::object args);

 private:
  // The JSON text of the arguments that say what an operator was called with.
  struct Operands {
    std::string_view dims, types, values;
  };
  static void take_operand(std::string_view key, simdjson::ondemand::value value, Operands& out);
  std::uint32_t call_of(const Operands& operands, std::uint32_t name);
  OperatorCall parse_call(const Operands& operands, std::uint32_t name);
  simdjson::ondemand::array list(std::string_view text);

  Events& events_;
  std::unordered_map<std::string, std::uint32_t> call_ids_;  ///< by text: layers repeat their calls
  std::string key_;
  simdjson::ondemand::parser parser_;      ///< of operands
  simdjson::ondemand::document document_;  ///< of operands
};

}  // namespace rubato::kineto
