#include "traces/import/kineto/events.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

#include "common/error.hpp"
#include "common/json_fields.hpp"
#include "common/json_parts.hpp"
#include "common/text.hpp"
#include "traces/import/host_calls.hpp"
#include "traces/import/kernel_names.hpp"
#include "traces/import/kineto/args.hpp"
#include "traces/import/kineto/head.hpp"
#include "traces/import/kineto/order.hpp"
#include "traces/import/kineto/other_traces.hpp"
#include "traces/serving_steps.hpp"

namespace rubato::kineto {

namespace {

namespace ondemand = simdjson::ondemand;

// Of annotations as the GPU saw them.
constexpr std::string_view on_device = "gpu_user_annotation";

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
  if (cat == on_device) return Category::annotation;
  const auto* const found = std::ranges::find(known, cat, &Known::name);
  return found == std::end(known) ? Category::skipped : found->category;
}

// What an event is, seen without parsing it, since it may be damaged. One with two phases has
// swallowed other events for want of a quote: nothing is known of it.
std::optional<Category> category_at_a_glance(std::string_view event) {
  const auto text_behind = [&](std::string_view key) -> std::optional<std::string_view> {
    const std::size_t found = event.find(key);
    if (found == std::string_view::npos) return std::nullopt;
    std::size_t from = found + key.size();
    while (from < event.size() && event[from] == ' ') ++from;
    if (from >= event.size() || event[from] != '"') return std::nullopt;
    const std::size_t to = event.find('"', ++from);
    if (to == std::string_view::npos) return std::nullopt;
    return event.substr(from, to - from);
  };
  constexpr std::string_view phase_key = "\"ph\":";
  const auto phase = text_behind(phase_key);
  if (!phase || event.find(phase_key, event.find(phase_key) + 1) != std::string_view::npos)
    return std::nullopt;
  if (*phase != "X") return Category::skipped;
  const auto category = text_behind("\"cat\":");
  return category ? std::optional(category_of(*category)) : std::nullopt;
}

class EventReader {
 public:
  EventReader(const std::filesystem::path& path, const ImportOptions& options,
              CaptureBuilder& builder)
      : path_(path), options_(options), builder_(builder), args_(events_) {}

  Events run() {
    ByteSource source(path_, options_.max_expanded_bytes);
    try {
      read_json_parts(
          source, "traceEvents",
          {.element = [this](std::string_view text, std::uint64_t at) { event(text, at); },
           .member = [this](std::string_view key, std::string_view value) { member(key, value); },
           .block = [this](std::string_view text) { return block(text); }});
    } catch (const DataError& error) {
      if (!options_.partial || events_.work.empty()) throw;
      builder_.capture().left_out.push_back(
          fmt::format("what follows the damage: {}", error.what()));
    }
    if (events_.work.empty() && untimed_ > 0)
      throw DataError(fmt::format("{}: none of its {} launches has a time",
                                  printable(path_.string()), untimed_));
    if (events_.work.empty()) throw no_device_work(path_);
    builder_.leave_out(launched_twice, put_in_order(events_));
    return std::move(events_);
  }

 private:
  // The block is parsed as a whole first: what is read of it then is known to be JSON.
  std::optional<std::size_t> block(std::string_view text) {
    if (dom_.parse(text.data(), text.size(), false).error() != simdjson::SUCCESS) return 0;
    std::size_t done = 0;
    const auto problem = problem_of([&] {
      ondemand::document document =
          parser_.iterate(text.data(), text.size(), text.size() + json_padding).value();
      for (auto element : document.get_array()) {
        ondemand::object object = element.get_object().value();
        read(object);
        ++done;
      }
    });
    return problem ? std::optional(done) : std::nullopt;
  }

  // One event by itself, which may be anything between two braces.
  void event(std::string_view text, std::uint64_t offset) {
    const std::optional<Category> category = category_at_a_glance(text);
    if (category == Category::skipped) return;
    const auto problem = problem_of([&] {
      ondemand::object object = part_.open(parser_, text, json_padding);
      read(object);
      part_.check();
    });
    if (!problem) return;
    // Nothing depends on one of these: its kernels have less said of them.
    if (category == Category::cpu_op) return builder_.leave_out("operators that cannot be read");
    if (category == Category::annotation)
      return builder_.leave_out("annotations that cannot be read");
    if (options_.partial) return builder_.leave_out("events that cannot be read");
    throw DataError(
        fmt::format("{}: event at byte {}: {}", printable(path_.string()), offset, *problem),
        {.in = printable(text.substr(0, 200)), .hint = "--partial leaves such events out"});
  }

  // An event on its way from the text into Events; numbers are text at first.
  struct Event {
    bool is_slice = false;  ///< phase "X"
    std::optional<Category> category;
    std::string_view kind;  ///< its name in the file, e.g. "gpu_memset"
    std::optional<std::uint32_t> name;
    std::string_view process, thread, start, duration;
    DeviceWork work;
    std::optional<std::int64_t> device, stream;  ///< as the arguments say
    std::optional<std::int64_t> correlation;
    Span span{};
    std::optional<std::uint64_t> sent_bytes;
  };

