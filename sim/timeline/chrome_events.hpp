#pragma once
// Events of a Chrome trace, as ui.perfetto.dev reads them.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace rubato {

/// Events of one process (one run in the viewer). Times in seconds from 0.
class ChromeProcess {
 public:
  using Json = nlohmann::ordered_json;

  /// Names the process. `events` is an array that lives longer.
  ChromeProcess(Json& events, int pid, const std::string& title);

  /// Names a row; rows stand in the order of their numbers.
  void row(int tid, const std::string& name);
  void slice(int tid, std::string_view category, std::string_view name, double from_s,
             double duration_s, Json args);
  /// A value that holds until the next one of the same name.
  void counter(const std::string& name, const char* unit, double at_s, double value);

 private:
  void metadata(const char* what, int tid, Json args);

  Json& events_;
  int pid_;
};

/// The whole document; bytes that are not UTF-8 are replaced. Ends with a newline.
[[nodiscard]] std::string chrome_trace(nlohmann::ordered_json other_data,
                                       nlohmann::ordered_json events);

}  // namespace rubato
