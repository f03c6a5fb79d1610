#pragma once
// Events of a Chrome trace, as ui.perfetto.dev reads them, written as they come.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace rubato {

/// Where text goes, piece by piece: a file, or a string.
using TextSink = std::function<void(std::string_view)>;

/// The document: a head, events, an end. Events are handed on as they come, so that there may be
/// millions.
class ChromeTrace {
 public:
  using Json = nlohmann::ordered_json;

  /// @param other_data  what the viewer shows about the whole trace
  ChromeTrace(TextSink sink, const Json& other_data);

  /// Adds an event. Bytes of it that are not UTF-8 are replaced.
  void event(const Json& event);

  /// Ends the document, with a newline. To be called once, after all events.
  void finish();

 private:
  void flush();

  TextSink sink_;
  std::string text_;  ///< not yet given to the sink
  bool first_ = true;
};

/// Events of one process (one run in the viewer). Times in seconds from 0.
class ChromeProcess {
 public:
  using Json = ChromeTrace::Json;

  /// Names the process. `trace` must outlive it.
  ChromeProcess(ChromeTrace& trace, int pid, const std::string& title);

  /// Names a row. Rows stand in the order of their numbers, or of `place`.
  void row(int tid, const std::string& name, std::optional<int> place = std::nullopt);
  void slice(int tid, std::string_view category, std::string_view name, double from_s,
             double duration_s, Json args);
  /// Something that takes no time.
  void instant(int tid, std::string_view name, double at_s);
  /// A value that holds until the next one of the same name.
  void counter(const std::string& name, const char* unit, double at_s, double value);

 private:
  void metadata(const char* what, int tid, Json args);

  ChromeTrace& trace_;
  int pid_;
};

}  // namespace rubato
