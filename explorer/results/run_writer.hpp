#pragma once
// Writes the rows of one run; whoever calls it owns the transaction.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sqlite.hpp"
#include "explorer/exploration.hpp"
#include "explorer/results/store.hpp"

namespace rubato {

/// Keeps an input file, whole, once. @return its hash
std::string store_input(const SqlConnection& connection, std::string_view kind,
                        const std::string& name, const std::string& text);

/// The bits of the cells' numbers, least significant byte first. This is what is hashed: equal
/// hashes mean cells that are equal to the last bit.
[[nodiscard]] std::string bits_of(std::span<const OperatingPoint> cells);

/// References must outlive the writer.
class RunWriter {
 public:
  RunWriter(SqlConnection& connection, const ExplorationInput& input, const Exploration& found)
      : connection_(connection), input_(input), found_(found) {}

  /// Continues the run of an earlier writer for the same setting.
  void continue_run(std::int64_t run_id) noexcept { run_id_ = run_id; }

  /// Writes a run that somebody asked for: the setting, all plans with their answers, all fronts.
  /// @return run_id
  std::int64_t write(const RunRecord& record);

  /// Writes run, clocks, kernels, cells and baseline, no plans or fronts.
  /// @param asked  by somebody, not by an experiment
  /// @return run_id
  std::int64_t write_setting(const RunRecord& record, bool asked = false);

  /// @return plan_id
  std::int64_t write_plan(const PlanResult& result);

  /// Writes the fronts that the run does not have yet.
  void write_fronts();

 private:
  void write_run(const RunRecord& record, bool asked);
  void write_clocks();
  void write_kernels();
  std::vector<std::int64_t> write_cells();
  std::int64_t row_of(std::span<const OperatingPoint> cells);
  void write_baseline();
  void write_front(const Front& front);
  void write_totals(std::int64_t plan_id, const SimResult& sim, const Plan& plan);
  void write_interval(std::int64_t plan_id, const SavingInterval& interval);
  void write_marks(std::int64_t plan_id, const std::vector<Mark>& marks);
  void write_entries(std::int64_t plan_id, const Plan& plan);

  SqlConnection& connection_;
  const ExplorationInput& input_;
  const Exploration& found_;
  std::int64_t run_id_ = 0;
};

}  // namespace rubato
