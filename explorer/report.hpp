#pragma once
// A run as one self-contained page: no request leaves it, it opens from a file.

#include <cstdint>
#include <string>
#include <string_view>

#include "explorer/store.hpp"

namespace rubato {

/// HTML with data, styles and scripts inside. Published results are drawn beside
/// a run in the published setting.
/// @param run  an existing run_id
[[nodiscard]] std::string report_page(const ResultStore& store, std::int64_t run);

/// JSON text that can stand inside a script element: no '<', '>' or '&', and no
/// line separators that JavaScript would take for ends of lines.
[[nodiscard]] std::string script_safe(std::string_view json);

}  // namespace rubato
