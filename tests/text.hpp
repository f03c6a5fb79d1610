#pragma once
// A text with one thing wrong.

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace rubato {

/// The text with the first `from` as `to`; the test fails where there is none.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace rubato
