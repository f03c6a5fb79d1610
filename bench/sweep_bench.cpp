// Sweeps: units a second, and merging shards beside copying their largest table.

#include <filesystem>
#include <numeric>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "explorer/experiments/shards.hpp"
#include "explorer/experiments/sweep.hpp"
#include "explorer/results/merge.hpp"
#include "explorer/results/store.hpp"

namespace rubato {
namespace {

namespace fs = std::filesystem;

fs::path fresh(const std::string& name) {
  const fs::path path = fs::temp_directory_path() / ("rubato_sweep_bench_" + name + ".db");
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path.string() + suffix);
  return path;
}

SweepPlan plan(const std::string& axes) {
  return plan_sweep(
      parse_experiment("schema = 1\nname = 'bench'\n[axes]\ngpu = 'rtx-3080-ti'\nmodel = "
                       "'gpt3-xl'\nsequence = 1024\n" +
                           axes,
                       "bench.toml"));
}

std::vector<std::size_t> all_units(const SweepPlan& plan) {
  std::vector<std::size_t> units(plan.units.size());
  std::iota(units.begin(), units.end(), std::size_t{0});
  return units;
}

void run_all(const SweepPlan& plan, const fs::path& db, std::size_t threads) {
  SweepStore store(db);
  store.begin(plan);
  const SweepSummary summary =
      run_sweep(plan, all_units(plan), store, {.threads = threads, .command = ""}, {}, {});
  if (summary.finished != plan.units.size()) std::abort();
}

// 5 questions and 3,000 cells a setting. CPU time is that of all threads.
void sweep(benchmark::State& state) {
  constexpr std::int64_t questions = 5;
  const SweepPlan what =
      plan(fmt::format("batch = {{from = 1, to = {}, step = 1}}\ngranularity = 'kernel'\nslack_pct "
                       "= [0, 1, 2, 5, 10]\n",
                       state.range(0) / questions));
  for (auto _ : state) run_all(what, fresh("units"), static_cast<std::size_t>(state.range(1)));
  state.counters["units/s"] = benchmark::Counter(static_cast<double>(what.units.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(sweep)
    ->ArgNames({"units", "threads"})
    ->ArgsProduct({{5, 10, 20, 40, 80, 160, 320}, {1, 2}})
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The same units without a database: what storing costs.
void sweep_without_storing(benchmark::State& state) {
  const SweepPlan what = plan(
      "batch = {from = 1, to = 8, step = 1}\ngranularity = 'kernel'\nslack_pct = [0, 1, 2, 5, "
      "10]\n");
  for (auto _ : state) {
    for (const Unit& unit : what.units)
      benchmark::DoNotOptimize(explore(exploration_input(what, unit)));
  }
  state.counters["units/s"] = benchmark::Counter(static_cast<double>(what.units.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(sweep_without_storing)->UseRealTime()->Unit(benchmark::kMillisecond);

constexpr std::size_t shards = 4;

// 4 shards with 3 settings of 35,000 cells each, of which kernels that are alike share some.
std::vector<fs::path> make_shards() {
  const SweepPlan what =
      plan("batch = {from = 1, to = 12, step = 1}\nclocks = 'full'\ngranularity = 'run'\n");
  std::vector<fs::path> files;
  for (std::size_t i = 1; i <= shards; ++i) {
    files.push_back(fresh("shard" + std::to_string(i)));
    SweepStore store(files.back());
    store.begin(what);
    run_sweep(what, units_of(what, {i, shards}), store, {.threads = 1, .command = ""}, {}, {});
  }
  return files;
}

std::int64_t count(const fs::path& db, const char* table) {
  const QueryResult found =
      ResultStore::open_read_only(db).query(std::string("SELECT count(*) FROM ") + table);
  return std::get<std::int64_t>(found.rows[0][0]);
}

void rows_per_second(benchmark::State& state, std::int64_t cells) {
  state.counters["cells/s"] =
      benchmark::Counter(static_cast<double>(cells), benchmark::Counter::kIsIterationInvariantRate);
}

void merge_shards(benchmark::State& state) {
  const std::vector<fs::path> files = make_shards();
  const fs::path target_path = fs::temp_directory_path() / "rubato_sweep_bench_merged.db";
  for (auto _ : state) {
    MergeTarget target(fresh("merged"));
    for (const fs::path& file : files) target.take(file);
    target.finish();
  }
  std::int64_t cells = 0;
  for (const fs::path& file : files) cells += count(file, "cells");
  rows_per_second(state, cells);
  state.counters["bytes/cell"] =
      static_cast<double>(fs::file_size(target_path)) / static_cast<double>(cells);
}
BENCHMARK(merge_shards)->UseRealTime()->Unit(benchmark::kMillisecond);

// The same cells through INSERT ... SELECT into a table without keys, checks or foreign keys.
void copy_cells(benchmark::State& state) {
  const std::vector<fs::path> files = make_shards();
  std::int64_t cells = 0;
  for (const fs::path& file : files) cells += count(file, "cells");
  for (auto _ : state) {
    SqlConnection target(fresh("copied"), SqlConnection::Mode::create);
    target.execute("PRAGMA journal_mode = WAL; CREATE TABLE copied (i, t REAL, e REAL, f REAL, l)");
    for (const fs::path& file : files) {
      SqlStatement(target, "ATTACH ? AS source").run(file.string());
      target.execute("INSERT INTO copied SELECT * FROM source.cells; DETACH source");
    }
  }
  rows_per_second(state, cells);
}
BENCHMARK(copy_cells)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
