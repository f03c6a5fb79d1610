#include "explorer/experiments/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
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
#include "explorer/confidence/confidence.hpp"
#include "explorer/results/capture_rows.hpp"
#include "explorer/results/trace_rows.hpp"

namespace rubato {

namespace {

// Captured runs and pipelines are explored a unit at a time.
bool share_tables(const Setting& setting) {
  return setting.captured() == nullptr && setting.pipeline() == nullptr;
}

UnitAnswer answer_of(const Exploration& found, const PlanResult& result, std::size_t units) {
  UnitAnswer answer{.status = result.status,
                    .time_change_pct = {},
                    .energy_change_pct = {},
                    .wall_time_s = found.wall_time_s / static_cast<double>(units)};
  if (result.plan.clock_of_site.empty()) return answer;
  const Totals &total = result.sim.total, &base = found.baseline.total;
  answer.time_change_pct = change_pct(total.time_s, base.time_s);
  answer.energy_change_pct = change_pct(total.energy_j, base.energy_j);
  return answer;
}

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
    // Each worker takes the next batch. Parallel loops inside a batch must not pick up another one.
    tbb::task_arena arena(threads_);
    arena.execute([&] {
      tbb::parallel_for(
          0, threads_, [&](int) { tbb::this_task_arena::isolate([&] { work(); }); },
          tbb::static_partitioner());
    });
    if (error_) std::rethrow_exception(error_);
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
        // No batch begins after this. If the error left the parallel loop, it would cancel inner
        // loops of other workers, which would then store results that are half done.
        failed_ = true;
        const std::scoped_lock lock(mutex_);
        if (!error_) error_ = std::current_exception();
        return;
      }
    }
  }

  // Units of one setting, in the order of the plan. The longest batches run first.
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
      const bool joins = !batches_.empty() && share_tables(plan_.settings[unit.setting]) &&
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
    std::string error;
    try {
      if (plan_.settings[units.front()->setting].captured() != nullptr)
        return store_captured(*units.front());
      return store_traced(units);
    } catch (const IoError&) {
      throw;
    } catch (const Error& problem) {
      error = problem.what();
    }
    if (units.size() > 1) {  // one by one: only the units at fault fail
      for (std::size_t i = 0; i < units.size(); ++i) explore_and_store(units.subspan(i, 1));
      return;
    }
    const std::scoped_lock lock(mutex_);
    finish(*units.front(), {.outcome = UnitOutcome::failed, .error = error});
  }

  // The next functions do not see the RunContext: after Ctrl-C a begun exploration is finished too.

  void store_captured(const Unit& unit) {
    const Setting& setting = plan_.settings[unit.setting];
    const GraphExploration found = explore_captured(graph_exploration_input(plan_, unit));
    UnitAnswer answer{.status = found.plans.front().result.status,
                      .time_change_pct = {},
                      .energy_change_pct = {},
                      .wall_time_s = found.wall_time_s};
    if (const auto& counted = found.plans.front().counted) {
      answer.time_change_pct = percent * counted->change.time_frac;
      answer.energy_change_pct = percent * counted->change.energy_frac;
      answer.in_time = counted->in_time;
    }
    const Known known = known_of(setting);
    AnsweredUnits rows{.units = {&unit},
                       .run = {},
                       .plans = capture_plans_rows(found),
                       .fronts = {},
                       .wall_time_s = found.wall_time_s};
    if (!known.run) rows.run = setting_rows(setting, found, options_.command);
    // Other threads may work out the same front at the same time. The first to store it wins.
    if (!known.front) rows.fronts = capture_front(found);
    store({std::move(rows), {answer}});
  }

  // What of a setting is stored already.
  struct Known {
    bool run = false, front = false;
  };
  [[nodiscard]] Known known_of(const Setting& setting) {
    const std::scoped_lock lock(mutex_);
    return {store_.has_run(setting), store_.has_front(setting)};
  }

  void store_traced(std::span<const Unit* const> units) {
    ExplorationInput input = exploration_input(plan_, *units.front());
    input.error_draws = error_draws_;
    input.questions.clear();
    for (const Unit* unit : units) input.questions.push_back(unit->question);
    const Setting& setting = plan_.settings[units.front()->setting];
    const PipelineSplit* pipeline = setting.pipeline();
    const Exploration found =
        pipeline != nullptr ? explore_pipeline(input, *pipeline) : explore(input);
    Answered answered{{.units = {units.begin(), units.end()},
                       .run = {},
                       .plans = trace_plans_rows(input, found),
                       .fronts = trace_fronts(found),
                       .wall_time_s = found.wall_time_s / static_cast<double>(units.size())},
                      {}};
    if (!known_of(setting).run) answered.rows.run = setting_rows(setting, input, found);
    for (const PlanResult& result : found.plans)
      answered.answers.push_back(answer_of(found, result, units.size()));
    hand_over(std::move(answered));
  }

  // Units that are explored but not yet stored.
  struct Answered {
    AnsweredUnits rows;
    std::vector<UnitAnswer> answers;  // shape [units]
  };

  // A thread that finds nobody writing stores everything that waits, and the other threads go on
  // exploring. If the store fails, what others handed over is still tried: nobody else would.
  void hand_over(Answered answered) {
    constexpr std::size_t most_waiting = 4;  // each may hold a table, some 2 MB
    std::unique_lock lock(waiting_mutex_);
    room_.wait(lock, [&] { return waiting_.size() < most_waiting || !writing_; });
    waiting_.push_back(std::move(answered));
    if (writing_) return;
    writing_ = true;
    std::exception_ptr error;
    while (!waiting_.empty()) {
      const Answered next = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      room_.notify_one();
      try {
        store(next);
      } catch (...) {
        failed_ = true;
        if (!error) error = std::current_exception();
      }
      lock.lock();
    }
    writing_ = false;
    room_.notify_all();
    if (error) std::rethrow_exception(error);
  }

  void store(const Answered& answered) {
    std::vector<bool> stored;
    {
      const std::scoped_lock lock(writer_mutex_);
      stored = store_.add(plan_, answered.rows, options_.command);
    }
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      finish(*answered.rows.units[i],
             {.outcome = stored[i] ? UnitOutcome::finished : UnitOutcome::stored_elsewhere,
              .answer = answered.answers[i]});
    }
  }

  // Called with mutex_ held.
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
  const std::shared_ptr<StandardErrorDraws> error_draws_ = std::make_shared<StandardErrorDraws>();
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex waiting_mutex_;  // guards the three that follow
  std::condition_variable room_;
  std::deque<Answered> waiting_;
  bool writing_ = false;
  std::mutex writer_mutex_;  // guards what the store writes: who only explores never waits for it
  std::mutex mutex_;         // guards what the store reads, observer and everything below
  SweepSummary summary_;
  std::size_t done_ = 0;
  double estimated_left_s_ = 0.0;
  std::exception_ptr error_;
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
  return {.trace = *setting.traced()->trace,
          .spec = *setting.spec,
          .grid = setting.clocks,
          .power_limit_w = setting.power_limit_w,
          .switching = setting.switching,
          .questions = {unit.question},
          .host_power_w = setting.host_power_w,
          .odds_frac = setting.odds_frac};
}

