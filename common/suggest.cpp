#include "common/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rubato {

namespace {

// Known names that contain a part; upper and lower case are equal.
std::vector<std::string> names_with(std::string_view part, std::span<const std::string> known) {
  constexpr std::size_t least = 2;  // one character is in too many names
  std::vector<std::string> found;
  if (part.size() < least) return found;
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const std::string& name : known) {
    if (std::search(name.begin(), name.end(), part.begin(), part.end(), same) != name.end())
      found.push_back(name);
  }
  return found;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rolling rows: before_last is needed for swaps of neighbours.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> known) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(name.size() / 3, 1) + 1;
  for (const std::string& candidate : known) {
    const auto [shorter, longer] = std::minmax({name.size(), candidate.size()});
    if (longer - shorter >= best_distance) continue;  // every surplus character is an edit
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const std::vector<std::string> longer = names_with(name, known);
  if (longer.size() > 1) return fmt::format("; did you mean one of {}?", fmt::join(longer, ", "));
  if (longer.size() == 1) return fmt::format("; did you mean '{}'?", longer.front());
  if (const auto best = nearest(name, known)) return fmt::format("; did you mean '{}'?", *best);
  if (known.empty()) return "";
  constexpr std::size_t most = 20, few = 3;
  if (known.size() > most) {
    std::vector<std::string> near(known.begin(), known.end());
    std::ranges::stable_sort(near, {}, [&](const auto& one) { return edit_distance(name, one); });
    near.resize(few);
    return fmt::format("; the nearest of {} are {}", known.size(), fmt::join(near, ", "));
  }
  return fmt::format("; expected one of {}", fmt::join(known, ", "));
}

}  // namespace rubato