  // Reads an event from front to back, once. Most events are done with after their category.
  void read(ondemand::object& object) {
    Event event;
    bool args_come_first = false;
    for (auto found : object) {
      ondemand::field field = field_of(std::move(found));
      const std::string_view key = key_of(field);
      ondemand::value value = field.value();
      if (key == "args") {
        // What they mean depends on category and name.
        const bool known = event.category && event.name;
        if (known) read_args(value, event);
        args_come_first = args_come_first || !known;
      } else {
        read_field(key, value, event);
      }
      if (event.category == Category::skipped) return;
      if (key == "ph" && !event.is_slice) return;
    }
    if (!event.is_slice || !event.category) return;
    if (!event.name) event.name = events_.names.id("");
    if (args_come_first) {
      (void)object.reset().value();
      ondemand::value args;
      if (is_there(object.find_field_unordered("args").get(args))) read_args(args, event);
    }
    finish(event);
  }

  void read_field(std::string_view key, ondemand::value value, Event& event) {
    std::string_view text;
    if (key == "ph") {
      event.is_slice = is_there(value.get_string().get(text)) && text == "X";
    } else if (key == "cat") {
      if (!is_there(value.get_string().get(event.kind))) return;
      event.category = category_of(event.kind);
    } else if (key == "name") {
      event.name = name_id(value);
    } else if (key == "pid") {
      event.process = token_of(value);
    } else if (key == "tid") {
      event.thread = token_of(value);
    } else if (key == "ts") {
      event.start = token_of(value);
    } else if (key == "dur") {
      event.duration = token_of(value);
    }
  }

  static std::string_view token_of(ondemand::value value) {
    std::string_view token = value.raw_json_token();
    while (!token.empty() && std::strchr(" \t\r\n", token.back()) != nullptr)
      token.remove_suffix(1);
    const bool quoted = token.size() > 1 && token.front() == '"' && token.back() == '"';
    return quoted ? token.substr(1, token.size() - 2) : token;  // a number as a text
  }

  // Names are looked up as they are written, so that each is unescaped once.
  std::uint32_t name_id(ondemand::value value) {
    const std::string_view raw = value.raw_json_token();
    if (const auto known = raw_names_.find(raw); known != raw_names_.end()) return known->second;
    std::string_view name;
    if (!is_there(value.get_string().get(name))) return events_.names.id("");
    const std::uint32_t id = events_.names.id(name);
    raw_names_.emplace(raw, id);
    return id;
  }

  void read_args(ondemand::value value, Event& event) {
    ondemand::object args;
    if (!is_there(value.get_object().get(args))) return;
    switch (*event.category) {
      case Category::device_work:
        event.work.is_kernel = event.kind == "kernel" || event.kind == "Kernel";
        event.work.kind = class_of(event);
        args_.device_work(args, event.work, event.device, event.stream);
        break;
      case Category::runtime: event.correlation = args_.correlation(args); break;
      case Category::cpu_op:
        event.span.name = *event.name;
        args_.cpu_operator(args, event.span);
        break;
      case Category::annotation:
        if (is_collective(*event.name)) event.sent_bytes = args_.sent_bytes(args);
        break;
      case Category::sync: args_.sync(args); break;
      case Category::skipped: break;
    }
  }

  void finish(Event& event) {
    switch (*event.category) {
      case Category::device_work: return finish_work(event);
      case Category::runtime: return finish_call(event);
      case Category::cpu_op:
      case Category::annotation: return finish_span(event);
      case Category::sync:
      case Category::skipped: return;
    }
  }

  void finish_work(Event& event) {
    DeviceWork& work = event.work;
    work.is_kernel = event.kind == "kernel" || event.kind == "Kernel";
    work.kind = class_of(event);
    // What the file says counts where the name says nothing.
    if (work.message != 0 && work.kind == KernelClass::other)
      work.kind = KernelClass::communication;
    work.name = *event.name;
    const auto start_ns = time_ns(event.start, "ts"), duration_ns = time_ns(event.duration, "dur");
    work.start_ns = start_ns.value_or(0);
    work.duration_ns = duration_ns.value_or(0);
    const std::int64_t device =
        event.device ? *event.device : number_behind(event.process).value_or(-1);
    if (device < 0 || device > most_devices) throw DataError("there is no device");
    work.device = static_cast<std::uint32_t>(device);
    work.stream = event.stream ? *event.stream : number_behind(event.thread).value_or(-1);
    if (start_ns && duration_ns) {
      events_.work.push_back(work);
    } else {
      ++untimed_;
      builder_.leave_out_untimed_launch();
    }
  }

