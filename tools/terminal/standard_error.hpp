#pragma once
// What the user is told beside the answer.

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "tools/terminal/terminal.hpp"

namespace rubato {

/// To standard error. That nobody reads it any more, as in `2>&1 | head`, is no error.
template <class... T>
void tell(fmt::format_string<T...> format, T&&... values) {
  clear_progress();
  std::fputs(fmt::format(format, std::forward<T>(values)...).c_str(), stderr);
}

}  // namespace rubato
