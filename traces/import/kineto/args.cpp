#include "traces/import/kineto/args.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/json_parts.hpp"
#include "common/text.hpp"
#include "traces/import/kernel_names.hpp"
#include "traces/import/kineto/head.hpp"

namespace rubato::kineto {

namespace {

namespace ondemand = simdjson::ondemand;

std::optional<std::string_view> text_of(ondemand::value value) {
  std::string_view text;
  return is_there(value.get_string().get(text)) ? std::optional(text) : std::nullopt;
}

std::array<std::uint32_t, 3> dim3_of(ondemand::value value) {
  std::array<std::uint32_t, 3> out{1, 1, 1};
  ondemand::array values;
  if (!is_there(value.get_array().get(values))) return {0, 0, 0};
  std::size_t i = 0;
  bool fits = true;
  for (auto item : values) {
    ondemand::value size;
    const auto number = is_there(item.get(size)) ? integer_of(size) : std::nullopt;
    if (number && *number >= 0 && i < out.size()) {
      fits = fits && std::in_range<std::uint32_t>(*number);
      out[i] = static_cast<std::uint32_t>(*number);
    }
    ++i;
  }
  return fits ? out : std::array<std::uint32_t, 3>{0, 0, 0};
}

// "[0, 1]"; nothing where the list is shortened with dots or is no list of ranks.
std::vector<std::uint32_t> ranks_of(std::string_view text) {
  std::vector<std::uint32_t> ranks;
  if (!text.starts_with('[') || !text.ends_with(']')) return {};
  for (const std::string_view part : split(text.substr(1, text.size() - 2), ',')) {
    const auto rank = rank_of(integer_in(part));
    if (!rank) return {};
    ranks.push_back(*rank);
  }
  return ranks;
}

// Arguments of a collective, as they come.
struct MessageArgs {
  std::optional<std::string> kind, type;
  std::optional<std::int64_t> in_elements, out_elements;
  Message message;

