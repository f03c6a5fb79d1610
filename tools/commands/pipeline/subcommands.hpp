#pragma once
// The subcommands of `rubato pipeline`, one file each, and what they share.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "explorer/pipeline/intervals.hpp"
#include "explorer/pipeline/plan_file.hpp"
#include "explorer/pipeline/planner.hpp"
#include "explorer/results/stage_rows.hpp"
#include "tools/commands/command.hpp"
#include "tools/options/pipeline.hpp"
#include "tools/terminal/output.hpp"

namespace rubato {

class CommandLine;

// See Command::setup.
Action setup_pipeline_describe(CommandLine& app);
Action setup_pipeline_front(CommandLine& app);
Action setup_pipeline_straggle(CommandLine& app);
Action setup_pipeline_profile(CommandLine& app);
Action setup_pipeline_scale(CommandLine& app);
Action setup_pipeline_compare(CommandLine& app);
Action setup_pipeline_latency_scan(CommandLine& app);

[[nodiscard]] PlannerOptions planner_options(const PipelineInput& input);

/// The table, and the notes if people read it.
void print_with_notes(const OutputTable& table, const std::string& notes, OutputFormat format);

/// The same, and before it what was asked and what the answer is, if people read it.
void print_answered(const std::string& question, std::string_view answer, const OutputTable& table,
                    const std::string& notes, OutputFormat format);

/// Why plans of a pipeline have no intervals; nothing where they have.
[[nodiscard]] std::optional<std::string> no_interval(const LoadedPipeline& loaded);

/// What intervals of plans are made from, or nothing: no_interval() says why. Refers to `loaded`.
[[nodiscard]] std::optional<PipelineIntervals> intervals_of(const LoadedPipeline& loaded,
                                                            const SwitchModel& switching);

/// The interval of a plan's change of energy, %; nothing without intervals or plan.
[[nodiscard]] std::optional<Interval> energy_interval(
    const std::optional<PipelineIntervals>& intervals, const PipelinePlan& plan,
    const PipelineIntervalQuestion& question = {});

/// Appends the ends of an interval and both as one text, or as many empty cells.
void add_interval(std::vector<Cell>& row, const std::optional<Interval>& interval);

/// The column of that text, for people.
[[nodiscard]] Column range_column(bool shown, std::string title = "90 %");

/// What to know beside a plan: marks of the stages, and of clocks in effect where they are
/// modelled.
[[nodiscard]] std::vector<Mark> marks_of(const LoadedPipeline& loaded, const PipelinePlan& plan);

/// Whether GPUs can be set to a plan that was found.
[[nodiscard]] PlanVerdict verdict_of(const LoadedPipeline& loaded, const PipelineResult& result,
                                     const SwitchModel& switching);

/// Why the first plan that cannot be set cannot, as a line; empty if all can.
[[nodiscard]] std::string refusal_note(std::span<const PipelineResult> plans);

/// A line for each mark of the stages, of the default clocks and of these plans.
/// @param plans  may be empty
[[nodiscard]] std::string marks_note(const LoadedPipeline& loaded,
                                     std::span<const PipelinePlan* const> plans = {});

/// marks_note, and what the columns that add_interval fills mean, or why they are empty.
[[nodiscard]] std::string interval_note(const LoadedPipeline& loaded,
                                        std::span<const PipelinePlan* const> plans = {});

/// What the energies are of, and what multiplies them.
[[nodiscard]] std::string multiply_note(const PipelineInput& input, const PipelineWork& work);

[[nodiscard]] bool has_power_limits(const PipelineWork& work);

/// @throws UsageError for what the database does not hold: power limits, passes of 0 J
void check_storable(const PipelineWork& work);

/// What is known of a pipeline beyond planner and plans. Refers to `loaded`.
[[nodiscard]] PipelineRecord record_of(const PipelineInput& input, const LoadedPipeline& loaded,
                                       const std::string& command);

/// Adds a run to a database and says so. @return run_id
std::int64_t store_pipeline(const std::string& db, const PipelinePlanner& planner,
                            const std::vector<PipelineResult>& plans, const PipelineInput& input,
                            const LoadedPipeline& loaded, const RunContext& context);

}  // namespace rubato
