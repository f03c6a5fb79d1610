#pragma once
// A few SVG elements, written as text.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato {

/// Text with &, <, > and quotes as entities, for element content and attributes.
[[nodiscard]] std::string xml_escaped(std::string_view text);

/// Styles of text: classes of the page's colours, and colours for a picture alone.
inline constexpr const char* muted_text = R"(class="soft" fill="#555")";
inline constexpr const char* centred_text = R"(class="soft" fill="#555" text-anchor="middle")";
inline constexpr const char* right_text = R"(class="soft" fill="#555" text-anchor="end")";
inline constexpr const char* bold_text = R"(class="ink" fill="#222" font-weight="600")";

/// A drawing of fixed size. Coordinates in px from the top left. `style` is attribute text such
/// as `fill="#333"`, written as given; titles and labels are escaped.
class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}

  /// @param tooltip  shown by browsers while the pointer rests on it; empty: none
  void rect(double x, double y, double width, double height, std::string_view style,
            std::string_view tooltip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view style);
  /// Closed; `style` gives the fill.
  void polygon(const std::vector<std::pair<double, double>>& points, std::string_view style);
  void circle(double x, double y, double radius, std::string_view style,
              std::string_view tooltip = {});
  void text(double x, double y, std::string_view label, std::string_view style = {});

  /// What is drawn until end_group() stands so far to the right and below; groups may be nested.
  void begin_group(double right, double below);
  void end_group();

  /// The whole document, an `svg` element that may stand in a page.
  [[nodiscard]] std::string str() const;

 private:
  void element(const std::string& open, std::string_view name, std::string_view tooltip);

  double width_, height_;
  std::string body_;
};

/// Round values for the ticks of an axis from `least` to `longest`, at most about `count`.
[[nodiscard]] std::vector<double> axis_ticks(double least, double longest, int count);

}  // namespace rubato
