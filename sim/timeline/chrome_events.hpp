#pragma once
// Events of a Chrome trace, as ui.perfetto.dev reads them, written as they come.

#include <cstdint>
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

  /// A number that no other flow of the document has.
  [[nodiscard]] std::uint64_t next_flow() noexcept { return flows_++; }

 private:
  void flush();

  TextSink sink_;
  std::string text_;  ///< not yet given to the sink
  bool first_ = true;
  std::uint64_t flows_ = 0;
};

/// Events of one process (one run in the viewer). Times in seconds from 0.
class ChromeProcess {
 public:
  using Json = ChromeTrace::Json;

  /// Names the process. `trace` must outlive it.
  ChromeProcess(ChromeTrace& trace, int pid, const std::string& title);

  /// Names a row. Rows stand in the order of their numbers, or of `place`.
  void row(int tid, const std::string& name, std::optional<int> place = std::nullopt);
  /// Both ends are written to the nearest ns, so that slices in a row meet.
  void slice(int tid, std::string_view category, std::string_view name, double from_s, double to_s,
             Json args);
  /// An arrow from a slice of one row to one of another, which the viewer draws. To be called after
  /// both slices: an end belongs to the slice of its row that began last by then.
  /// @param kind    why the second waits for the first
  /// @param from_s  within the first slice
  /// @param to_s    within the second slice, >= from_s
  void flow(std::string_view kind, int from_tid, double from_s, int to_tid, double to_s);
  /// A value that holds until the next one of the same name.
  void counter(const std::string& name, const char* unit, double at_s, double value);

 private:
  void metadata(const char* what, int tid, Json args);

  ChromeTrace& trace_;
  int pid_;
};

}  // namespace rubato
