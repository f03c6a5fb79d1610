#pragma once
// Self-contained pages of one design. frame.html, style.css and common.js stand around the
// contents. These are drawn already, or they are a template, d3, a script and data as JSON.

#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "explorer/results/store.hpp"

namespace rubato {

/// Rows as objects by column name.
[[nodiscard]] nlohmann::ordered_json rows_as_objects(const QueryResult& result);

/// {"columns": [...], "rows": [[...], ...]}: names once, for many rows.
[[nodiscard]] nlohmann::ordered_json rows_as_table(const QueryResult& result);

/// A page: templates/page.js draws the document. It holds `kind` (run, experiment, drawn), `title`,
/// `subtitle`, `answer` (the five lines) and `tables` by name as rows_as_table() makes them.
[[nodiscard]] std::string filled_page(const nlohmann::ordered_json& data);

/// The same frame around contents that are drawn already: no d3, no data.
/// @param title, main  HTML, what comes from files escaped
[[nodiscard]] std::string static_page(std::string_view title, std::string_view main);

/// JSON text that can stand inside a script element: no '<', '>' or '&', and no
/// line separators that JavaScript would take for ends of lines.
[[nodiscard]] std::string script_safe(std::string_view json);

}  // namespace rubato
