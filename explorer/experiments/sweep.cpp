#include "explorer/experiments/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "common/algorithms/sort_by.hpp"
#include "common/error.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"

namespace rubato {

namespace {

class Sweeper {
 public:
  Sweeper(const SweepPlan& plan, std::vector<std::size_t> units, SweepStore& store,
          const SweepRunOptions& options, const SweepObserver& observer, const RunContext& context)
      : plan_(plan),
        units_(std::move(units)),
        store_(store),
        options_(options),
        observer_(observer),
        context_(context),
        threads_(options.threads > 0 ? static_cast<int>(options.threads)
                                     : tbb::info::default_concurrency()) {
    for (const std::size_t u : units_) estimated_left_s_ += plan_.units[u].estimated_s;
    make_batches();
  }

  SweepSummary run() {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(threads_));
    // Each worker takes the next batch; the parallel loops inside it must not pick up another.
    tbb::task_arena arena(threads_);
    arena.execute([&] {
      tbb::parallel_for(
          0, threads_, [&](int) { tbb::this_task_arena::isolate([&] { work(); }); },
          tbb::static_partitioner());
    });
    summary_.not_started = units_.size() - done_;
    return summary_;
  }

 private:
  void work() {
    while (!context_.stop_requested() && !failed_.load()) {
      const std::size_t next = next_.fetch_add(1);
      if (next >= batches_.size()) return;
      try {
        run_batch(batches_[next].units);
      } catch (...) {
        failed_ = true;  // a database that fails once is not tried again
        throw;
      }
    }
  }

  // Units of one setting, in the order of the plan; the longest batches first.
  struct Batch {
    std::vector<const Unit*> units;
    double estimated_s = 0.0;
  };

  void make_batches() {
    // Short enough for Ctrl-C and for all threads to have work at the end.
    constexpr double longest_s = 1.0;
    constexpr std::size_t batches_per_thread = 4;
    const std::size_t most = std::max<std::size_t>(
        1, units_.size() / (batches_per_thread * static_cast<std::size_t>(threads_)));
    std::ranges::sort(units_, {},
                      [&](std::size_t u) { return std::pair(plan_.units[u].setting, u); });
    for (const std::size_t u : units_) {
      const Unit& unit = plan_.units[u];
      const bool joins = !batches_.empty() && !plan_.settings[unit.setting].pipeline &&
                         batches_.back().units.front()->setting == unit.setting &&
                         batches_.back().units.size() < most &&
                         batches_.back().estimated_s + unit.estimated_s <= longest_s;
      if (!joins) batches_.emplace_back();
      batches_.back().units.push_back(&unit);
      batches_.back().estimated_s += unit.estimated_s;
    }
    sort_down_by(batches_, &Batch::estimated_s);
  }

  void run_batch(std::vector<const Unit*> units) {
    {
      const std::scoped_lock lock(mutex_);
      std::erase_if(units, [&](const Unit* unit) {
        const bool stored = store_.is_finished(*unit);
        if (stored) finish(*unit, {.outcome = UnitOutcome::stored_elsewhere});
        return stored;
      });
      if (observer_.started) std::ranges::for_each(units, [&](auto* u) { observer_.started(*u); });
    }
    if (!units.empty()) explore_and_store(units);
  }

  void explore_and_store(std::span<const Unit* const> units) {
    ExplorationInput input = exploration_input(plan_, *units.front());
    input.questions.clear();
    for (const Unit* unit : units) input.questions.push_back(unit->question);
    std::optional<Exploration> found;
    std::string error;
    try {
      // Without the context: what is begun is finished.
      const auto& pipeline = plan_.settings[units.front()->setting].pipeline;
      found = pipeline ? explore_pipeline(input, *pipeline) : explore(input);
    } catch (const Error& problem) {
      error = problem.what();
    }
    if (found) return store(units, input, *found);
    if (units.size() > 1) {  // only those whose question it is fail
      for (std::size_t i = 0; i < units.size(); ++i) explore_and_store(units.subspan(i, 1));
      return;
    }
    const std::scoped_lock lock(mutex_);
    finish(*units.front(), {.outcome = UnitOutcome::failed, .error = error});
  }

  void store(std::span<const Unit* const> units, const ExplorationInput& input,
             const Exploration& found) {
    const ResultHashes hashes = result_hashes(found);
    const std::scoped_lock lock(mutex_);
    const std::vector<bool> stored =
        store_.add(plan_, units, input, found, hashes, options_.command);
    for (std::size_t i = 0; i < units.size(); ++i) {
      finish(*units[i],
             {.outcome = stored[i] ? UnitOutcome::finished : UnitOutcome::stored_elsewhere,
              .found = &found,
              .plan = &found.plans[i],
              .wall_time_s = found.wall_time_s / static_cast<double>(units.size())});
    }
  }

  // With the lock held.
  void finish(const Unit& unit, SweepProgress progress) {
    switch (progress.outcome) {
      case UnitOutcome::finished: ++summary_.finished; break;
      case UnitOutcome::failed: ++summary_.failed; break;
      case UnitOutcome::stored_elsewhere: ++summary_.stored_elsewhere; break;
    }
    estimated_left_s_ = std::max(0.0, estimated_left_s_ - unit.estimated_s);
    progress.unit = &unit;
    progress.done = ++done_;
    progress.total = units_.size();
    progress.estimated_left_s = estimated_left_s_;
    if (observer_.done) observer_.done(progress);
  }

  const SweepPlan& plan_;
  std::vector<std::size_t> units_;
  SweepStore& store_;
  const SweepRunOptions& options_;
  const SweepObserver& observer_;
  const RunContext& context_;
  int threads_;
  std::vector<Batch> batches_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards store, observer and everything below
  SweepSummary summary_;
  std::size_t done_ = 0;
  double estimated_left_s_ = 0.0;
};

}  // namespace

std::string_view name_of(UnitOutcome value) noexcept {
  switch (value) {
    case UnitOutcome::finished: return "finished";
    case UnitOutcome::failed: return "failed";
    case UnitOutcome::stored_elsewhere: break;
  }
  return "stored_elsewhere";
}

SweepSummary run_sweep(const SweepPlan& plan, std::vector<std::size_t> units, SweepStore& store,
                       const SweepRunOptions& options, const SweepObserver& observer,
                       const RunContext& context) {
  return Sweeper(plan, std::move(units), store, options, observer, context).run();
}

ExplorationInput exploration_input(const SweepPlan& plan, const Unit& unit) {
  const Setting& setting = plan.settings[unit.setting];
  return {.trace = *setting.trace,
          .spec = *setting.spec,
          .grid = setting.clocks,
          .power_limit_w = setting.power_limit_w,
          .switching = setting.switching,
          .questions = {unit.question}};
}

std::string unit_label(const SweepPlan& plan, const Unit& unit) {
  const Setting& setting = plan.settings[unit.setting];
  const Question& question = unit.question;
  std::string text =
      fmt::format("{} on {}, {} W, {}, {}, {}", setting.trace->name, setting.spec->name,
                  format_number(setting.power_limit_w), name_of(question.granularity),
                  name_of(question.aggregation), name_of(question.goal));
  if (setting.pipeline) text += fmt::format(", {} stages", setting.pipeline->stages);
  if (const auto* waste = std::get_if<LeastWaste>(&question.goal); waste && waste->slack_frac > 0.0)
    text += fmt::format(" +{} %", format_number(100.0 * waste->slack_frac));
  return printable(text);
}

}  // namespace rubato
