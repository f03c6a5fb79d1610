#pragma once
// Which unit of an experiment is called the best.

#include <optional>
#include <string>
#include <string_view>

#include "explorer/results/store.hpp"

namespace rubato {

/// Units to choose from, and by what.
struct UnitOrder {
  std::string experiment_id = {};                     ///< empty: all of the database
  std::string_view expression = "energy_change_pct";  ///< SQL over v_units, least first
  std::optional<double> most_time_pct = {};           ///< units whose time changes by at most this
};

/// The unit_id of the first whose plan keeps its slack as it is played, if there is one.
[[nodiscard]] std::optional<std::string> best_unit(const ResultStore& store,
                                                   const UnitOrder& order);

}  // namespace rubato
