// Storing a run, beside the same number of cells through a bare prepared
// statement into a table without keys, checks or foreign keys.

#include <filesystem>

#include <benchmark/benchmark.h>

#include "explorer/store.hpp"
#include "traces/trace_json.hpp"

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
                        .switch_cost = {},
                        .questions = {}};
  made.questions.push_back({Granularity::kernel, Aggregation::global, LeastWaste{}});
  return made;
}

void store_run(benchmark::State& state) {
  const ExplorationInput in = input();
  const Exploration found = explore(in);
  ResultStore store = ResultStore::open(fresh_file());
  for (auto _ : state) store.add(in, found, {"bench", "{}"});
  state.counters["cells/s"] = benchmark::Counter(static_cast<double>(found.cells.size()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(store_run)->Unit(benchmark::kMillisecond);

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
BENCHMARK(bare_inserts)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rubato
