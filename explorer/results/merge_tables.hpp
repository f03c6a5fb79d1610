#pragma once
// What merging knows of each table: which rows it copies, and by what it tells whether they are
// there.

#include <array>
#include <string_view>

namespace rubato {

/// Which rows of a table are copied, and by which map its ids are renumbered.
enum class MergedRows {
  all,
  of_new_runs,
  of_all_runs,
  of_new_plans,
  of_new_graph_runs,
  of_all_graph_runs,
  of_new_graph_plans
};

struct CopiedTable {
  std::string_view name;
  MergedRows rows;
};

/// Parents before children. Rows that may be there already carry keys that are hashes.
inline constexpr std::array copied_tables{
    CopiedTable{"inputs", MergedRows::all},
    CopiedTable{"model_errors", MergedRows::all},
    CopiedTable{"experiments", MergedRows::all},
    CopiedTable{"runs", MergedRows::of_new_runs},
    CopiedTable{"clocks", MergedRows::of_new_runs},
    CopiedTable{"kernels", MergedRows::of_new_runs},
    CopiedTable{"settings", MergedRows::of_new_runs},
    CopiedTable{"front_points", MergedRows::of_all_runs},
    CopiedTable{"plans", MergedRows::of_new_plans},
    CopiedTable{"plan_entries", MergedRows::of_new_plans},
    CopiedTable{"plan_marks", MergedRows::of_new_plans},
    CopiedTable{"plan_passes", MergedRows::of_new_plans},
    CopiedTable{"plan_kernels", MergedRows::of_new_plans},
    CopiedTable{"graph_runs", MergedRows::of_new_graph_runs},
    CopiedTable{"graph_settings", MergedRows::of_new_graph_runs},
    CopiedTable{"graph_run_marks", MergedRows::of_new_graph_runs},
    CopiedTable{"graph_collectives", MergedRows::of_new_graph_runs},
    CopiedTable{"graph_clocks", MergedRows::of_new_graph_runs},
    CopiedTable{"graph_kernels", MergedRows::of_new_graph_runs},
    CopiedTable{"graph_front", MergedRows::of_all_graph_runs},
    CopiedTable{"graph_plans", MergedRows::of_new_graph_plans},
    CopiedTable{"graph_plan_clocks", MergedRows::of_new_graph_plans},
    CopiedTable{"graph_segments", MergedRows::of_new_graph_plans},
    CopiedTable{"graph_plan_marks", MergedRows::of_new_graph_plans},
    CopiedTable{"units", MergedRows::of_new_plans},
    CopiedTable{"units", MergedRows::of_new_graph_plans},
    CopiedTable{"experiment_units", MergedRows::all},
};

/// Tables beside runs and sweeps. A row of a root is there already if one has the same value in
/// every column but the key. Rows of the tables below are copied with their root.
struct RecordTable {
  std::string_view name;
  std::string_view key;     ///< column of its own row number; empty: none
  std::string_view parent;  ///< key of the table above, empty: a root
};

inline constexpr std::array record_tables{
    RecordTable{"validations", "validation_id", ""},
    RecordTable{"validation_points", "", "validation_id"},
    RecordTable{"replays", "replay_id", ""},
    RecordTable{"replay_rows", "", "replay_id"},
    RecordTable{"replay_steps", "", "replay_id"},
    RecordTable{"verifications", "verification_id", ""},
    RecordTable{"pipeline_runs", "pipeline_run_id", ""},
    RecordTable{"pipeline_options", "", "pipeline_run_id"},
    RecordTable{"pipeline_front", "", "pipeline_run_id"},
    RecordTable{"pipeline_plans", "pipeline_plan_id", "pipeline_run_id"},
    RecordTable{"pipeline_passes", "", "pipeline_plan_id"},
};

}  // namespace rubato
