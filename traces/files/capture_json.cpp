#include "traces/files/capture_json.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <unordered_set>

#include <fmt/format.h>

#include "common/error.hpp"
#include "common/gzip.hpp"
#include "common/json_parts.hpp"
#include "common/text.hpp"
#include "traces/files/kernel_json.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t launches_per_block = 1000;

// ---- Writing ----

// Times are written from the first start on, which keeps them short; absurd ones as they are.
std::int64_t origin_of(const Capture& capture) {
  constexpr std::int64_t limit = std::int64_t{1} << 61;
  const auto sane = [](std::int64_t ns) { return -limit < ns && ns < limit; };
  const bool all_sane =
      std::ranges::all_of(capture.launches,
                          [&](const CapturedLaunch& l) {
                            return sane(l.start_ns) && sane(l.launch_ns.value_or(0));
                          }) &&
      std::ranges::all_of(
          capture.steps, [&](const CapturedStep& s) { return sane(s.start_ns) && sane(s.end_ns); });
  if (!all_sane || capture.launches.empty()) return 0;
  return std::ranges::min_element(capture.launches, {}, &CapturedLaunch::start_ns)->start_ns;
}

template <class List, class ToJson>
Json listed(const List& list, const ToJson& to) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(to(item));
  return json;
}

// One column of a block, "name": [1,null,2].
template <class Value>
void append_column(std::string& text, std::string_view name, std::span<const CapturedLaunch> block,
                   const Value& value) {
  text += fmt::format("{}\"{}\": [", text.ends_with('{') ? "" : ", ", name);
  for (const CapturedLaunch& launch : block) {
    const std::optional<std::int64_t> number = value(launch);
    if (number) {
      fmt::format_to(std::back_inserter(text), "{},", *number);
    } else {
      text += "null,";
    }
  }
  text.back() = ']';
}

void append_block(std::string& text, const Capture& capture, std::span<const CapturedLaunch> block,
                  std::int64_t origin_ns) {
  using Number = std::optional<std::int64_t>;
  text += '{';
  append_column(text, "kernel", block, [](const auto& l) { return Number(index(l.kernel)); });
  append_column(text, "stream", block, [](const auto& l) { return Number(l.stream); });
  append_column(text, "start_ns", block,
                [&](const auto& l) { return Number(l.start_ns - origin_ns); });
  append_column(text, "duration_ns", block, [](const auto& l) { return Number(l.duration_ns); });
  // Columns that say nothing are left out; the pass is the kernel's, as a rule.
  if (std::ranges::any_of(block, [](const auto& l) { return l.launch_ns.has_value(); })) {
    append_column(text, "launch_ns", block, [&](const auto& l) {
      return l.launch_ns ? Number(*l.launch_ns - origin_ns) : std::nullopt;
    });
  }
  if (std::ranges::any_of(block, [](const auto& l) { return l.step.has_value(); }))
    append_column(text, "step", block, [](const auto& l) { return Number(l.step); });
  const auto own_pass = [&](const auto& l) {
    return l.pass != capture.kernels[index(l.kernel)].pass;
  };
  if (std::ranges::any_of(block, own_pass)) {
    const Json names = listed(block, [](const auto& l) { return name_of(l.pass); });
    text += ", \"pass\": " + json_line(names);
  }
  text += '}';
}