  bool take(std::string_view key, ondemand::value value) {
    const auto text = [&] { return std::string(text_of(value).value_or("")); };
    if (key == "Collective name") {
      kind = text();
    } else if (key == "dtype") {
      type = text();
    } else if (key == "In msg nelems") {
      in_elements = integer_of(value);
    } else if (key == "Out msg nelems") {
      out_elements = integer_of(value);
    } else if (key == "Group size") {
      message.group.size = rank_of(integer_of(value));
    } else if (key == "Process Group Name") {
      message.group.name = text();
    } else if (key == "Process Group Description") {
      message.group.description = text();
    } else if (key == "Process Group Ranks") {
      message.group.ranks = ranks_of(text());
    } else if (key == "Src Rank") {
      message.collective.source_rank = rank_of(integer_of(value));
    } else if (key == "Dst Rank") {
      message.collective.target_rank = rank_of(integer_of(value));
    } else if (key == "Seq") {
      const auto sequence = integer_of(value);
      if (sequence && *sequence >= 0)
        message.collective.sequence = static_cast<std::uint64_t>(*sequence);
    } else {
      return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<std::uint64_t> bytes(std::optional<std::int64_t> elements) const {
    constexpr std::int64_t most_elements = std::int64_t{1} << 50;
    const auto size = bytes_from_framework(type.value_or(""));
    if (!size || !elements || *elements < 0 || *elements > most_elements) return std::nullopt;
    return static_cast<std::uint64_t>(*elements) * *size;
  }

  Message finished() && {
    message.collective.kind = collective_kind_of(*kind);
    message.dtype = dtype_from_framework(type.value_or(""));
    message.collective.in_bytes = bytes(in_elements);
    message.collective.out_bytes = bytes(out_elements);
    return std::move(message);
  }
};

}  // namespace

std::optional<std::int64_t> integer_of(ondemand::value value) {
  std::int64_t number = 0;
  if (is_there(value.get_int64().get(number))) return number;
  const auto text = text_of(value);  // tools that write all arguments as texts
  return text ? integer_in(*text) : std::nullopt;
}

std::optional<std::int64_t> number_behind(std::string_view label) {
  if (const auto whole = integer_in(label)) return whole;
  const std::size_t blank = label.rfind(' ');
  return blank == std::string_view::npos ? std::nullopt : integer_in(label.substr(blank + 1));
}

std::optional<std::int64_t> integer_in(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> ns_of_us(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r'))
    text.remove_suffix(1);
  constexpr std::int64_t whole_ns_per_us = 1000;
  constexpr std::int64_t most_us = max_time_ns / whole_ns_per_us;
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole);
  std::int64_t fraction_ns = 0, digit_ns = 100;
  const char* at = rest;
  if (error == std::errc() && at != end && *at == '.') {
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, digit_ns /= 10)
      fraction_ns += (*at - '0') * digit_ns;
  }
  if (error == std::errc() && at == end) {
    if (whole > most_us || whole < -most_us) return std::nullopt;
    return whole * whole_ns_per_us + (text.front() == '-' ? -fraction_ns : fraction_ns);
  }
  const std::string word = lower_case(text);
  for (const char* unknown : {"null", "nan", "-nan", "inf", "-inf", "infinity", "-infinity"}) {
    if (word == unknown) return std::nullopt;
  }
  double us = 0.0;  // with an exponent, or with more digits than a whole number has
  const auto [behind, problem] = std::from_chars(text.data(), end, us);
  if (problem == std::errc::invalid_argument || behind != end)
    throw DataError(fmt::format("'{}' is not a time in us", printable(text)));
  if (problem != std::errc() || !(std::abs(us) <= static_cast<double>(most_us)))
    return std::nullopt;
  return clamped_ns(us * static_cast<double>(whole_ns_per_us));
}

void ArgsReader::device_work(ondemand::object args, DeviceWork& work,
                             std::optional<std::int64_t>& device,
                             std::optional<std::int64_t>& stream) {
  std::optional<MessageArgs> message;
  for_fields(args, [&](std::string_view key, ondemand::value value) {
    const auto number = [&](std::int64_t otherwise) {
      return integer_of(value).value_or(otherwise);
    };
    if (key == "External id" || key == "external id") {
      work.external_id = number(work.external_id);
    } else if (key == "device") {
      if (const auto said = integer_of(value)) device = said;
    } else if (key == "stream") {
      if (const auto said = integer_of(value)) stream = said;
    } else if (key == "correlation") {
      work.correlation = number(-1);
    } else if (key == "bytes") {
      if (!work.is_kernel) work.copied_bytes = number(-1);
    } else if (key == "grid") {
      work.shape.grid = dim3_of(value);
    } else if (key == "block") {
      work.shape.block = dim3_of(value);
    } else if (key == "priority") {
      const auto priority = integer_of(value);
      if (priority && std::in_range<std::int32_t>(*priority))
        work.priority = static_cast<std::int32_t>(*priority);
    } else if (message || work.kind == KernelClass::communication || key == "Collective name") {
      if (!message) message.emplace();
      (void)message->take(key, value);
    }
  });
  if (!work.is_kernel) work.shape = {{0, 0, 0}, {0, 0, 0}};
  if (!work.is_kernel || !message || !message->kind) return;
  work.message = static_cast<std::uint32_t>(events_.messages.size());
  events_.messages.push_back(std::move(*message).finished());
}

std::optional<std::int64_t> ArgsReader::correlation(ondemand::object args) {
  std::optional<std::int64_t> found;
  for_fields(args, [&](std::string_view key, ondemand::value value) {
    if (key == "correlation") found = integer_of(value);
  });
  return found;
}

void ArgsReader::sync(ondemand::object args) {
  SyncDetail detail;
  std::int64_t device = -1;
  for_fields(args, [&](std::string_view key, ondemand::value value) {
    const auto number = [&] {
      constexpr std::int64_t invalid = 4'294'967'295;  // -1 of older files
      const std::int64_t found = integer_of(value).value_or(-1);
      return found == invalid ? -1 : found;
    };
    if (key == "device") {
      device = number();
    } else if (key == "correlation") {
      detail.correlation = number();
    } else if (key == "stream") {
      detail.stream = number();
    } else if (key == "wait_on_stream") {
      detail.recorded_stream = number();
    } else if (key == "wait_on_cuda_event_record_corr_id") {
      detail.record_correlation = number();
    }
  });
  if (device < 0 || device > most_devices) return;
  detail.device = static_cast<std::uint32_t>(device);
  events_.syncs.push_back(detail);
}

void ArgsReader::take_operand(std::string_view key, ondemand::value value, Operands& out) {
  std::string_view* const text = key == "Input Dims"                           ? &out.dims
                                 : key == "Input type" || key == "Input types" ? &out.types
                                 : key == "Concrete Inputs"                    ? &out.values
                                                                               : nullptr;
  ondemand::array array;
  if (text != nullptr && is_there(value.get_array().get(array))) *text = array.raw_json().value();
}

void ArgsReader::cpu_operator(ondemand::object args, Span& span) {
  Operands operands;
  for_fields(args, [&](std::string_view key, ondemand::value value) {
    if (key == "External id") {
      span.external_id = integer_of(value).value_or(-1);
    } else {
      take_operand(key, value, operands);
    }
  });
  if (!operands.dims.empty()) span.call = call_of(operands, span.name);
}

std::uint32_t ArgsReader::call_of(const Operands& operands, std::uint32_t name) {
  key_.assign(reinterpret_cast<const char*>(&name), sizeof name);
  for (const std::string_view part : {operands.dims, operands.types, operands.values}) {
    key_ += part;
    key_ += '\n';
  }
  const auto known = call_ids_.find(key_);
  if (known != call_ids_.end()) return known->second;
  OperatorCall call = parse_call(operands, name);
  const auto id = static_cast<std::uint32_t>(events_.calls.size());
  events_.calls.push_back(std::move(call));
  call_ids_.emplace(key_, id);
  return id;
}

// A list in a text that is being read, so that at least the padding follows it.
ondemand::array ArgsReader::list(std::string_view text) {
  document_ = parser_.iterate(text.data(), text.size(), text.size() + json_padding).value();
  return document_.get_array().value();
}

OperatorCall ArgsReader::parse_call(const Operands& operands, std::uint32_t name) {
  OperatorCall call{events_.names[name], {}, {}};
  for (auto operand : list(operands.dims)) {
    auto& sizes = call.dims.emplace_back();
    ondemand::array items;
    if (!is_there(operand.get_array().get(items))) continue;
    bool is_tensor = true;  // or a list of tensors
    for (auto size : items) {
      std::uint64_t value = 0;
      is_tensor = is_tensor && is_there(size.get_uint64().get(value));
      if (is_tensor) sizes.push_back(value);
    }
    if (!is_tensor) sizes.clear();
  }
  call.dtypes.assign(call.dims.size(), Dtype::unknown);
  std::size_t i = 0;
  if (!operands.types.empty()) {
    for (auto type : list(operands.types)) {
      std::string_view text;
      if (is_there(type.get_string().get(text)) && i < call.dtypes.size())
        call.dtypes[i] = dtype_from_framework(text);
      ++i;
    }
  }
  if (!operands.values.empty()) {
    for (auto value : list(operands.values)) {
      std::string_view text;
      call.values.emplace_back(is_there(value.get_string().get(text)) ? text : "");
    }
  }
  return call;
}

std::optional<std::uint64_t> ArgsReader::sent_bytes(ondemand::object args) {
  Operands operands;
  for_fields(args, [&](std::string_view key, ondemand::value value) {
    take_operand(key, value, operands);
  });
  if (operands.dims.empty() || operands.types.empty()) return std::nullopt;
  const OperatorCall call = parse_call(operands, events_.names.id("collective"));
  std::uint64_t sum = 0;
  std::size_t i = 0;
  bool known = true;
  for (auto type : list(operands.types)) {
    std::string_view text;
    const bool is_text = is_there(type.get_string().get(text));
    if (i >= call.dims.size() || call.dims[i++].empty()) continue;  // no tensor
    const auto bytes = is_text ? bytes_from_framework(text) : std::nullopt;
    std::uint64_t size = bytes.value_or(0);
    for (const std::uint64_t n : call.dims[i - 1])
      known = known && !__builtin_mul_overflow(size, n, &size);
    known = known && bytes && !__builtin_add_overflow(sum, size, &sum);
  }
  return known && sum > 0 ? std::optional(sum) : std::nullopt;
}

}  // namespace rubato::kineto
