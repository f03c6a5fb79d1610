// Storing a run, beside the same number of cells through a bare prepared
// statement into a table without keys, checks or foreign keys, and beside the
// same cells through "sqlite3 FILE .import" into a table like ours.

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "explorer/results/trace_rows.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

std::filesystem::path fresh_file() {
  const auto path = std::filesystem::temp_directory_path() / "rubato_store_bench.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path.string() + suffix);
  return path;
}

ExplorationInput input() {
  ExplorationInput made{.trace = load_trace("gpt3-xl"),
                        .spec = load_gpu_spec("rtx-3080-ti"),
                        .grid = "full",
                        .power_limit_w = {},
                        .switching = {},
                        .questions = {}};
  made.questions.push_back({Granularity::kernel, Aggregation::global, LeastWaste{}});
  return made;
}

// Cells that no other run has: those that are stored already would only be looked for.
void store_run(benchmark::State& state) {
  const ExplorationInput in = input();
  Exploration found = explore(in);
  const auto file = fresh_file();
  for (auto _ : state) {
    state.PauseTiming();
    for (OperatingPoint& cell : found.cells) cell.time_s *= 1.0 + 1e-9;
    state.ResumeTiming();
    store_trace(file, in, found, {"bench", "{}"});
  }
  state.counters["cells/s"] = benchmark::Counter(static_cast<double>(found.cells.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(store_run)->UseRealTime()->Unit(benchmark::kMillisecond);

void bare_inserts(benchmark::State& state) {
  const Exploration found = explore(input());
  SqlConnection connection(fresh_file(), SqlConnection::Mode::create);
  connection.execute(
      "PRAGMA journal_mode = WAL; CREATE TABLE cells (r, k, c, t REAL, e REAL, f REAL, l)");
  for (auto _ : state) {
    SqlTransaction transaction(connection);
    SqlStatement insert(connection, "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?, ?)");
    for (std::size_t i = 0; i < found.cells.size(); ++i) {
      const OperatingPoint& cell = found.cells[i];
      insert.run(std::int64_t{1}, i / found.grid.size(), i % found.grid.size(), cell.time_s,
                 cell.energy_j, cell.core_mhz, cell.power_limited);
    }
    transaction.commit();
  }
  state.counters["cells/s"] = benchmark::Counter(static_cast<double>(found.cells.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(bare_inserts)->UseRealTime()->Unit(benchmark::kMillisecond);

void sqlite3_import(benchmark::State& state) {
  if (std::system("command -v sqlite3 > /dev/null") != 0) {
    state.SkipWithError("no sqlite3 here");
    return;
  }
  const Exploration found = explore(input());
  const auto csv = std::filesystem::temp_directory_path() / "rubato_store_bench.csv";
  std::ofstream rows(csv);
  for (std::size_t i = 0; i < found.cells.size(); ++i) {
    const OperatingPoint& cell = found.cells[i];
    rows << fmt::format("1,{},{},{},{},{},{}\n", i / found.grid.size(), i % found.grid.size(),
                        cell.time_s, cell.energy_j, cell.core_mhz, cell.power_limited ? 1 : 0);
  }
  rows.close();
  const std::string db = fresh_file().string();
  const std::string command = fmt::format(
      "sqlite3 {} 'PRAGMA journal_mode = WAL' 'CREATE TABLE cells (run_id INTEGER, kernel_id "
      "INTEGER, clock_id "
      "INTEGER, time_s REAL CHECK (time_s > 0), energy_j REAL CHECK (energy_j > 0), mhz REAL, "
      "limited INTEGER, PRIMARY KEY (run_id, kernel_id, clock_id)) STRICT, WITHOUT ROWID' "
      "'.import --csv {} cells' > /dev/null",
      db, csv.string());
  for (auto _ : state) {
    state.PauseTiming();
    (void)fresh_file();
    state.ResumeTiming();
    if (std::system(command.c_str()) != 0) state.SkipWithError("the import failed");
  }
  state.counters["cells/s"] = benchmark::Counter(static_cast<double>(found.cells.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(sqlite3_import)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
