#pragma once
// What an exploration means for its reader, whatever kind of run it is of: five lines that say what
// was planned, what to set, what it saves, what that rests on and what to measure next; a table of
// plans; notes that change a decision.

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explorer/confidence/confidence.hpp"
#include "explorer/marks.hpp"
#include "explorer/plan/answer.hpp"
#include "explorer/solver.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/plan_tables.hpp"

namespace rubato {

/// A plan as people and programs see it. Energies are of all GPUs.
struct ShownPlan {
  Contender as;  ///< beside the default clocks
  Goal goal;
  SolveStatus status = SolveStatus::infeasible;
  bool found = false;
  Cost planned = {};
  std::optional<Cost> counted = {};  ///< with changes of clock, where `planned` takes them as free
  std::optional<SavingInterval> interval = {};  ///< of the changes of `planned`
  double clock_switches = 0.0;
  std::optional<double> late_launches = {}, stalled_s = {};
  std::optional<double> deadline_s = {}, bound_j = {}, gap_frac = {}, solve_time_s = {};
  std::optional<std::pair<double, double>> jittered_s = {};  ///< mean, and what 95 % are below
  std::optional<BolderPlan> bolder = {};
  std::string clocks = {};   ///< the one, or how many
  std::string setting = {};  ///< in words; lines to type stand below it and begin with a blank
  std::vector<Mark> marks = {};

  [[nodiscard]] const Cost& applied() const { return counted ? *counted : planned; }
};

/// What was found, in the words of its kind where these differ.
struct ShownRun {
  std::string planned = {}, rests_on = {}, next = {};
  std::string default_name = "default clocks", default_clock = {};
  Cost defaults = {};
  double gpus = 1.0, odds_frac = 0.0;
  std::vector<Mark> marks = {};  ///< of the default clocks
  std::vector<ShownPlan> plans = {};
  std::vector<std::string> notes = {};  ///< beside those of marks, the most important first
  std::string fastest = {};             ///< what is said where no plan is in time
  bool interrupted = false;
};

/// Of a line behind the five.
inline constexpr std::string_view note_label = "note";

/// The five lines: label and text, which may have lines to type below it; then notes.
using ScreenLines = std::vector<std::pair<std::string_view, std::string>>;
[[nodiscard]] ScreenLines screen_lines(const ShownRun& run);

/// The lines as an object: planned, set, saves, rests_on, next; notes, an array.
[[nodiscard]] std::string lines_json(const ScreenLines& lines);

/// The lines as a terminal shows them, labels in a column.
[[nodiscard]] std::string screen_text(const ScreenLines& lines);

/// One row per plan, the default clocks first; change against the default clocks in percent.
/// @param all  else, for people: plans for the headline's want, and the answers to others
[[nodiscard]] OutputTable plans_table(const ShownRun& run, bool all = true);

/// The answers: what v_answer has of a stored run.
[[nodiscard]] OutputTable answers_table(const ShownRun& run);

/// One row per plan and mark, with its reason.
[[nodiscard]] OutputTable notes_table(const ShownRun& run);

/// All notes, those with the largest effect first.
[[nodiscard]] std::vector<std::string> notes_of(const ShownRun& run);

/// As many as one reads.
inline constexpr std::size_t few_notes = 3;

/// The first of them, and where the others are.
/// @param where  to type: "--list notes"
[[nodiscard]] std::string first_notes(std::span<const std::string> notes, std::string_view where,
                                      std::size_t most = few_notes);

/// Those of a run, and what an interruption means.
/// @param all  else at most three
[[nodiscard]] std::string notes_text(const ShownRun& run, bool all = false);

/// A table of --list, made where it is printed; `always`: JSON has it unasked, unless it is empty.
struct ListedTable {
  std::string_view name;
  std::function<OutputTable()> make;
  bool always = false;
};

/// Prints all of it: for people five lines, plans, notes and the tables that were asked for. A
/// program reads one document: JSON holds every table, CSV exactly one.
/// @param rows    what is planned and its plans: run, passes, kernels and segments are made of it
/// @param own     tables that only this kind of run has, or has in another form
/// @param listed  names of --list
/// @return the five lines and all notes, to be stored
ScreenLines print_exploration(const ShownRun& run, const std::function<PlannedRun()>& rows,
                              std::span<const ListedTable> own,
                              const std::vector<std::string>& listed, OutputFormat format);

/// What plays a plan of several clocks, as lines to type.
[[nodiscard]] std::string play_text(std::string_view granularity, const Goal& goal,
                                    std::string_view db, std::string_view plan_file);

/// Odds in %, empty where they are not known.
[[nodiscard]] inline Cell odds_cell(const std::optional<double>& odds_in_time) {
  return odds_in_time ? Cell(100.0 * *odds_in_time) : Cell();
}

/// Shares of a time: "72.1 % measured, 27.9 % guessed". Tiny ones are left out.
/// @param parts  percent of the time, and what is so
[[nodiscard]] std::string shares_text(
    std::initializer_list<std::pair<double, std::string_view>> parts);

/// A clock as one says it: "memory 9251, core 1890 MHz"; anything else, such as "12 clocks", as it
/// is.
[[nodiscard]] std::string clock_words(std::string_view label);

/// The one clock of some, or how many there are.
[[nodiscard]] std::string clocks_text(const ClockGrid& grid, std::span<const ClockId> clocks);

/// The solver's status, or "limit not reached": no clock keeps the power limit, so that the plan is
/// not the best within it.
[[nodiscard]] std::string status_text(SolveStatus status, std::span<const Mark> marks);

}  // namespace rubato
