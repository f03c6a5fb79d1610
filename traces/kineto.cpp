// PyTorch profiler traces: Chrome trace events written by Kineto.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>
#include <simdjson.h>

#include "common/error.hpp"
#include "common/text.hpp"
#include "traces/capture_builder.hpp"
#include "traces/import.hpp"
#include "traces/json_events.hpp"
#include "traces/json_fields.hpp"
#include "traces/operator_work.hpp"

namespace rubato {

namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::int64_t ns_per_us = 1000;
constexpr std::int64_t most_devices = 1'000'000;

enum class Category { device_work, runtime, cpu_op, annotation, skipped };

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
      {"Operator", Category::cpu_op},        {"user_annotation", Category::annotation}};
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

struct HostCall {
  std::int64_t ts_ns;
  std::uint32_t thread;
};

// A span of the host: an operator or an annotation.
struct Span {
  std::int64_t start_ns, end_ns;
  std::uint32_t thread;
  std::uint32_t name;
  std::int64_t external_id;
  std::uint32_t call;  ///< index into calls, 0: shapes unknown
};

// Small: there may be millions.
struct DeviceWork {
  std::uint32_t name = 0, device = 0;
  std::int64_t stream = 0, start_ns = 0, duration_ns = 0;
  std::int64_t correlation = -1, external_id = -1;
  std::int64_t copied_bytes = -1;
  LaunchShape shape{{0, 0, 0}, {0, 0, 0}};
  std::uint32_t message = 0;  ///< index into messages, 0: none
  KernelClass kind = KernelClass::other;
  bool is_kernel = false;
};

struct Message {
  Collective collective;
  Dtype dtype = Dtype::unknown;
};

class Names {
 public:
  std::uint32_t id(std::string_view name) {
    const auto [found, fresh] =
        ids_.emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
    if (fresh) names_.push_back(&found->first);
    return found->second;
  }
  [[nodiscard]] const std::string& operator[](std::uint32_t id) const { return *names_[id]; }

 private:
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> names_;
};

class KinetoReader {
 public:
  KinetoReader(const std::filesystem::path& path, const ImportOptions& options)
      : path_(path), options_(options), builder_(path.filename().string()) {
    calls_.emplace_back();
    messages_.emplace_back();
  }

  Capture run() {
    ByteSource source(path_, options_.max_expanded_bytes);
    try {
      read_json_parts(
          source, "traceEvents",
          {.element = [this](std::string_view text, std::uint64_t at) { event(text, at); },
           .member = [this](std::string_view key, std::string_view value) { member(key, value); }});
    } catch (const DataError& error) {
      if (!options_.partial || work_.empty()) throw;
      builder_.capture().left_out.push_back(
          fmt::format("what follows the damage: {}", error.what()));
    }
    if (work_.empty()) {
      throw DataError(fmt::format("{}: there is no device work in it", printable(path_.string())),
                      {.in = {},
                       .hint = "record with activities=[ProfilerActivity.CPU, "
                               "ProfilerActivity.CUDA]"});
    }
    link();
    return std::move(builder_).finish();
  }

 private:
  // ---- Reading ----

