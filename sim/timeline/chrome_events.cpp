#include "sim/timeline/chrome_events.hpp"

namespace rubato {

namespace {

constexpr double us_per_s = 1e6;

}  // namespace

ChromeProcess::ChromeProcess(Json& events, int pid, const std::string& title)
    : events_(events), pid_(pid) {
  metadata("process_name", 0, {{"name", title}});
  metadata("process_sort_index", 0, {{"sort_index", pid_}});
}

void ChromeProcess::metadata(const char* what, int tid, Json args) {
  events_.push_back(
      {{"ph", "M"}, {"pid", pid_}, {"tid", tid}, {"name", what}, {"args", std::move(args)}});
}

void ChromeProcess::row(int tid, const std::string& name) {
  metadata("thread_name", tid, {{"name", name}});
}

void ChromeProcess::slice(int tid, std::string_view category, std::string_view name, double from_s,
                          double duration_s, Json args) {
  events_.push_back({{"ph", "X"},
                     {"pid", pid_},
                     {"tid", tid},
                     {"ts", from_s * us_per_s},
                     {"dur", duration_s * us_per_s},
                     {"cat", category},
                     {"name", name},
                     {"args", std::move(args)}});
}

void ChromeProcess::counter(const std::string& name, const char* unit, double at_s, double value) {
  events_.push_back({{"ph", "C"},
                     {"pid", pid_},
                     {"ts", at_s * us_per_s},
                     {"name", name},
                     {"args", {{unit, value}}}});
}

std::string chrome_trace(nlohmann::ordered_json other_data, nlohmann::ordered_json events) {
  const nlohmann::ordered_json json{{"displayTimeUnit", "ns"},
                                    {"otherData", std::move(other_data)},
                                    {"traceEvents", std::move(events)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace rubato
