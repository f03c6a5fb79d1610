#include "explorer/experiments/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

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
        context_(context) {
    std::ranges::stable_sort(units_, std::ranges::greater{},
                             [&](std::size_t u) { return plan_.units[u].estimated_s; });
    for (const std::size_t u : units_) estimated_left_s_ += plan_.units[u].estimated_s;
  }

  SweepSummary run() {
    const int threads = options_.threads > 0 ? static_cast<int>(options_.threads)
                                             : tbb::info::default_concurrency();
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(threads));
    // Each worker takes the next unit; the parallel loops inside a unit must not pick up another.
    tbb::task_arena arena(threads);
    arena.execute([&] {
      tbb::parallel_for(
          0, threads, [&](int) { tbb::this_task_arena::isolate([&] { work(); }); },
          tbb::static_partitioner());
    });
    summary_.not_started = units_.size() - done_;
    return summary_;
  }

 private:
  void work() {
    while (!context_.stop_requested() && !failed_.load()) {
      const std::size_t next = next_.fetch_add(1);
      if (next >= units_.size()) return;
      try {
        run_unit(plan_.units[units_[next]]);
      } catch (...) {
        failed_ = true;  // a database that fails once is not tried again
        throw;
      }
    }
  }

  void run_unit(const Unit& unit) {
    {
      const std::scoped_lock lock(mutex_);
      if (store_.is_finished(unit)) return finish(unit, {.outcome = UnitOutcome::stored_elsewhere});
      if (observer_.started) observer_.started(unit);
    }
    const ExplorationInput input = exploration_input(plan_, unit);
    std::optional<Exploration> found;
    std::string error;
    try {
      // Without the context: what is begun is finished.
      const auto& pipeline = plan_.settings[unit.setting].pipeline;
      found = pipeline ? explore_pipeline(input, *pipeline) : explore(input);
    } catch (const Error& problem) {
      error = problem.what();
    }
    const std::scoped_lock lock(mutex_);
    if (!found) return finish(unit, {.outcome = UnitOutcome::failed, .error = error});
    const bool stored = store_.add(plan_, unit, input, *found, options_.command);
    finish(unit, {.outcome = stored ? UnitOutcome::finished : UnitOutcome::stored_elsewhere,
                  .found = &*found});
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
