// mckp_instance ROWS ITEMS OUT: solves a benchmark instance, prints as JSON how long it took on one
// thread and on all and what came out, and writes the instance for another solver
// (tables/highs_ratio.py): rows x items times (s), then energies (J), as the machine's doubles.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include "bench/mckp_instance.hpp"
#include "common/statistics.hpp"

namespace {

void write_doubles(std::ofstream& out, const std::vector<double>& values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(double)));
}

// Odd, so that the median is a run; enough of them to see past the first.
constexpr int runs = 31;

struct Timing {
  double wall_s = 0.0, cpu_s = 0.0;  ///< medians
  rubato::MckpResult result;
};

Timing timing(const rubato::MckpInstance& made) {
  Timing timing;
  std::vector<double> wall_s, cpu_s;
  for (int run = 0; run < runs; ++run) {
    const auto wall = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    timing.result = rubato::solve_mckp(made.problem());
    cpu_s.push_back(static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
    wall_s.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count());
  }
  timing.wall_s = rubato::median(wall_s);
  timing.cpu_s = rubato::median(cpu_s);
  return timing;
}

std::size_t size_argument(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int count, char** arguments) {
  if (count != 4 || size_argument(arguments[1]) == 0 || size_argument(arguments[2]) == 0) {
    fmt::print(stderr, "usage: mckp_instance ROWS ITEMS OUT\n");
    return 2;
  }
  const rubato::MckpInstance made =
      rubato::mckp_instance(size_argument(arguments[1]), size_argument(arguments[2]));
  const int threads = tbb::this_task_arena::max_concurrency();
  const Timing all = timing(made);
  const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  const Timing one = timing(made);
  std::ofstream out(arguments[3], std::ios::binary);
  write_doubles(out, made.time_s);
  write_doubles(out, made.energy_j);
  out.close();
  if (!out) {
    fmt::print(stderr, "error: {}: cannot be written\n", arguments[3]);
    return 4;
  }
  fmt::print(
      R"({{"rows": {}, "items": {}, "budget_s": {}, "energy_j": {}, "time_s": {}, "proven": {}, )"
      R"("cpu_s": {}, "wall_all_s": {}, "threads": {}, "runs": {}}})"
      "\n",
      made.rows, made.items, made.budget_s, one.result.cost, one.result.weight, one.result.proven,
      one.cpu_s, all.wall_s, threads, runs);
  return 0;
}
