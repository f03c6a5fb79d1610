#pragma once
// What pages that compare a model with measurements have in common.

#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// Text from files, safe in a page.
[[nodiscard]] std::string page_text(std::string_view text);

/// One point of an agreement plot, both > 0.
struct MeasuredPair {
  double measured, predicted;
  bool capped;  ///< drawn in the second colour
  std::string label;
};

/// Predicted over measured on logarithmic axes, with the diagonal and a band; a figure
/// element, or nothing without pairs.
/// @param tolerance  half width of the band, 0.05 is 5 %
[[nodiscard]] std::string agreement_plot(const std::string& title, const std::string& unit,
                                         const std::vector<MeasuredPair>& pairs, double tolerance);

/// A page that needs nothing else. @param body  HTML under the heading
[[nodiscard]] std::string whole_page(std::string_view title, std::string_view body);

}  // namespace rubato