  void event(std::string_view text, std::uint64_t offset) {
    if (surely_skipped(text)) return;
    std::string problem;
    try {
      ondemand::object object = part_.open(parser_, text, json_padding);
      read(object);
      part_.check();
      return;
    } catch (const simdjson::simdjson_error& error) {
      problem = error.what();
    } catch (const DataError& error) {
      problem = error.what();
    }
    if (options_.partial) return builder_.leave_out("events that cannot be read");
    throw DataError(
        fmt::format("{}: event at byte {}: {}", printable(path_.string()), offset, problem),
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
    const std::uint32_t name_id = names_.id(name);
    if (category == Category::device_work) {
      const KernelClass kind = kernel   ? class_of(name_id)
                               : memset ? KernelClass::memset
                                        : KernelClass::memcpy;
      return device_work(object, name_id, kernel, kind);
    }
    const std::uint32_t thread = threads_.id(raw(object, "pid") + '/' + raw(object, "tid"));
    const std::int64_t start_ns = time_ns(object, "ts");
    if (category == Category::runtime) {
      ondemand::object args;
      if (!is_there(part_.field(object, "args").get_object().get(args))) return;
      if (const auto correlation = integer(args, "correlation"))
        calls_by_correlation_.emplace(*correlation, HostCall{start_ns, thread});
      return;
    }
    Span span{start_ns, start_ns + time_ns(object, "dur"), thread, name_id, -1, 0};
    if (category == Category::annotation) {
      annotations_.push_back(span);
      return;
    }
    ondemand::object args;
    if (is_there(part_.field(object, "args").get_object().get(args))) {
      span.external_id = integer(args, "External id").value_or(-1);
      span.call = read_call(args, name_id);
    }
    operators_.push_back(span);
  }

  std::uint32_t read_call(ondemand::object& args, std::uint32_t name) {
    OperatorCall call{names_[name], {}, {}};
    ondemand::array dims;
    if (!is_there(part_.field(args, "Input Dims").get_array().get(dims))) return 0;
    for (auto operand : dims) {
      auto& list = call.dims.emplace_back();
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
        call_ids_.emplace(std::move(key), static_cast<std::uint32_t>(calls_.size()));
    if (fresh) calls_.push_back(std::move(call));
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
    work_.push_back(work);
  }

  // Looked up once a name.
  KernelClass class_of(std::uint32_t name) {
    while (classes_.size() <= name)
      classes_.push_back(kernel_class_of(names_[static_cast<std::uint32_t>(classes_.size())]));
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
    std::string_view collective;
    if (!is_there(part_.field(args, "Collective name").get_string().get(collective))) return;
    Message message{{.kind = collective_kind_of(collective)}, Dtype::unknown};
    const std::int64_t elements = std::max(number("In msg nelems", 0), number("Out msg nelems", 0)),
                       group = number("Group size", 0);
    std::string_view type;
    if (is_there(part_.field(args, "dtype").get_string().get(type)))
      message.dtype = dtype_from_framework(type);
    constexpr std::int64_t most_ranks = 10'000'000;
    if (message.dtype == Dtype::unknown || group < 2 || group > most_ranks || elements <= 0) return;
    message.collective.group_size = static_cast<std::uint32_t>(group);
    message.collective.message_bytes = static_cast<double>(elements) * element_bytes(message.dtype);
    work.message = static_cast<std::uint32_t>(messages_.size());
    messages_.push_back(message);
  }

  void member(std::string_view key, std::string_view value) {
    if (key != "baseTimeNanoseconds" && key != "deviceProperties") return;
    std::string problem;
    try {
      return read_member(key, value);
    } catch (const simdjson::simdjson_error& error) {
      problem = error.what();
    } catch (const DataError& error) {
      problem = error.what();
    }
    if (options_.partial) return builder_.leave_out("members that cannot be read");
    throw DataError(fmt::format("{}: {}: {}", printable(path_.string()), key, problem),
                    {.in = printable(value.substr(0, 200)), .hint = "--partial leaves it out"});
  }

  void read_member(std::string_view key, std::string_view value) {
    check_structure(value);
    auto document = parser_.iterate(value.data(), value.size(), value.size() + json_padding);
    if (key == "baseTimeNanoseconds") {
      std::int64_t base = 0;
      if (is_there(document.get_int64().get(base))) builder_.capture().epoch_ns = base;
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
          device_names_.emplace_back(static_cast<std::uint32_t>(id), std::string(name));
      }
    }
  }

  // ---- Linking ----

  struct HostContext {
    const Span* innermost = nullptr;  ///< operator around the launch
    bool autograd = false;
    bool optimizer = false;
  };

  // What encloses each launch on its thread: spans of a thread nest.
  std::vector<HostContext> contexts() {
    struct Asked {
      std::int64_t ts_ns;
      std::uint32_t thread;
      std::size_t work;
    };
    std::vector<Asked> asked;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const auto call = calls_by_correlation_.find(work_[i].correlation);
      if (call != calls_by_correlation_.end())
        asked.push_back({call->second.ts_ns, call->second.thread, i});
    }
    std::ranges::sort(asked, [](const Asked& a, const Asked& b) {
      return std::pair(a.thread, a.ts_ns) < std::pair(b.thread, b.ts_ns);
    });
    std::vector<const Span*> spans;
    for (const auto* list : {&operators_, &annotations_})
      for (const Span& span : *list) spans.push_back(&span);
    std::ranges::stable_sort(spans, [](const Span* a, const Span* b) {
      return std::tuple(a->thread, a->start_ns, -a->end_ns) <
             std::tuple(b->thread, b->start_ns, -b->end_ns);
    });
    std::vector<HostContext> out(work_.size());
    std::vector<const Span*> open;
    auto next = spans.begin();
    for (const Asked& a : asked) {
      for (; next != spans.end() &&
             std::pair((*next)->thread, (*next)->start_ns) <= std::pair(a.thread, a.ts_ns);
           ++next)
        open.push_back(*next);
      std::erase_if(open,
                    [&](const Span* s) { return s->thread != a.thread || s->end_ns < a.ts_ns; });
      HostContext& context = out[a.work];
      for (const Span* span : open) {
        const std::string& name = names_[span->name];
        if (name.starts_with("autograd::engine::evaluate_function")) context.autograd = true;
        if (name.starts_with("Optimizer.step")) context.optimizer = true;
        if (span >= operators_.data() && span < operators_.data() + operators_.size())
          context.innermost = span;
      }
    }
    return out;
  }

