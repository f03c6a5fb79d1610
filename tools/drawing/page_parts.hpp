#pragma once
// What drawn pages have in common: answer, trust, pictures, tables, in the design of
// explorer/report.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/gpu/spec.hpp"
#include "tools/drawing/answer.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

/// Text from files, safe in a page.
[[nodiscard]] std::string page_text(std::string_view text);

/// The top of a page: what it answers, before anything else.
struct PageHead {
  std::string title;     ///< plain text
  std::string subtitle;  ///< on what; plain text
  Answer answer;
  std::string warning;  ///< plain text; empty: none
};

/// A page that needs nothing else. @param body  HTML of sections
[[nodiscard]] std::string whole_page(const PageHead& head, std::string_view body);

/// @param heading  plain text
[[nodiscard]] std::string page_section(std::string_view heading, std::string_view html);

/// Cells are HTML. Columns of numbers stand to the right; "-" is a missing one, and a column with
/// nothing else is left out.
/// @param kernels  of each row, plain text: highlighted together with others of this name; empty:
///                 rows are not of kernels
[[nodiscard]] std::string html_table(const std::vector<std::string>& head,
                                     const std::vector<std::vector<std::string>>& rows,
                                     const std::vector<std::string>& kernels = {});
[[nodiscard]] std::string html_table(const OutputTable& table);

/// Names with a text each, both HTML: what an answer rests on.
[[nodiscard]] std::string facts_table(
    const std::vector<std::pair<std::string, std::string>>& facts);

/// What fit and cross-validation left on energy, or, failing that, on power: the worst.
[[nodiscard]] std::string model_error_text(const GpuSpec& spec);

/// The same drawing for a desk and for a telephone, of which a page shows the one that fits.
[[nodiscard]] std::string two_pictures(const std::string& desk, const std::string& phone);

/// One point of an agreement plot, both > 0.
struct MeasuredPair {
  double measured, predicted;
  bool capped;         ///< drawn in the second colour
  std::string label;   ///< of the tooltip
  std::string kernel;  ///< highlighted together with others of this name
};

/// Predicted over measured on logarithmic axes, with the diagonal and a band; a figure
/// element, or nothing without pairs.
/// @param tolerance  half width of the band, 0.05 is 5 %
[[nodiscard]] std::string agreement_plot(const std::string& title, const std::string& unit,
                                         const std::vector<MeasuredPair>& pairs, double tolerance);

/// One point of an error plot.
struct ErrorPoint {
  double x;
  double error_frac;  ///< predicted over measured, less 1
  bool capped;
  std::string label, kernel;
};

/// Errors over a quantity, with zero, a band and the mean at each x; a figure element, or nothing
/// without points. Errors beyond six bands are drawn at the edge.
[[nodiscard]] std::string error_plot(const std::string& title, const std::string& x_title,
                                     const std::vector<ErrorPoint>& points, double tolerance);

}  // namespace rubato