  void finish_call(const Event& event) {
    constexpr std::int64_t unknown_ns = -1;  // which CaptureBuilder::call leaves out
    const auto start_ns = time_ns(event.start, "ts");
    const auto duration_ns = time_ns(event.duration, "dur");
    if (!start_ns) return builder_.leave_out("host calls without a time");
    const HostCall call{.correlation = event.correlation.value_or(-1),
                        .start_ns = *start_ns,
                        .duration_ns = duration_ns.value_or(unknown_ns),
                        .thread = thread_of(event),
                        .kind = call_kind(*event.name)};
    if (event.correlation) events_.host_calls.push_back(call);
    events_.hip = events_.hip || events_.names[*event.name].starts_with("hip");
  }

  void finish_span(Event& event) {
    Span& span = event.span;
    const bool of_device = event.kind == on_device;
    if (of_device && !facts(*event.name).serves) return;
    const auto start_ns = time_ns(event.start, "ts"), duration_ns = time_ns(event.duration, "dur");
    if (!start_ns || !duration_ns)
      return builder_.leave_out(event.category == Category::cpu_op
                                    ? "operators without a start or an end"
                                    : "annotations without a start or an end");
    span.start_ns = *start_ns;
    span.end_ns = *start_ns + *duration_ns;
    if (of_device) {
      span.name = *event.name;
      return events_.device_steps.push_back(span);
    }
    span.thread = thread_of(event);
    span.name = *event.name;
    if (event.category == Category::cpu_op) {
      events_.operators.push_back(span);
      return;
    }
    events_.annotations.push_back(span);
    if (is_collective(span.name))
      events_.message_labels.push_back({span.start_ns, span.end_ns, span.thread,
                                        collective_kind_of(events_.names[span.name]),
                                        event.sent_bytes});
  }

  static std::optional<std::int64_t> time_ns(std::string_view token, std::string_view key) {
    if (token.empty()) throw DataError(fmt::format("there is no '{}'", key));
    return ns_of_us(token);
  }

  // Processes and threads are numbers as a rule. Others are numbered from -1 down.
  std::uint32_t thread_of(const Event& event) {
    if (event.process == last_process_ && event.thread == last_thread_) return last_id_;
    last_process_ = event.process;
    last_thread_ = event.thread;
    last_id_ = threads_.id(last_process_ + '/' + last_thread_);
    if (last_id_ == events_.threads.size()) {
      const auto number = [](std::string_view text, std::uint32_t otherwise) {
        return integer_in(text).value_or(-1 - static_cast<std::int64_t>(otherwise));
      };
      const std::uint32_t process = processes_.id(last_process_);
      events_.processes = std::max(events_.processes, process + 1);
      events_.threads.push_back(
          {process, {number(last_process_, process), number(last_thread_, last_id_)}});
    }
    return last_id_;
  }

  // ---- What follows from a name, looked up once each ----

  struct NameFacts {
    KernelClass kernel = KernelClass::other;
    std::optional<CallKind> call;
    bool collective = false, serves = false;
  };
  const NameFacts& facts(std::uint32_t name) {
    while (facts_.size() <= name) {
      const std::string& text = events_.names[static_cast<std::uint32_t>(facts_.size())];
      facts_.push_back({kernel_class_of(text), call_kind_of(text),
                        text.starts_with("nccl:") || text.starts_with("rccl:"),
                        serving_step_of(text).has_value()});
    }
    return facts_[name];
  }
  std::optional<CallKind> call_kind(std::uint32_t name) { return facts(name).call; }
  bool is_collective(std::uint32_t name) { return facts(name).collective; }
  KernelClass class_of(const Event& event) {
    if (event.work.is_kernel) return facts(*event.name).kernel;
    const bool memset = event.kind == "gpu_memset" || event.kind == "Memset";
    return memset ? KernelClass::memset : KernelClass::memcpy;
  }

  void member(std::string_view key, std::string_view value) {
    if (!is_head_member(key)) return;
    const auto problem = problem_of([&] { read_head_member(key, value, events_); });
    if (!problem) return;
    if (options_.partial) return builder_.leave_out("members that cannot be read");
    throw DataError(fmt::format("{}: {}: {}", printable(path_.string()), key, *problem),
                    {.in = printable(value.substr(0, 200)), .hint = "--partial leaves it out"});
  }

  const std::filesystem::path& path_;
  const ImportOptions& options_;
  CaptureBuilder& builder_;
  Events events_;
  ArgsReader args_;
  simdjson::dom::parser dom_;
  ondemand::parser parser_;
  JsonPart part_;
  TextIds raw_names_;  ///< names as they are written, quotes and all
  Names threads_, processes_;
  std::string last_process_, last_thread_;
  std::uint32_t last_id_ = 0;
  std::vector<NameFacts> facts_;  ///< by name
  std::uint64_t untimed_ = 0;     ///< launches
};

}  // namespace

Events read_events(const std::filesystem::path& path, const ImportOptions& options,
                   CaptureBuilder& builder) {
  return EventReader(path, options, builder).run();
}

}  // namespace rubato::kineto