  void find_steps() {
    std::vector<CapturedStep>& steps = builder_.capture().steps;
    for (const Span& span : annotations_) {
      const std::string& name = names_[span.name];
      if (name.starts_with("ProfilerStep")) steps.push_back({name, span.start_ns, span.end_ns});
    }
    std::ranges::sort(steps, {}, &CapturedStep::start_ns);
    builder_.capture().step_source =
        steps.empty() ? StepSource::whole_file : StepSource::annotation;
  }

  [[nodiscard]] std::optional<std::uint32_t> step_at(std::int64_t ts_ns) {
    const auto& steps = builder_.capture().steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].start_ns <= ts_ns && ts_ns < steps[i].end_ns)
        return static_cast<std::uint32_t>(i);
    }
    return std::nullopt;
  }

  // Labels count whatever their thread: backward work is launched by another one.
  std::vector<std::optional<Pass>> labelled_passes() {
    std::vector<PassLabel> labels;
    for (const Span& span : annotations_) {
      if (const auto pass = pass_of_label(names_[span.name]))
        labels.push_back({span.start_ns, span.end_ns, *pass});
    }
    std::vector<LaunchCall> calls;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const auto call = calls_by_correlation_.find(work_[i].correlation);
      if (call != calls_by_correlation_.end()) calls.push_back({call->second.ts_ns, i});
    }
    return passes_by_label(std::move(labels), std::move(calls), work_.size());
  }

  // A call and the share of its work that a kernel does.
  struct Share {
    const OperatorCall* call = nullptr;
    double of_work = 1.0;
  };

  // The call of an operator belongs to one of its kernels: the product to the kernel that is
  // named like one, else to the longest. Two products of one operator have a kernel each.
  std::vector<Share> calls_of_kernels(const std::vector<const Span*>& operator_of) {
    const auto is_product = [&](std::size_t i) {
      return work_[i].kind == KernelClass::gemm || work_[i].kind == KernelClass::attention;
    };
    std::unordered_map<const Span*, std::vector<std::size_t>> kernels;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (operator_of[i] != nullptr && operator_of[i]->call != 0 && work_[i].is_kernel)
        kernels[operator_of[i]].push_back(i);
    }
    std::vector<Share> shares(work_.size());
    for (auto& [span, of_span] : kernels) {
      std::ranges::stable_sort(of_span, [&](std::size_t a, std::size_t b) {
        return std::pair(is_product(a), work_[a].duration_ns) >
               std::pair(is_product(b), work_[b].duration_ns);
      });
      const OperatorCall& call = calls_[span->call];
      const bool two = is_two_products(call) && of_span.size() > 1 && is_product(of_span[1]);
      shares[of_span[0]] = {&call, two ? 0.5 : 1.0};
      if (two) shares[of_span[1]] = {&call, 0.5};
    }
    return shares;
  }

  std::vector<const Span*> operators_of_kernels(const std::vector<HostContext>& contexts) {
    std::unordered_map<std::int64_t, const Span*> by_id;
    for (const Span& span : operators_) {
      if (span.external_id >= 0) by_id.emplace(span.external_id, &span);
    }
    // In older files the external id of a kernel is its correlation: it may hit any operator.
    std::size_t equal = 0, with_id = 0;
    for (const DeviceWork& work : work_) {
      if (work.external_id < 0) continue;
      ++with_id;
      if (work.external_id == work.correlation) ++equal;
    }
    const bool ids_are_correlations = with_id > 0 && equal == with_id;
    std::vector<const Span*> out(work_.size(), nullptr);
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const auto found = by_id.find(work_[i].external_id);
      if (!ids_are_correlations && found != by_id.end()) {
        out[i] = found->second;
      } else {
        out[i] = contexts[i].innermost;
      }
    }
    return out;
  }

  [[nodiscard]] Kernel kernel_of(const DeviceWork& work, Pass pass, const Share& share) {
    Kernel kernel;
    kernel.label = names_[work.name];
    kernel.kind = work.kind;
    kernel.pass = pass;
    if (work.shape.grid[0] > 0 && work.shape.block[0] > 0) kernel.launch = work.shape;
    if (work.copied_bytes >= 0) {
      // A copy within the device reads and writes there.
      const bool within = kernel.label.find("DtoD") != std::string::npos;
      kernel.dram_bytes = static_cast<double>(work.copied_bytes) * (within ? 2.0 : 1.0);
      kernel.flops = 0.0;
      kernel.work_source = WorkSource::derived;
    } else if (work.message != 0) {
      const Message& message = messages_[work.message];
      kernel.dtype = message.dtype;
      kernel.collective = message.collective;
      kernel.flops = 0.0;
      kernel.dram_bytes = 2.0 * message.collective.message_bytes;
      kernel.work_source = WorkSource::derived;
    } else if (share.call != nullptr) {
      const OperatorWork known = operator_work(*share.call);
      if (known.flops) kernel.flops = *known.flops * share.of_work;
      if (known.dram_bytes) kernel.dram_bytes = *known.dram_bytes * share.of_work;
      kernel.gemm = known.gemm;
      kernel.dtype = known.dtype;
      kernel.work_source = known.source;
    }
    return kernel;
  }

  void link() {
    builder_.capture().provenance.generator = "PyTorch profiler (Kineto)";
    find_steps();
    const std::vector<HostContext> context = contexts();
    const std::vector<std::optional<Pass>> labelled = labelled_passes();
    const std::vector<Share> calls = calls_of_kernels(operators_of_kernels(context));
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const DeviceWork& work = work_[i];
      CapturedLaunch launch{.kernel = {},
                            .stream = builder_.stream(work.device, work.stream),
                            .start_ns = work.start_ns,
                            .duration_ns = work.duration_ns,
                            .launch_ns = {},
                            .step = {},
                            .pass = Pass::unknown};
      const auto call = calls_by_correlation_.find(work.correlation);
      if (call != calls_by_correlation_.end()) {
        launch.launch_ns = call->second.ts_ns;
        launch.step = step_at(call->second.ts_ns);
        const Pass by_thread = context[i].autograd    ? Pass::backward
                               : context[i].optimizer ? Pass::optimizer
                                                      : Pass::forward;
        launch.pass = labelled[i].value_or(by_thread);
      }
      launch.kernel = builder_.kernel(kernel_of(work, launch.pass, calls[i]),
                                      short_kernel_name(names_[work.name]));
      builder_.launch(launch);
    }
    for (const auto& [id, name] : device_names_) {
      const auto& devices = builder_.capture().devices;
      if (std::ranges::find(devices, id, &CaptureDevice::id) != devices.end())
        (void)builder_.device(id, name);
    }
  }

  std::filesystem::path path_;
  ImportOptions options_;
  CaptureBuilder builder_;
  ondemand::parser parser_;
  JsonPart part_;
  Names names_, threads_;
  std::vector<Span> operators_, annotations_;
  std::vector<OperatorCall> calls_;
  std::unordered_map<std::string, std::uint32_t> call_ids_;
  std::unordered_map<std::int64_t, HostCall> calls_by_correlation_;
  std::vector<DeviceWork> work_;
  std::vector<Message> messages_;
  std::vector<KernelClass> classes_;  ///< by name
  std::vector<std::pair<std::uint32_t, std::string>> device_names_;
};

}  // namespace

Capture import_kineto(const std::filesystem::path& path, const ImportOptions& options) {
  return KinetoReader(path, options).run();
}

}  // namespace rubato
