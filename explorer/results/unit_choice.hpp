#pragma once
// Which unit of an experiment is called the best.

#include <optional>
#include <string>
#include <string_view>

#include "explorer/results/store.hpp"

namespace rubato {

/// Which units to choose from, and in which order.
struct UnitOrder {
  std::string experiment_id = {};                     ///< empty: all of the database
  std::string_view expression = "energy_change_pct";  ///< SQL over v_units, least first
  std::optional<double> most_time_pct = {};           ///< units whose time changes by at most this
};

/// Condition on a row of v_units: ?1 is UnitOrder::experiment_id, ?2 most_time_pct or NULL.
inline constexpr std::string_view unit_condition =
    "(?1 = '' OR unit_id IN (SELECT unit_id FROM experiment_units WHERE experiment_id = ?1)) "
    "AND (?2 IS NULL OR time_change_pct <= ?2)";

/// The unit_id of the first unit in that order that is the answer of its setting. Where none is, of
/// those in time and applicable; nothing if there is none.
[[nodiscard]] std::optional<std::string> best_unit(const ResultStore& store,
                                                   const UnitOrder& order);

}  // namespace rubato