std::string head_json(const Capture& capture, std::int64_t origin_ns) {
  const Provenance& p = capture.provenance;
  const Json provenance{{"generator", p.generator}, {"source", p.source}, {"options", p.options}};
  const Json devices = listed(capture.devices, [](const CaptureDevice& d) {
    return Json{{"id", d.id}, {"name", d.name}};
  });
  const Json streams = listed(capture.streams, [](const CaptureStream& s) {
    return Json{{"device", s.device}, {"id", s.id}};
  });
  const Json steps = listed(capture.steps, [&](const CapturedStep& s) {
    return Json{
        {"name", s.name}, {"start_ns", s.start_ns - origin_ns}, {"end_ns", s.end_ns - origin_ns}};
  });
  std::string text = fmt::format(
      "{{\n  \"schema\": {},\n  \"kind\": \"capture\",\n  \"name\": {},\n  \"provenance\": {},\n",
      capture_schema, json_line(capture.name), json_line(provenance));
  if (capture.epoch_ns) text += fmt::format("  \"epoch_ns\": {},\n", *capture.epoch_ns);
  text += fmt::format(
      "  \"origin_ns\": {},\n  \"devices\": {},\n  \"streams\": {},\n  \"step_source\": \"{}\",\n"
      "  \"steps\": {},\n  \"left_out\": {},\n",
      origin_ns, json_line(devices), json_line(streams), name_of(capture.step_source),
      json_line(steps), json_line(Json(capture.left_out)));
  return text;
}

// ---- Reading ----

std::int64_t plus_origin(std::int64_t relative_ns, std::int64_t origin_ns) {
  std::int64_t time_ns = 0;
  if (__builtin_add_overflow(relative_ns, origin_ns, &time_ns))
    throw DataError(fmt::format("a time of {} ns from {} ns on is absurd", relative_ns, origin_ns));
  return time_ns;
}

class CaptureReader {
 public:
  CaptureReader(const std::filesystem::path& path, const ImportOptions& options)
      : path_(path), shown_(printable(path.string())), options_(options) {}

  Capture run() {
    ByteSource source(path_, options_.max_expanded_bytes);
    static constexpr std::array<std::string_view, 2> lists{"kernels", "launches"};
    try {
      read_json_lists(
          source, lists,
          {.element = [this](auto list, auto text, auto at) { element(list, text, at); },
           .member = [this](auto key, auto value) { member(key, value); }});
    } catch (const DataError& error) {
      if (!options_.partial || capture_.launches.empty() || !seen_.contains("origin_ns")) throw;
      capture_.left_out.push_back(fmt::format("what follows the damage: {}", error.what()));
    }
    if (bad_blocks_ > 0) {
      capture_.left_out.push_back(
          fmt::format("{} blocks of launches that cannot be read; the first: {}", bad_blocks_,
                      first_bad_block_));
    }
    for (const char* key : {"schema", "kind", "name", "provenance", "origin_ns", "devices",
                            "streams", "step_source", "steps", "left_out"}) {
      if (!seen_.contains(key))
        throw DataError(fmt::format("{}: key '{}' is missing", shown_, key));
    }
    finish();
    return std::move(capture_);
  }

 private:
  void element(std::string_view list, std::string_view text, std::uint64_t at) {
    const std::string place = fmt::format("{}: byte {}: {}", shown_, at, list);
    const JsonDocument document = JsonDocument::parse(text, place);
    if (list == "launches") {
      if (!options_.partial) return block(document.root());
      try {
        block(document.root());
      } catch (const DataError& error) {
        if (bad_blocks_++ == 0) first_bad_block_ = error.what();
      }
      return;
    }
    capture_.kernels.push_back(read_kernel(document.root()));
    const std::string& name = capture_.kernels.back().name;
    if (!names_.insert(name).second)
      document.root().fail(fmt::format("kernel name '{}' occurs twice", printable(name)));
  }

  void member(std::string_view key, std::string_view value) {
    static const std::vector<std::string> known{
        "schema",  "kind",        "name",  "provenance", "epoch_ns", "origin_ns", "devices",
        "streams", "step_source", "steps", "left_out",   "kernels",  "launches"};
    const std::string place = fmt::format("{}: {}", shown_, printable(key));
    if (std::ranges::find(known, key) == known.end()) {
      throw DataError(
          fmt::format("{}: unknown key '{}'{}", shown_, printable(key), did_you_mean(key, known)));
    }
    if (!seen_.insert(std::string(key)).second)
      throw DataError(fmt::format("{}: key '{}' occurs twice", shown_, key));
    const JsonDocument document = JsonDocument::parse(value, place);
    read(key, document.root());
  }

