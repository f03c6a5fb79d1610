#pragma once
// Rows of a result database, the same for every kind of run: what run_writer.hpp writes.
// trace_rows, capture_rows and stage_rows make them from explorations. Columns and their units:
// schema.sql.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/sqlite.hpp"
#include "explorer/confidence/confidence.hpp"
#include "explorer/marks.hpp"
#include "explorer/plan/answer.hpp"
#include "models/kernel/model.hpp"
#include "sim/switch_model.hpp"

namespace rubato {

/// Columns with their values; those left out are NULL.
using Columns = std::vector<std::pair<std::string_view, SqlValue>>;

[[nodiscard]] inline SqlValue sql_value(std::uint64_t count) {
  return static_cast<std::int64_t>(count);
}
template <class T>
[[nodiscard]] SqlValue sql_value(const std::optional<T>& value) {
  return value ? SqlValue(*value) : SqlValue();
}

struct StoredInput {
  std::string kind, name, hash;
  std::optional<std::string> text;  ///< nothing: it is not kept
};

/// A GPU, or the GPUs of a stage.
struct StoredGpu {
  std::string label;
  std::optional<std::int64_t> rank = {}, device = {}, stage = {};
  std::int64_t replicas = 1;
};

struct StoredClock {
  std::string label;
  std::optional<double> mem_mhz = {}, core_mhz = {}, power_limit_w = {};
  bool is_default = false;
  std::optional<double> time_s = {}, energy_j = {};  ///< of the whole run at it
};

struct StoredUnit {
  std::size_t gpu = 0;
  Columns columns;                   ///< the others of table units
  std::optional<std::size_t> cells;  ///< into RunRows::cells
};

/// One launch of a unit at each clock.
struct StoredCells {
  std::vector<OperatingPoint> at;  ///< shape [clocks]; no time: the unit does not have the clock
  std::string hash;                ///< of their bits
};

struct StoredFrontPoint {
  std::string granularity;
  std::int64_t point = 0;  ///< among those of its granularity, by time
  double time_s = 0.0;
  std::optional<double> energy_j = {}, bound_j = {}, price_w = {};
};

/// A run without its plans.
struct RunRows {
  Columns columns;          ///< those of table runs that are not of provenance
  std::string result_hash;  ///< hash_of() it
  std::vector<StoredInput> inputs;
  std::vector<std::pair<std::string, double>> fit_errors;  ///< of the GPU spec among the inputs
  std::vector<StoredGpu> gpus;
  std::vector<StoredClock> clocks;
  std::vector<StoredUnit> units;
  std::vector<StoredCells> cells;
  std::vector<StoredFrontPoint> fronts;
  std::vector<Columns> collectives;
  std::vector<Mark> caveats;
};

/// Launches of a unit at one clock under a plan.
struct PlanUnitRow {
  std::size_t unit = 0, clock = 0;
  std::uint64_t launches = 0;
  double time_s = 0.0, energy_j = 0.0;  ///< of all of them
};

/// A stretch of a GPU within one pass with one clock in force.
struct SegmentRow {
  std::size_t gpu = 0, clock = 0;
  std::optional<std::string> block = {};
  std::uint64_t repeats = 1;
  std::string pass;
  std::optional<std::int64_t> microbatch = {};
  std::size_t first_unit = 0;
  std::uint64_t first_index = 0, launches = 0;  ///< in one repeat, as time and energy
  std::optional<double> start_s = {};
  double time_s = 0.0, energy_j = 0.0;
  std::optional<bool> critical = {};
};

/// A plan that was asked for, found or not.
struct PlanRows {
  Columns columns;  ///< those of table plans that are neither of `contender` nor of provenance
  Contender contender;
  std::vector<PlanUnitRow> units;
  std::vector<SegmentRow> segments;
  std::vector<Mark> caveats;
  std::string result_hash;  ///< hash_of() it
};

/// Totals of a plan against the default clocks.
struct StoredTotals {
  double time_s = 0.0, energy_j = 0.0;
};

/// The columns of a plan's totals and changes, as planned and as applied.
/// @param low, high, middle  changes of the plan as made, in percent
struct StoredChanges {
  StoredTotals defaults, planned, applied;
  struct Interval {
    double low_pct = 0.0, high_pct = 0.0;
    std::optional<double> middle_pct = {};
  };
  std::optional<Interval> time = {}, energy = {};  ///< of the plan as made
};
void add_changes(Columns& columns, const StoredChanges& changes);

[[nodiscard]] inline StoredChanges::Interval stored_interval(const Interval& of) {
  return {of.low_pct, of.high_pct, of.median_pct};
}

/// The columns of what a change of clock takes.
void add_switching(Columns& columns, const SwitchModel& switching);

/// The columns that say what is wanted.
void add_goal(Columns& columns, const Goal& goal);

/// Equal hashes mean results that are equal to the last bit.
[[nodiscard]] std::string hash_of(const RunRows& run);
[[nodiscard]] std::string hash_of(const PlanRows& plan);

/// Cells with their hash.
[[nodiscard]] StoredCells stored_cells(std::vector<OperatingPoint> at);

}  // namespace rubato
