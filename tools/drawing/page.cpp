#include "tools/drawing/page.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "explorer/report/page.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

// Names of columns once, then rows.
Json table_json(const OutputTable& table) {
  const Json objects = Json::parse(table.render(OutputFormat::json));
  Json columns = Json::array(), rows = Json::array();
  for (const Json& object : objects) {
    Json row = Json::array();
    for (const auto& [name, value] : object.items()) {
      if (rows.empty()) columns.push_back(name);
      row.push_back(value);
    }
    rows.push_back(std::move(row));
  }
  return {{"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

}  // namespace

std::string drawn_page(const PageHead& head, std::span<const PagePart> parts) {
  std::string found = head.answer;
  std::ranges::replace(found, '\n', ' ');
  Json tables = Json::object(), sections = Json::array();
  for (const PagePart& part : parts) {
    if (part.table != nullptr && part.table->rows() == 0) continue;
    if (part.table != nullptr) tables[part.name] = table_json(*part.table);
    sections.push_back({{"name", part.name},
                        {"title", part.title},
                        {"text", part.text},
                        {"charts", Json::parse(part.charts)},
                        {"svg", part.svg}});
  }
  return filled_page(
      {{"schema", 1},
       {"kind", "drawn"},
       {"title", head.title},
       {"subtitle", head.subtitle},
       {"answer", head.lines_json.empty() ? Json{{"found", found}, {"rests_on", head.rests_on}}
                                          : Json::parse(head.lines_json)},
       {"tables", std::move(tables)},
       {"sections", std::move(sections)}});
}

std::string model_error_text(const GpuSpec& spec) {
  for (const std::string_view quantity : {"energy", "power"}) {
    std::optional<double> worst;
    for (const auto& [name, value] : spec.fit_errors) {
      if (name.find(quantity) != std::string::npos && name.ends_with("_pct") &&
          name.find("_scale_") == std::string::npos)
        worst = std::max(worst.value_or(value), value);
    }
    if (worst)
      return fmt::format("{:.2f} % of {} at most in fit and cross-validation, within the intervals",
                         *worst, quantity);
  }
  return "not known: nothing was measured on this GPU";
}

}  // namespace rubato
