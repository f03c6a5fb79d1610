#include "tools/terminal/sweep_log.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/json.hpp"
#include "common/numbers.hpp"
#include "common/text.hpp"
#include "explorer/results/provenance.hpp"
#include "tools/terminal/progress_line.hpp"

namespace rubato {

namespace {

using Json = nlohmann::ordered_json;

std::string event(std::string_view name, const Json& members) {
  Json json{{"event", name}, {"time_utc", now_utc()}};
  json.update(members);
  return json_text(json) + '\n';
}

}  // namespace

void SweepLog::CloseFile::operator()(std::FILE* file) const noexcept {
  if (file != stderr) (void)std::fclose(file);
}

SweepLog::SweepLog(const SweepPlan& plan, const SweepLogOptions& options, const RunContext& context)
    : plan_(plan), context_(context), verbose_(options.verbose) {
  if (!options.json_file.empty()) {
    json_.reset(options.json_file == "-" ? stderr : std::fopen(options.json_file.c_str(), "ae"));
    if (!json_) {
      throw IoError(fmt::format("{}: cannot open for writing: {}", printable(options.json_file),
                                std::strerror(errno)));
    }
  }
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

SweepLog::~SweepLog() = default;

void SweepLog::write_json(const std::string& line) {
  if (!json_) return;
  if (std::fputs(line.c_str(), json_.get()) < 0 || std::fflush(json_.get()) != 0)
    throw IoError(fmt::format("cannot write the log: {}", std::strerror(errno)));
}

// A signal handler can do nothing but set a flag, and all workers may be busy for long.
void SweepLog::watch(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds interval{50};
  while (!stop.stop_requested() && !context_.stop_requested())
    std::this_thread::sleep_for(interval);
  if (stop.stop_requested()) return;
  const std::scoped_lock lock(mutex_);
  const bool one = in_flight_.size() == 1;
  print_message(fmt::format("interrupted: finishing {} in flight; Ctrl-C again drops {}",
                            one ? "the unit" : fmt::format("{} units", in_flight_.size()),
                            one ? "it" : "them"));
  for (const Unit* unit : in_flight_)
    print_message(fmt::format("  {} {}", unit->id.substr(0, 8), unit_label(plan_, *unit)));
}

void SweepLog::begin(std::size_t total, std::size_t already_finished, double estimated_s) {
  write_json(event("sweep_started", {{"experiment", plan_.experiment.name},
                                     {"experiment_id", plan_.experiment.id},
                                     {"units", total},
                                     {"already_finished", already_finished},
                                     {"estimated_s", estimated_s}}));
}

SweepObserver SweepLog::observer() {
  return {.started = [this](const Unit& unit) { unit_started(unit); },
          .done = [this](const SweepProgress& progress) { unit_done(progress); }};
}

void SweepLog::unit_started(const Unit& unit) {
  const std::scoped_lock lock(mutex_);
  in_flight_.push_back(&unit);
}

void SweepLog::unit_done(const SweepProgress& progress) {
  const Unit& unit = *progress.unit;
  {
    const std::scoped_lock lock(mutex_);
    std::erase(in_flight_, &unit);
  }
  Json members{{"unit_id", unit.id},
               {"label", unit_label(plan_, unit)},
               {"done", progress.done},
               {"total", progress.total}};
  std::string text = fmt::format("{}/{} {}: {}", progress.done, progress.total,
                                 unit.id.substr(0, 8), unit_label(plan_, unit));
  if (progress.outcome == UnitOutcome::failed) {
    members["error"] = progress.error;
    text += ": " + printable(progress.error);
  } else if (progress.answer) {
    const UnitAnswer& answer = *progress.answer;
    members["status"] = name_of(answer.status);
    members["wall_time_s"] = answer.wall_time_s;
    text += fmt::format(": {}", name_of(answer.status));
    if (answer.time_change_pct && answer.energy_change_pct) {
      members["time_change_pct"] = *answer.time_change_pct;
      members["energy_change_pct"] = *answer.energy_change_pct;
      members["in_time"] = answer.in_time;
      text += fmt::format(", energy {} %", format_signed(*answer.energy_change_pct, 2));
      if (answer.in_time) {
        best_pct_ =
            std::min(best_pct_.value_or(*answer.energy_change_pct), *answer.energy_change_pct);
      } else {
        text += ", slack missed";
      }
    }
  }
  write_json(event(fmt::format("unit_{}", name_of(progress.outcome)), members));
  if (verbose_ || progress.outcome == UnitOutcome::failed) print_message(text);
  // The estimate knows that units differ; the time taken so far says how fast this machine is.
  finished_estimated_s_ += unit.estimated_s;
  const double elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  ProgressUpdate update{
      .done = progress.done,
      .total = progress.total,
      .note = best_pct_ ? fmt::format("best {} % energy", format_signed(*best_pct_, 2)) : "",
      .left_s = {}};
  if (finished_estimated_s_ > 0.0)
    update.left_s = progress.estimated_left_s * elapsed_s / finished_estimated_s_;
  context_.report(update);
}

void SweepLog::end(const SweepSummary& summary) {
  write_json(event(summary.interrupted() ? "sweep_interrupted" : "sweep_finished",
                   {{"finished", summary.finished},
                    {"failed", summary.failed},
                    {"stored_elsewhere", summary.stored_elsewhere},
                    {"not_started", summary.not_started}}));
}

}  // namespace rubato
