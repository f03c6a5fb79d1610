#include "traces/import/file_patterns.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <glob.h>

#include "common/error.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

// "rank10" after "rank9".
bool before_by_number(const std::string& a, const std::string& b) {
  std::size_t i = 0, j = 0;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      std::size_t i_end = i, j_end = j;
      while (i_end < a.size() && digit(a[i_end])) ++i_end;
      while (j_end < b.size() && digit(b[j_end])) ++j_end;
      const std::string_view first = std::string_view(a).substr(i, i_end - i);
      const std::string_view second = std::string_view(b).substr(j, j_end - j);
      if (first.size() != second.size()) return first.size() < second.size();
      if (first != second) return first < second;
      i = i_end;
      j = j_end;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

std::vector<std::string> files_of_patterns(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    if (std::filesystem::exists(pattern)) {
      files.push_back(pattern);
      continue;
    }
    glob_t found{};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    std::vector<std::string> matches;
    if (status == 0) matches.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (matches.empty())
      throw UsageError(fmt::format("no file is named like '{}'", printable(pattern)));
    std::ranges::sort(matches, before_by_number);
    files.insert(files.end(), matches.begin(), matches.end());
  }
  return files;
}

}  // namespace rubato
