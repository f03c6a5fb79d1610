#include "traces/import/kineto_events.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <simdjson.h>

#include "common/error.hpp"
#include "common/json_fields.hpp"
#include "common/json_parts.hpp"
#include "common/text.hpp"
#include "traces/import/host_calls.hpp"

namespace rubato::kineto {

namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::int64_t ns_per_us = 1000;
constexpr std::int64_t most_devices = 1'000'000;

enum class Category { device_work, runtime, cpu_op, annotation, sync, skipped };

Category category_of(std::string_view cat) {
  struct Known {
    std::string_view name;
    Category category;
  };
  // Capitalised: files of 2021.
  static constexpr Known known[] = {
      {"kernel", Category::device_work},     {"Kernel", Category::device_work},
      {"gpu_memcpy", Category::device_work}, {"Memcpy", Category::device_work},
      {"gpu_memset", Category::device_work}, {"Memset", Category::device_work},
      {"cuda_runtime", Category::runtime},   {"cuda_driver", Category::runtime},
      {"Runtime", Category::runtime},        {"cpu_op", Category::cpu_op},
      {"Operator", Category::cpu_op},        {"user_annotation", Category::annotation},
      {"cuda_sync", Category::sync},         {"cuda_event", Category::sync}};
  const auto* const found = std::ranges::find(known, cat, &Known::name);
  return found == std::end(known) ? Category::skipped : found->category;
}

// The category without parsing the event, where its key is plainly there; most events of a file
// with stacks are of no interest.
bool surely_skipped(std::string_view event) {
  const std::size_t key = event.find("\"cat\":");
  if (key == std::string_view::npos) return false;
  std::size_t from = key + 6;
  while (from < event.size() && event[from] == ' ') ++from;
  if (from >= event.size() || event[from] != '"') return false;
  const std::size_t to = event.find('"', ++from);
  return to != std::string_view::npos &&
         category_of(event.substr(from, to - from)) == Category::skipped;
}

// Decimal microseconds to whole nanoseconds; a double would lose the last digits.
std::int64_t parse_us(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\r'))
    text.remove_suffix(1);
  std::int64_t whole = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, whole);
  constexpr std::int64_t most_us = max_time_ns / ns_per_us;
  if (error != std::errc() || whole > most_us || whole < -most_us)
    throw DataError(fmt::format("'{}' is not a time in us", printable(text)));
  std::int64_t fraction_ns = 0, digit_ns = 100;
  const char* at = rest;
  if (at != end && *at == '.') {
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, digit_ns /= 10)
      fraction_ns += (*at - '0') * digit_ns;
  }
  if (at != end) throw DataError(fmt::format("'{}' is not a time in us", printable(text)));
  return whole * ns_per_us + (text.front() == '-' ? -fraction_ns : fraction_ns);
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class EventReader {
 public:
  EventReader(const std::filesystem::path& path, const ImportOptions& options,
              CaptureBuilder& builder)
      : path_(path), options_(options), builder_(builder) {}

  Events run() {
    ByteSource source(path_, options_.max_expanded_bytes);
    try {
      read_json_parts(
          source, "traceEvents",
          {.element = [this](std::string_view text, std::uint64_t at) { event(text, at); },
           .member = [this](std::string_view key, std::string_view value) { member(key, value); }});
    } catch (const DataError& error) {
      if (!options_.partial || events_.work.empty()) throw;
      builder_.capture().left_out.push_back(
          fmt::format("what follows the damage: {}", error.what()));
    }
    if (events_.work.empty()) {
      throw DataError(fmt::format("{}: there is no device work in it", printable(path_.string())),
                      {.in = {},
                       .hint = "record with activities=[ProfilerActivity.CPU, "
                               "ProfilerActivity.CUDA]"});
    }
    return std::move(events_);
  }

 private:
  void event(std::string_view text, std::uint64_t offset) {
    if (surely_skipped(text)) return;
    const auto problem = problem_of([&] {
      ondemand::object object = part_.open(parser_, text, json_padding);
      read(object);
      part_.check();
    });
    if (!problem) return;
    if (options_.partial) return builder_.leave_out("events that cannot be read");
    throw DataError(
        fmt::format("{}: event at byte {}: {}", printable(path_.string()), offset, *problem),
        {.in = printable(text.substr(0, 200)), .hint = "--partial leaves such events out"});
  }

  std::optional<std::string_view> text_of(ondemand::object& object, std::string_view key) {
    std::string_view value;
    if (!is_there(part_.field(object, key).get_string().get(value))) return std::nullopt;
    return value;
  }

  std::optional<std::int64_t> integer(ondemand::object& object, std::string_view key) {
    std::int64_t value = 0;
    if (!is_there(part_.field(object, key).get_int64().get(value))) return std::nullopt;
    return value;
  }

  // A process or thread may be a number or a name.
  std::string raw(ondemand::object& object, std::string_view key) {
    ondemand::value value;
    if (!is_there(part_.field(object, key).get(value))) return {};
    return std::string(value.raw_json_token());
  }

  std::int64_t time_ns(ondemand::object& object, std::string_view key) {
    ondemand::value value;
    if (!is_there(part_.field(object, key).get(value)))
      throw DataError(fmt::format("there is no '{}'", key));
    return parse_us(value.raw_json_token());
  }

  void read(ondemand::object& object) {
    const auto phase = text_of(object, "ph");
    if (!phase || *phase != "X") return;
    const auto cat = text_of(object, "cat");
    if (!cat) return;
    const Category category = category_of(*cat);
    if (category == Category::skipped) return;
    const bool kernel = *cat == "kernel" || *cat == "Kernel";
    const bool memset = *cat == "gpu_memset" || *cat == "Memset";
    const std::string_view name = text_of(object, "name").value_or("");
    if (category == Category::sync) return sync(object);
    const std::uint32_t name_id = events_.names.id(name);
    if (category == Category::device_work) {
      const KernelClass kind = kernel   ? class_of(name_id)
                               : memset ? KernelClass::memset
                                        : KernelClass::memcpy;
      return device_work(object, name_id, kernel, kind);
    }
    const std::uint32_t thread = thread_of(object);
    const std::int64_t start_ns = time_ns(object, "ts");
    if (category == Category::runtime) {
      const std::int64_t duration_ns = time_ns(object, "dur");
      ondemand::object args;
      if (!is_there(part_.field(object, "args").get_object().get(args))) return;
      if (const auto correlation = integer(args, "correlation"))
        events_.host_calls.push_back(
            {*correlation, start_ns, duration_ns, thread, call_kind_of(name)});
      return;
    }
    Span span{start_ns, start_ns + time_ns(object, "dur"), thread, name_id, -1, 0};
    ondemand::object args;
    if (category == Category::annotation) {
      events_.annotations.push_back(span);
      if (name.starts_with("nccl:") || name.starts_with("rccl:"))
        events_.message_labels.push_back(
            {span.start_ns, span.end_ns, thread, collective_kind_of(name), sent_bytes(object)});
      return;
    }
    if (is_there(part_.field(object, "args").get_object().get(args))) {
      span.external_id = integer(args, "External id").value_or(-1);
      span.call = read_call(args, name_id);
    }
    events_.operators.push_back(span);
  }

  // Processes and threads are numbers as a rule; others count down from -1.
  std::uint32_t thread_of(ondemand::object& object) {
    const std::string process = raw(object, "pid"), thread = raw(object, "tid");
    const std::uint32_t id = threads_.id(process + '/' + thread);
    if (id == events_.threads.size()) {
      const auto number = [](std::string_view text, std::uint32_t otherwise) {
        return integer_of(text).value_or(-1 - static_cast<std::int64_t>(otherwise));
      };
      const std::uint32_t process_id = processes_.id(process);
      events_.processes = std::max(events_.processes, process_id + 1);
      events_.threads.push_back({process_id, {number(process, process_id), number(thread, id)}});
    }
    return id;
  }

  void sync(ondemand::object& object) {
    ondemand::object args;
    if (!is_there(part_.field(object, "args").get_object().get(args))) return;
    const auto number = [&](std::string_view key) {
      constexpr std::int64_t invalid = 4'294'967'295;  // -1 of older files
      const std::int64_t value = integer(args, key).value_or(-1);
      return value == invalid ? -1 : value;
    };
    const std::int64_t device = number("device");
    if (device < 0 || device > most_devices) return;
    events_.syncs.push_back({static_cast<std::uint32_t>(device), number("correlation"),
                             number("stream"), number("wait_on_stream"),
                             number("wait_on_cuda_event_record_corr_id")});
  }

  // Bytes of the tensors an annotation names; nothing if one is not understood.
  std::optional<std::uint64_t> sent_bytes(ondemand::object& object) {
    ondemand::object args;
    if (!is_there(part_.field(object, "args").get_object().get(args))) return std::nullopt;
    std::vector<std::vector<std::uint64_t>> dims;
    if (!read_dims(args, dims)) return std::nullopt;
    std::uint64_t sum = 0;
    std::size_t i = 0;
    bool known = true;
    ondemand::array types;
    if (!is_there(part_.field(args, "Input type").get_array().get(types))) return std::nullopt;
    for (auto type : types) {
      std::string_view text;
      const bool is_text = is_there(type.get_string().get(text));
      if (i >= dims.size() || dims[i++].empty()) continue;  // no tensor
      const auto bytes = is_text ? bytes_from_framework(text) : std::nullopt;
      std::uint64_t size = bytes.value_or(0);
      for (const std::uint64_t n : dims[i - 1])
        known = known && !__builtin_mul_overflow(size, n, &size);
      known = known && bytes && !__builtin_add_overflow(sum, size, &sum);
    }
    return known && sum > 0 ? std::optional(sum) : std::nullopt;
  }

  // @return whether there are any
  bool read_dims(ondemand::object& args, std::vector<std::vector<std::uint64_t>>& out) {
    ondemand::array dims;
    if (!is_there(part_.field(args, "Input Dims").get_array().get(dims))) return false;
    for (auto operand : dims) {
      auto& list = out.emplace_back();
      ondemand::array sizes;
      if (!is_there(operand.get_array().get(sizes))) continue;
      for (auto size : sizes) {
        std::uint64_t value = 0;
        if (!is_there(size.get_uint64().get(value))) {
          list.clear();  // a list of tensors
          break;
        }
        list.push_back(value);
      }
    }
    return true;
  }

  std::uint32_t read_call(ondemand::object& args, std::uint32_t name) {
    OperatorCall call{events_.names[name], {}, {}};
    if (!read_dims(args, call.dims)) return 0;
    call.dtypes.assign(call.dims.size(), Dtype::unknown);
    ondemand::array types;
    for (const char* key : {"Input type", "Input types"}) {
      if (!is_there(part_.field(args, key).get_array().get(types))) continue;
      std::size_t i = 0;
      for (auto type : types) {
        std::string_view text;
        if (is_there(type.get_string().get(text)) && i < call.dtypes.size())
          call.dtypes[i] = dtype_from_framework(text);
        ++i;
      }
      break;
    }
    ondemand::array values;
    if (is_there(part_.field(args, "Concrete Inputs").get_array().get(values))) {
      for (auto value : values) {
        std::string_view text;
        call.values.emplace_back(is_there(value.get_string().get(text)) ? text : "");
      }
    }
    // Layers repeat the same calls.
    std::string key = fmt::format("{} {} ", name, fmt::join(call.values, ";"));
    for (std::size_t i = 0; i < call.dims.size(); ++i)
      key += fmt::format("[{}]{}", fmt::join(call.dims[i], ","), static_cast<int>(call.dtypes[i]));
    const auto [found, fresh] =
        call_ids_.emplace(std::move(key), static_cast<std::uint32_t>(events_.calls.size()));
    if (fresh) events_.calls.push_back(std::move(call));
    return found->second;
  }

  std::array<std::uint32_t, 3> read_dim3(ondemand::object& args, std::string_view key) {
    std::array<std::uint32_t, 3> out{1, 1, 1};
    ondemand::array values;
    if (!is_there(part_.field(args, key).get_array().get(values))) return {0, 0, 0};
    std::size_t i = 0;
    for (auto value : values) {
      std::uint64_t number = 0;
      if (is_there(value.get_uint64().get(number)) && i < out.size()) {
        if (number > std::numeric_limits<std::uint32_t>::max()) return {0, 0, 0};
        out[i] = static_cast<std::uint32_t>(number);
      }
      ++i;
    }
    return out;
  }

  void device_work(ondemand::object& object, std::uint32_t name, bool is_kernel, KernelClass kind) {
    DeviceWork work;
    work.is_kernel = is_kernel;
    work.name = name;
    work.start_ns = time_ns(object, "ts");
    work.duration_ns = time_ns(object, "dur");
    std::int64_t device = integer(object, "pid").value_or(-1),
                 stream = integer(object, "tid").value_or(-1);
    ondemand::object args;
    if (is_there(part_.field(object, "args").get_object().get(args)))
      read_args(args, work, device, stream);
    if (device < 0 || device > most_devices) throw DataError("there is no device");
    work.device = static_cast<std::uint32_t>(device);
    work.stream = stream;
    work.kind = kind;
    events_.work.push_back(work);
  }

  // Looked up once a name.
  KernelClass class_of(std::uint32_t name) {
    while (classes_.size() <= name)
      classes_.push_back(
          kernel_class_of(events_.names[static_cast<std::uint32_t>(classes_.size())]));
    return classes_[name];
  }

  void read_args(ondemand::object& args, DeviceWork& work, std::int64_t& device,
                 std::int64_t& stream) {
    const auto number = [&](std::string_view key, std::int64_t otherwise) {
      return integer(args, key).value_or(otherwise);
    };
    work.external_id = number("External id", number("external id", -1));
    device = number("device", device);
    stream = number("stream", stream);
    work.correlation = number("correlation", -1);
    if (!work.is_kernel) {
      work.copied_bytes = number("bytes", -1);
      return;
    }
    work.shape = {read_dim3(args, "grid"), read_dim3(args, "block")};
    if (const auto priority = integer(args, "priority");
        priority && std::in_range<std::int32_t>(*priority))
      work.priority = static_cast<std::int32_t>(*priority);
    const auto collective = text_of(args, "Collective name");
    if (!collective) return;
    work.message = static_cast<std::uint32_t>(events_.messages.size());
    events_.messages.push_back(read_message(args, collective_kind_of(*collective)));
  }

  Message read_message(ondemand::object& args, CollectiveKind kind) {
    Message message;
    message.collective.kind = kind;
    if (const auto type = text_of(args, "dtype")) {
      message.dtype = dtype_from_framework(*type);
      const auto bytes = [&](std::string_view key) -> std::optional<std::uint64_t> {
        const auto size = bytes_from_framework(*type);
        const auto count = integer(args, key);
        constexpr std::int64_t most_elements = std::int64_t{1} << 50;
        if (!size || !count || *count < 0 || *count > most_elements) return std::nullopt;
        return static_cast<std::uint64_t>(*count) * *size;
      };
      message.collective.in_bytes = bytes("In msg nelems");
      message.collective.out_bytes = bytes("Out msg nelems");
    }
    const auto rank = [&](std::string_view key) { return rank_of(integer(args, key)); };
    if (const auto sequence = integer(args, "Seq"); sequence && *sequence >= 0)
      message.collective.sequence = static_cast<std::uint64_t>(*sequence);
    message.collective.source_rank = rank("Src Rank");
    message.collective.target_rank = rank("Dst Rank");
    message.group.name = std::string(text_of(args, "Process Group Name").value_or(""));
    message.group.description =
        std::string(text_of(args, "Process Group Description").value_or(""));
    message.group.size = rank("Group size");
    message.group.ranks = ranks_of(text_of(args, "Process Group Ranks").value_or(""));
    return message;
  }

  static std::optional<std::uint32_t> rank_of(std::optional<std::int64_t> value) {
    constexpr std::int64_t most_ranks = 10'000'000;
    if (!value || *value < 0 || *value > most_ranks) return std::nullopt;
    return static_cast<std::uint32_t>(*value);
  }

  // "[0, 1]"; nothing where the list is shortened with dots or is no list of ranks.
  static std::vector<std::uint32_t> ranks_of(std::string_view text) {
    std::vector<std::uint32_t> ranks;
    if (!text.starts_with('[') || !text.ends_with(']')) return {};
    for (const std::string_view part : split(text.substr(1, text.size() - 2), ',')) {
      const auto rank = rank_of(integer_of(part));
      if (!rank) return {};
      ranks.push_back(*rank);
    }
    return ranks;
  }

  void member(std::string_view key, std::string_view value) {
    if (key != "baseTimeNanoseconds" && key != "deviceProperties" && key != "distributedInfo")
      return;
    const auto problem = problem_of([&] { read_member(key, value); });
    if (!problem) return;
    if (options_.partial) return builder_.leave_out("members that cannot be read");
    throw DataError(fmt::format("{}: {}: {}", printable(path_.string()), key, *problem),
                    {.in = printable(value.substr(0, 200)), .hint = "--partial leaves it out"});
  }

  void read_member(std::string_view key, std::string_view value) {
    check_structure(value);
    ondemand::document document =
        parser_.iterate(value.data(), value.size(), value.size() + json_padding).value();
    if (key == "baseTimeNanoseconds") {
      std::int64_t base = 0;
      if (is_there(document.get_int64().get(base))) events_.epoch_ns = base;
    } else if (key == "distributedInfo") {
      read_distribution(document);
    } else if (key == "deviceProperties") {
      ondemand::array devices;
      if (!is_there(document.get_array().get(devices))) return;
      for (auto device : devices) {
        std::int64_t id = 0;
        std::string_view name;
        ondemand::object object;
        if (is_there(device.get_object().get(object)) &&
            is_there(object.find_field_unordered("id").get_int64().get(id)) && id >= 0 &&
            id <= most_devices &&
            is_there(object.find_field_unordered("name").get_string().get(name)))
          events_.device_names.emplace_back(static_cast<std::uint32_t>(id), std::string(name));
      }
    }
  }

  void read_distribution(ondemand::document& document) {
    ondemand::object object;
    if (!is_there(document.get_object().get(object))) return;
    const auto number = [&](ondemand::object& of, std::string_view key) {
      std::int64_t value = -1;
      return is_there(of.find_field_unordered(key).get_int64().get(value)) ? rank_of(value)
                                                                           : std::nullopt;
    };
    events_.rank = number(object, "rank");
    events_.world_size = number(object, "world_size");
    ondemand::array groups;
    if (!is_there(object.find_field_unordered("pg_config").get_array().get(groups))) return;
    for (auto entry : groups) {
      ondemand::object group;
      std::string_view name, description;
      if (!is_there(entry.get_object().get(group)) ||
          !is_there(group.find_field_unordered("pg_name").get_string().get(name)))
        continue;
      CaptureGroup& known = events_.groups.emplace_back();
      known.name = name;
      if (is_there(group.find_field_unordered("pg_desc").get_string().get(description)))
        known.description = description;
      known.size = number(group, "pg_size");
      ondemand::array ranks;
      if (!is_there(group.find_field_unordered("ranks").get_array().get(ranks))) continue;
      for (auto rank : ranks) {
        std::int64_t value = -1;
        if (is_there(rank.get_int64().get(value)) && rank_of(value))
          known.ranks.push_back(*rank_of(value));
      }
      if (known.size && known.ranks.size() != *known.size) known.ranks.clear();
    }
  }

  const std::filesystem::path& path_;
  const ImportOptions& options_;
  CaptureBuilder& builder_;
  Events events_;
  ondemand::parser parser_;
  JsonPart part_;
  Names threads_, processes_;
  std::unordered_map<std::string, std::uint32_t> call_ids_;
  std::vector<KernelClass> classes_;  ///< by name
};

}  // namespace

Events read_events(const std::filesystem::path& path, const ImportOptions& options,
                   CaptureBuilder& builder) {
  return EventReader(path, options, builder).run();
}

}  // namespace rubato::kineto