  void read(std::string_view key, const JsonNode& node) {
    if (key == "schema") return check_schema(node);
    if (key == "kind") {
      if (node.text() != "capture")
        node.fail(fmt::format("found '{}'; expected 'capture'", printable(node.text())));
    } else if (key == "name") {
      capture_.name = node.text();
    } else if (key == "provenance") {
      node.expect_keys({"generator", "source", "options"});
      capture_.provenance = {node.at("generator").text(), node.at("source").text(),
                             node.at("options").text()};
    } else if (key == "epoch_ns") {
      capture_.epoch_ns = node.integer();
    } else if (key == "origin_ns") {
      origin_ns_ = node.integer();
    } else if (key == "step_source") {
      step_source(node);
    } else if (key == "left_out") {
      for (const JsonNode& line : node.items()) capture_.left_out.push_back(line.text());
    } else {
      list(key, node);
    }
  }

  static void check_schema(const JsonNode& node) {
    const std::uint64_t found = node.count();
    if (found == capture_schema) return;
    node.fail(fmt::format("schema {} is not supported; expected {}", found, capture_schema),
              found > capture_schema ? "the file was written by a newer version of rubato" : "");
  }

  void step_source(const JsonNode& node) {
    const std::string text = node.text();
    for (const StepSource source :
         {StepSource::annotation, StepSource::periodic, StepSource::whole_file}) {
      if (name_of(source) == text) {
        capture_.step_source = source;
        return;
      }
    }
    node.fail(fmt::format("'{}' is not known; expected annotation, periodic or whole_file",
                          printable(text)));
  }

  void list(std::string_view key, const JsonNode& node) {
    for (const JsonNode& item : node.items()) {
      if (key == "devices") {
        item.expect_keys({"id", "name"});
        capture_.devices.push_back({read_count_32(item.at("id")), item.at("name").text()});
      } else if (key == "streams") {
        item.expect_keys({"device", "id"});
        capture_.streams.push_back({read_count_32(item.at("device")), item.at("id").integer()});
      } else if (key == "steps") {
        item.expect_keys({"name", "start_ns", "end_ns"});
        capture_.steps.push_back(
            {item.at("name").text(), item.at("start_ns").integer(), item.at("end_ns").integer()});
      } else {
        node.fail("expected a list of objects");  // kernels or launches that are no list
      }
    }
  }

  using Column = std::vector<std::optional<std::int64_t>>;

