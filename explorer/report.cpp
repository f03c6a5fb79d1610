#include "explorer/report.hpp"

#include <cassert>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/embedded.hpp"
#include "explorer/published.hpp"

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

Json rows_json(const QueryResult& result) {
  Json rows = Json::array();
  for (const auto& row : result.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c)
      object[result.columns[c]] = std::visit(ToJson{}, row[c]);
    rows.push_back(std::move(object));
  }
  return rows;
}

// The published results belong beside this trace on this GPU only.
Json published_json(const Json& run) {
  Json rows = Json::array();
  if (run["trace_name"] != "gpt3-xl-b40-s1024-tp1-dp1" || run["gpu"] != "rtx-3080-ti") return rows;
  for (const PublishedTotal& row : published_table2) {
    rows.push_back({{"granularity", name_of(row.granularity)},
                    {"aggregation", name_of(row.aggregation)},
                    {"goal", row.goal},
                    {"time_change_pct", row.time_change_pct},
                    {"energy_change_pct", row.energy_change_pct}});
  }
  return rows;
}

Json page_data(const ResultStore& store, std::int64_t run) {
  const auto rows = [&](std::string_view sql) {
    return rows_json(store.query(fmt::format(fmt::runtime(sql), run)));
  };
  const Json run_row = rows("SELECT * FROM runs WHERE run_id = {}").front();
  return {
      {"run", run_row},
      {"published", published_json(run_row)},
      {"plans", rows("SELECT * FROM v_plans WHERE run_id = {} ORDER BY plan_id")},
      {"front",
       rows("SELECT granularity, time_change_pct, energy_change_pct FROM v_front WHERE run_id = {} "
            "ORDER BY granularity, point_id")},
      // A kernel's first launch stands for all of them: plans by kernel give them one clock.
      {"kernels",
       rows("SELECT s.*, (SELECT c.clock FROM v_plan_clocks c WHERE c.plan_id = s.plan_id AND "
            "c.kernel = s.name "
            "ORDER BY c.site_id LIMIT 1) AS clock FROM v_kernel_savings s JOIN plans p USING "
            "(plan_id) "
            "WHERE s.run_id = {} AND p.goal <> 'default' ORDER BY s.plan_id, s.kernel_id")},
      {"grid", rows("SELECT g.pass, g.mem_state, g.core_mhz, g.time_s, g.energy_j, c.is_default "
                    "FROM v_pass_grid g "
                    "JOIN clocks c USING (run_id, clock_id) WHERE g.run_id = {} ORDER BY g.pass, "
                    "g.clock_id")}};
}

void replace(std::string& text, std::string_view mark, std::string_view by) {
  const std::size_t at = text.find(mark);
  assert(at != std::string::npos && "the template has every mark");
  text.replace(at, mark.size(), by);
}

}  // namespace

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

std::string report_page(const ResultStore& store, std::int64_t run) {
  const std::string data =
      page_data(store, run).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string page(part("page"));
  // Last to first, so that no mark is looked for inside what was put in.
  replace(page, "/*@js*/", part("script"));
  replace(page, "/*@d3*/", part("d3.min"));
  replace(page, "/*@data*/", script_safe(data));
  replace(page, "/*@css*/", part("style"));
  return page;
}

}  // namespace rubato
