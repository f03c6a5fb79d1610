#pragma once
// What merging knows of each table: which rows it copies.

#include <array>
#include <string_view>

namespace rubato {

/// Of what a row is part: it is copied where that is new to the target. Rows `of_all` carry keys
/// that tell whether they are there.
enum class PartOf { all, run, run_at_any_time, plan, run_or_plan, measurement };

struct MergedTable {
  std::string_view name;
  PartOf part_of = PartOf::all;
};

/// Parents before children. Cells are copied apart.
inline constexpr std::array merged_tables{
    MergedTable{"inputs"},
    MergedTable{"model_errors"},
    MergedTable{"experiments"},
    MergedTable{"runs", PartOf::run},
    MergedTable{"run_inputs", PartOf::run},
    MergedTable{"screens", PartOf::run},
    MergedTable{"gpus", PartOf::run},
    MergedTable{"clocks", PartOf::run},
    MergedTable{"units", PartOf::run},
    MergedTable{"collectives", PartOf::run},
    MergedTable{"fronts", PartOf::run_at_any_time},
    MergedTable{"plans", PartOf::plan},
    MergedTable{"plan_units", PartOf::plan},
    MergedTable{"plan_segments", PartOf::plan},
    MergedTable{"caveats", PartOf::run_or_plan},
    MergedTable{"experiment_plans"},
    MergedTable{"measurements", PartOf::measurement},
    MergedTable{"measurement_rows", PartOf::measurement},
};

}  // namespace rubato