  // A required column has no null; an optional one may be missing.
  static Column column(const JsonNode& node, std::string_view key, std::size_t size,
                       bool required) {
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

  static std::vector<Pass> pass_column(const JsonNode& node, std::size_t size) {
    std::vector<Pass> passes;
    const auto found = node.find("pass");
    if (!found) return passes;
    for (const JsonNode& name : found->items()) passes.push_back(read_name<Pass>(name));
    if (passes.size() != size)
      found->fail(fmt::format("has {} values, 'kernel' has {}", passes.size(), size));
    return passes;
  }

  void block(const JsonNode& node) {
    node.expect_keys({"kernel", "stream", "start_ns", "duration_ns"},
                     {"launch_ns", "step", "pass"});
    const std::size_t size = node.at("kernel").integers().size();
    const Column kernels = column(node, "kernel", size, true),
                 streams = column(node, "stream", size, true),
                 starts = column(node, "start_ns", size, true),
                 durations = column(node, "duration_ns", size, true),
                 calls = column(node, "launch_ns", size, false),
                 steps = column(node, "step", size, false);
    const std::vector<Pass> passes = pass_column(node, size);
    std::vector<CapturedLaunch> launches(size);
    constexpr std::int64_t most = (std::int64_t{1} << 32) - 1;
    const auto small = [&](std::string_view key, std::int64_t value, std::int64_t limit) {
      if (value < 0 || value > limit) node.fail(fmt::format("{} {} does not exist", key, value));
      return static_cast<std::uint32_t>(value);
    };
    for (std::size_t i = 0; i < size; ++i) {
      CapturedLaunch& launch = launches[i];
      launch.kernel = id_at<KernelId>(small("kernel", *kernels[i], most));
      launch.stream = small("stream", *streams[i], most);
      launch.start_ns = *starts[i];
      launch.duration_ns = *durations[i];
      launch.launch_ns = calls[i];
      if (steps[i]) launch.step = small("step", *steps[i], most);
      if (!passes.empty()) launch.pass = passes[i];
      if (launch.duration_ns < 0 || launch.duration_ns > longest_launch_ns)
        node.fail(fmt::format("duration_ns[{}] is {}; expected 0 to a day", i, launch.duration_ns));
    }
    capture_.launches.insert(capture_.launches.end(), launches.begin(), launches.end());
    own_pass_.insert(own_pass_.end(), size, !passes.empty());
  }

  // What refers to another part of the file, which may come later in it.
  void finish() {
    ErrorList errors;
    const auto check = [&](std::string_view what, std::size_t position, std::size_t count) {
      if (position >= count)
        errors.add(
            fmt::format("{}: a launch has {} {}, but there are {}", shown_, what, position, count));
      return position < count;
    };
    for (const CaptureStream& stream : capture_.streams) {
      if (stream.device >= capture_.devices.size())
        errors.add(fmt::format("{}: streams: device {}, but there are {}", shown_, stream.device,
                               capture_.devices.size()));
    }
    for (std::size_t i = 0; i < capture_.launches.size(); ++i) {
      CapturedLaunch& launch = capture_.launches[i];
      check("stream", launch.stream, capture_.streams.size());
      if (launch.step) check("step", *launch.step, capture_.steps.size());
      const bool known = check("kernel", index(launch.kernel), capture_.kernels.size());
      if (known && !own_pass_[i]) launch.pass = capture_.kernels[index(launch.kernel)].pass;
      launch.start_ns = plus_origin(launch.start_ns, origin_ns_);
      if (launch.launch_ns) launch.launch_ns = plus_origin(*launch.launch_ns, origin_ns_);
    }
    errors.throw_if_any();
    for (CapturedStep& step : capture_.steps) {
      step.start_ns = plus_origin(step.start_ns, origin_ns_);
      step.end_ns = plus_origin(step.end_ns, origin_ns_);
    }
    if (!std::ranges::is_sorted(capture_.launches, {}, &CapturedLaunch::start_ns))
      std::ranges::stable_sort(capture_.launches, {}, &CapturedLaunch::start_ns);
  }

  std::filesystem::path path_;
  std::string shown_;
  ImportOptions options_;
  Capture capture_;
  std::int64_t origin_ns_ = 0;
  std::set<std::string, std::less<>> seen_;
  std::unordered_set<std::string> names_;
  std::vector<bool> own_pass_;  ///< by launch
  std::uint64_t bad_blocks_ = 0;
  std::string first_bad_block_;
};

}  // namespace

std::string capture_json(const Capture& capture) {
  const std::int64_t origin_ns = origin_of(capture);
  std::string text = head_json(capture, origin_ns);
  text += "  \"kernels\": [";
  for (std::size_t k = 0; k < capture.kernels.size(); ++k)
    text += (k > 0 ? ",\n    " : "\n    ") + json_line(kernel_json(capture.kernels[k]));
  text += "\n  ],\n  \"launches\": [";
  const std::span<const CapturedLaunch> all(capture.launches);
  for (std::size_t first = 0; first < all.size(); first += launches_per_block) {
    text += first > 0 ? ",\n    " : "\n    ";
    append_block(text, capture,
                 all.subspan(first, std::min(launches_per_block, all.size() - first)), origin_ns);
  }
  text += "\n  ]\n}\n";
  return text;
}

void save_capture(const Capture& capture, const std::filesystem::path& path) {
  write_text(path, capture_json(capture));
}

Capture load_capture(const std::filesystem::path& path, const ImportOptions& options) {
  return CaptureReader(path, options).run();
}

}  // namespace rubato
