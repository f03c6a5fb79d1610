#include "explorer/report/page.hpp"

#include <cassert>
#include <cstdint>
#include <variant>

#include <fmt/format.h>

#include "common/embedded.hpp"
#include "common/json.hpp"

namespace rubato {

std::span<const EmbeddedFile> embedded_report();

namespace {

using Json = nlohmann::ordered_json;

std::string_view part(std::string_view name) {
  for (const EmbeddedFile& file : embedded_report()) {
    if (file.name == name) return file.text;
  }
  assert(false && "every part of the page is embedded");
  return {};
}

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

void replace(std::string& text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  assert(at != std::string::npos && "the template has every mark");
  text.replace(at, mark.size(), by);
}

std::string framed(std::string_view title, std::string_view main, std::string_view scripts) {
  std::string text(part("frame"));
  // Last to first, so that no mark is looked for inside what was put in.
  replace(text, "<!--@scripts-->", scripts);
  replace(text, "<!--@main-->\n", main);
  replace(text, "/*@css*/", part("style"));
  replace(text, "<!--@title-->", title);
  return text;
}

}  // namespace

nlohmann::ordered_json rows_as_objects(const QueryResult& result) {
  Json rows = Json::array();
  for (const auto& row : result.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c)
      object[result.columns[c]] = std::visit(ToJson{}, row[c]);
    rows.push_back(std::move(object));
  }
  return rows;
}

nlohmann::ordered_json rows_as_table(const QueryResult& result) {
  Json rows = Json::array();
  for (const auto& row : result.rows) {
    Json cells = Json::array();
    for (const SqlValue& value : row) cells.push_back(std::visit(ToJson{}, value));
    rows.push_back(std::move(cells));
  }
  return {{"columns", result.columns}, {"rows", std::move(rows)}};
}

std::string script_safe(std::string_view json) {
  constexpr std::string_view line_separator = "\xE2\x80\xA8", paragraph_separator = "\xE2\x80\xA9";
  std::string safe;
  safe.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i);
    if (json[i] == '<' || json[i] == '>' || json[i] == '&') {
      safe += fmt::format("\\u{:04x}", static_cast<unsigned>(json[i]));
    } else if (rest.starts_with(line_separator) || rest.starts_with(paragraph_separator)) {
      safe += rest.starts_with(line_separator) ? "\\u2028" : "\\u2029";
      i += line_separator.size() - 1;
    } else {
      safe += json[i];
    }
  }
  return safe;
}

std::string static_page(std::string_view title, std::string_view main) {
  return framed(title, main, fmt::format("<script>\n{}</script>", part("common")));
}

std::string filled_page(const nlohmann::ordered_json& data) {
  return framed(
      "Rubato", "",
      fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n"
                  "<script>\n{}</script>\n<script>\n{}</script>\n<script>\n{}</script>",
                  script_safe(json_text(data)), part("d3.min"), part("page"), part("common")));
}

}  // namespace rubato
