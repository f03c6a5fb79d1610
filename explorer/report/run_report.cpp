#include "explorer/report/run_report.hpp"

#include <fmt/format.h>

#include "explorer/published.hpp"
#include "explorer/report/page.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

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
    return rows_as_objects(store.query(fmt::format(fmt::runtime(sql), run)));
  };
  const Json run_row = rows("SELECT * FROM runs WHERE run_id = {}").front();
  return {
      {"run", run_row},
      {"published", published_json(run_row)},
      {"plans", rows("SELECT * FROM v_plans WHERE run_id = {} ORDER BY plan_id")},
      {"notes", rows("SELECT m.kind, m.reason FROM plans p JOIN plan_marks m USING (plan_id) WHERE "
                     "p.run_id = {} ORDER BY m.plan_id, m.kind")},
      {"verifications",
       rows("SELECT * FROM v_verifications WHERE run_id = {} ORDER BY verification_id")},
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

}  // namespace

std::string report_page(const ResultStore& store, std::int64_t run) {
  return filled_page("Rubato report", "page", "script", page_data(store, run));
}

}  // namespace rubato
