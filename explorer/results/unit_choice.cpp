#include "explorer/results/unit_choice.hpp"

#include <fmt/format.h>

#include "explorer/results/plan_choice.hpp"

namespace rubato {

std::optional<std::string> best_unit(const ResultStore& store, const UnitOrder& order) {
  const QueryResult found = store.query(
      fmt::format("SELECT unit_id FROM v_units WHERE energy_j IS NOT NULL AND in_time AND "
                  "applicable AND {} "
                  "ORDER BY ifnull(is_answer, 0) DESC, {}, unit_id LIMIT 1",
                  unit_condition, order.expression),
      {order.experiment_id, order.most_time_pct ? SqlValue(*order.most_time_pct) : SqlValue()});
  if (found.rows.empty()) return std::nullopt;
  return text(found.rows[0][0]);
}

}  // namespace rubato
