#pragma once
// Pages of commands that are not stored: what explorer/report/templates/page.js draws from tables.

#include <span>
#include <string>
#include <string_view>

#include "models/gpu/spec.hpp"
#include "tools/terminal/output_table.hpp"

namespace rubato {

/// The top of a page: what it answers, before anything else; plain text.
struct PageHead {
  std::string title;
  std::string subtitle;  ///< on what
  std::string answer;
  std::string rests_on;
  std::string lines_json = {};  ///< the five lines of an exploration, in place of both above
};

/// A section: a table as --json prints it, with charts over its columns.
struct PagePart {
  std::string name;  ///< of the table, as in JSON; letters, digits and underscores
  std::string title, text = {};
  const OutputTable* table = nullptr;
  /// JSON, an array of {title, x, y: [...]}, names of columns; also `by` (a series for each value),
  /// `panels` (a chart for each value), `where` ([column, text]), `pairs` ([[x, y, name], ...] in
  /// place of x and y), `line`, `log` ("x", "xy"), `diagonal`, `band` (%), `most` (of y), `places`
  /// ([[x, name]]), `weight` (a column: marks are as large).
  std::string charts = "[]";
  std::string svg = {};  ///< a picture that is drawn already
};

/// A page that needs nothing else.
[[nodiscard]] std::string drawn_page(const PageHead& head, std::span<const PagePart> parts);

/// What fit and cross-validation left on energy, or, failing that, on power: the worst.
[[nodiscard]] std::string model_error_text(const GpuSpec& spec);

}  // namespace rubato
