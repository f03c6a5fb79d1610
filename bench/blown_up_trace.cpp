#include "bench/blown_up_trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/byte_source.hpp"
#include "common/error.hpp"
#include "common/json_parts.hpp"

namespace rubato {

namespace {

// A number of the text that differs from copy to copy; decimals behind it stay as they are.
struct Varying {
  std::size_t at = 0, size = 0;
  std::uint64_t value = 0;
  bool is_time = false;
};

// Keys at which they stand, as Kineto writes them: time in us, ids of launches and operators.
constexpr std::string_view time_key = "\"ts\": ";
constexpr std::array<std::string_view, 3> id_keys{
    "\"correlation\": ", "\"External id\": ", "\"id\": "};

std::vector<Varying> varying_numbers(std::string_view text) {
  std::vector<Varying> found;
  const auto add = [&](std::string_view key, bool is_time) {
    for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at)) {
      at += key.size();
      Varying number{at, 0, 0, is_time};
      const char* const from = text.data() + at;
      const auto [end, error] = std::from_chars(from, text.data() + text.size(), number.value);
      number.size = static_cast<std::size_t>(end - from);
      if (error == std::errc()) found.push_back(number);
    }
  };
  add(time_key, true);
  for (const std::string_view key : id_keys) add(key, false);
  std::ranges::sort(found, {}, &Varying::at);
  return found;
}

struct Events {
  std::size_t from = 0, to = 0;  ///< all of them in the file
};

Events events_of(const std::filesystem::path& path) {
  Events events;
  ByteSource source(path);
  read_json_parts(source, "traceEvents",
                  {.element =
                       [&](std::string_view text, std::uint64_t at) {
                         if (events.to == 0) events.from = at;
                         events.to = at + text.size();
                       },
                   .member = {}});
  if (events.to == 0) throw DataError(path.string() + ": has no events");
  return events;
}

}  // namespace

void blow_up_trace(const std::filesystem::path& from, const std::filesystem::path& to,
                   std::uint64_t bytes) {
  const std::string text = read_expanded(from, max_expanded_bytes);
  const Events events = events_of(from);
  const std::string_view body = std::string_view(text).substr(events.from, events.to - events.from);
  const std::vector<Varying> numbers = varying_numbers(body);
  std::uint64_t first_us = UINT64_MAX, last_us = 0, ids = 0;
  for (const Varying& number : numbers) {
    if (!number.is_time) {
      ids = std::max(ids, number.value + 1);
      continue;
    }
    first_us = std::min(first_us, number.value);
    last_us = std::max(last_us, number.value);
  }
  constexpr std::uint64_t pause_us = 1'000'000;  // longer than the last event
  const std::uint64_t span_us = last_us - first_us + pause_us;
  const std::uint64_t copies = std::max<std::uint64_t>(bytes / body.size(), 1);
  std::ofstream out(to, std::ios::binary);
  out << std::string_view(text).substr(0, events.from);
  for (std::uint64_t copy = 0; copy < copies; ++copy) {
    if (copy > 0) out << ",\n";
    std::size_t done = 0;
    for (const Varying& number : numbers) {
      out << body.substr(done, number.at - done)
          << number.value + copy * (number.is_time ? span_us : ids);
      done = number.at + number.size;
    }
    out << body.substr(done);
  }
  out << std::string_view(text).substr(events.to);
  if (!out.flush()) throw IoError(to.string() + ": cannot be written");
}

}  // namespace rubato
