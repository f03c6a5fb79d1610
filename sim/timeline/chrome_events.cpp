#include "sim/timeline/chrome_events.hpp"

#include <cmath>
#include <utility>

#include "common/json.hpp"
#include "common/numbers.hpp"

namespace rubato {

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 16;

// Whole ns, as the viewer counts: it drops a slice that begins before the one before it ends.
double whole_ns(double s) { return std::round(s * 1e9); }

}  // namespace

ChromeTrace::ChromeTrace(TextSink sink, const Json& other_data)
    : sink_(std::move(sink)),
      text_("{\"displayTimeUnit\":\"ns\",\"otherData\":" + json_text(other_data) +
            ",\"traceEvents\":[") {}

void ChromeTrace::event(const Json& event) {
  if (!std::exchange(first_, false)) text_ += ',';
  text_ += json_text(event);
  if (text_.size() >= piece_bytes) flush();
}

void ChromeTrace::finish() {
  text_ += "]}\n";
  flush();
}

void ChromeTrace::flush() {
  sink_(text_);
  text_.clear();
}

ChromeProcess::ChromeProcess(ChromeTrace& trace, int pid, const std::string& title)
    : trace_(trace), pid_(pid) {
  metadata("process_name", 0, {{"name", title}});
  metadata("process_sort_index", 0, {{"sort_index", pid_}});
}

void ChromeProcess::metadata(const char* what, int tid, Json args) {
  trace_.event(
      {{"ph", "M"}, {"pid", pid_}, {"tid", tid}, {"name", what}, {"args", std::move(args)}});
}

void ChromeProcess::row(int tid, const std::string& name, std::optional<int> place) {
  metadata("thread_name", tid, {{"name", name}});
  if (place) metadata("thread_sort_index", tid, {{"sort_index", *place}});
}

void ChromeProcess::slice(int tid, std::string_view category, std::string_view name, double from_s,
                          double to_s, Json args) {
  const double from_ns = whole_ns(from_s);
  trace_.event({{"ph", "X"},
                {"pid", pid_},
                {"tid", tid},
                {"ts", from_ns / 1e3},
                {"dur", (whole_ns(to_s) - from_ns) / 1e3},
                {"cat", category},
                {"name", name},
                {"args", std::move(args)}});
}

void ChromeProcess::flow(std::string_view kind, int from_tid, double from_s, int to_tid,
                         double to_s) {
  Json event{{"ph", "s"},
             {"pid", pid_},
             {"tid", from_tid},
             {"ts", whole_ns(from_s) / 1e3},
             {"id", trace_.next_flow()},
             {"cat", "flow"},
             {"name", kind}};
  trace_.event(event);
  event["ph"] = "f";
  event["tid"] = to_tid;
  event["ts"] = whole_ns(to_s) / 1e3;
  event["bp"] = "e";  // of the slice around it, not of the next one
  trace_.event(event);
}

void ChromeProcess::counter(const std::string& name, const char* unit, double at_s, double value) {
  trace_.event({{"ph", "C"},
                {"pid", pid_},
                {"ts", at_s * us_per_s},
                {"name", name},
                {"args", {{unit, value}}}});
}

}  // namespace rubato
