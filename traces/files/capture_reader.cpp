#include "traces/files/capture_json.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/json_parts.hpp"
#include "common/text.hpp"
#include "traces/files/capture_parts.hpp"
#include "traces/files/kernel_json.hpp"

namespace rubato {

namespace {

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
    static constexpr std::array<std::string_view, 3> lists{"kernels", "launches", "calls"};
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
    if (!bad_calls_.empty()) forget_calls();
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
    if (list == "calls") {
      if (!options_.partial) return add_calls(document.root());
      try {
        add_calls(document.root());
      } catch (const DataError& error) {
        if (bad_calls_.empty()) bad_calls_ = error.what();
      }
      return;
    }
    if (list == "launches") {
      if (!options_.partial) return add_launches(document.root());
      try {
        add_launches(document.root());
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
        "schema",  "kind",        "name",        "provenance", "epoch_ns",  "origin_ns", "devices",
        "streams", "step_source", "steps",       "left_out",   "kernels",   "launches",  "threads",
        "calls",   "groups",      "collectives", "rank",       "world_size"};
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
    if (key == "schema") {
      node.check_schema(capture_schema);
    } else if (key == "kind") {
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
    } else if (key == "rank") {
      capture_.rank = read_count_32(node);
    } else if (key == "world_size") {
      capture_.world_size = read_count_32(node);
    } else if (key == "step_source") {
      step_source(node);
    } else if (key == "left_out") {
      for (const JsonNode& line : node.items()) capture_.left_out.push_back(line.text());
    } else {
      list(key, node);
    }
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
        capture_.devices.push_back(read_device(item));
      } else if (key == "streams") {
        capture_.streams.push_back(read_stream(item));
      } else if (key == "steps") {
        item.expect_keys({"name", "start_ns", "end_ns"});
        capture_.steps.push_back(
            {item.at("name").text(), item.at("start_ns").integer(), item.at("end_ns").integer()});
      } else if (key == "threads") {
        item.expect_keys({"process", "id"});
        capture_.threads.push_back({item.at("process").integer(), item.at("id").integer()});
      } else if (key == "groups") {
        capture_.groups.push_back(read_group(item));
      } else if (key == "collectives") {
        capture_.collectives.push_back(read_collective(item));
      } else {
        node.fail("expected a list of objects");  // kernels, launches or calls that are no list
      }
    }
  }

  void add_launches(const JsonNode& node) {
    const LaunchColumns block = read_launches(node);
    capture_.launches.insert(capture_.launches.end(), block.launches.begin(), block.launches.end());
    own_pass_.insert(own_pass_.end(), block.launches.size(), block.own_pass);
  }

  void add_calls(const JsonNode& node) {
    const std::vector<CapturedCall> calls = read_calls(node);
    capture_.calls.insert(capture_.calls.end(), calls.begin(), calls.end());
  }

  // Without one block all positions of calls behind it are wrong.
  void forget_calls() {
    capture_.left_out.push_back(
        fmt::format("the calls of the host, of which a block cannot be read: {}", bad_calls_));
    capture_.calls.clear();
    for (CapturedLaunch& launch : capture_.launches) launch.call.reset();
  }

  // Checks what refers to another part of the file, which may have come later.
  void finish() {
    ErrorList errors;
    for (const CaptureStream& stream : capture_.streams) {
      if (stream.device >= capture_.devices.size())
        errors.add(fmt::format("{}: streams: device {}, but there are {}", shown_, stream.device,
                               capture_.devices.size()));
    }
    for (const CapturedCollective& collective : capture_.collectives)
      check(errors, "a collective has group", collective.group, capture_.groups.size());
    finish_calls(errors);
    for (std::size_t i = 0; i < capture_.launches.size(); ++i) {
      CapturedLaunch& launch = capture_.launches[i];
      check(errors, "a launch has stream", launch.stream, capture_.streams.size());
      check(errors, "a launch has step", launch.step, capture_.steps.size());
      check(errors, "a launch has collective", launch.collective, capture_.collectives.size());
      if (check(errors, "a launch has kernel", launch.kernel.value, capture_.kernels.size()) &&
          !own_pass_[i])
        launch.pass = capture_.kernels[index(launch.kernel)].pass;
      launch.start_ns = plus_origin(launch.start_ns, origin_ns_);
      if (launch.launch_ns) launch.launch_ns = plus_origin(*launch.launch_ns, origin_ns_);
      if (check(errors, "a launch has call", launch.call, capture_.calls.size()) && launch.call)
        launch.launch_ns = capture_.calls[*launch.call].start_ns;
    }
    errors.throw_if_any();
    for (CapturedStep& step : capture_.steps) {
      step.start_ns = plus_origin(step.start_ns, origin_ns_);
      step.end_ns = plus_origin(step.end_ns, origin_ns_);
    }
    if (!std::ranges::is_sorted(capture_.launches, {}, &CapturedLaunch::start_ns))
      sort_by(capture_.launches, &CapturedLaunch::start_ns);
  }

  // Calls are not put in order: launches refer to them by their places.
  void finish_calls(ErrorList& errors) {
    for (CapturedCall& call : capture_.calls) {
      check(errors, "a call has thread", call.thread, capture_.threads.size());
      check(errors, "a call has stream", call.stream, capture_.streams.size());
      check(errors, "a call has recorded_stream", call.recorded_stream, capture_.streams.size());
      if (check(errors, "a call has record", call.record, capture_.calls.size()) && call.record &&
          capture_.calls[*call.record].kind != CallKind::event_record)
        errors.add(fmt::format("{}: a call has record {}, which is no event_record", shown_,
                               *call.record));
      call.start_ns = plus_origin(call.start_ns, origin_ns_);
    }
    if (!std::ranges::is_sorted(capture_.calls, {}, &CapturedCall::start_ns))
      errors.add(fmt::format("{}: calls are not in order of start_ns", shown_));
  }

  bool check(ErrorList& errors, std::string_view what, const std::optional<std::uint32_t>& position,
             std::size_t count) const {
    if (!position || *position < count) return true;
    errors.add(fmt::format("{}: {} {}, but there are {}", shown_, what, *position, count));
    return false;
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
  std::string first_bad_block_, bad_calls_;
};

}  // namespace

Capture load_capture(const std::filesystem::path& path, const ImportOptions& options) {
  return CaptureReader(path, options).run();
}

}  // namespace rubato