GraphExplorationInput graph_exploration_input(const SweepPlan& plan, const Unit& unit) {
  const Setting& setting = plan.settings[unit.setting];
  const CapturedWork& work = *setting.captured();
  return {.captures = work.run->captures,
          .spec = *setting.spec,
          .captured_clock = work.clock,
          .grid = setting.clocks,
          .power_limit_w = setting.power_limit_w,
          .switching = setting.switching,
          .questions = {unit.question},
          .odds_frac = setting.odds_frac,
          .host_power_w = setting.host_power_w};
}

std::string unit_label(const SweepPlan& plan, const Unit& unit) {
  const Setting& setting = plan.settings[unit.setting];
  std::string text = fmt::format("{} on {}, {} W, ", setting.name(), setting.spec->name,
                                 format_number(setting.power_limit_w));
  const Question& question = unit.question;
  text += fmt::format("{}, {}, {}", name_of(question.granularity), name_of(question.aggregation),
                      name_of(question.goal));
  if (const PipelineSplit* pipeline = setting.pipeline())
    text += fmt::format(", {} stages", pipeline->stages);
  if (const auto* waste = std::get_if<LeastWaste>(&question.goal);
      waste != nullptr && waste->slack_frac > 0.0)
    text += fmt::format(" +{} %", format_number(100.0 * waste->slack_frac));
  return printable(text);
}

}  // namespace rubato
