// Filling profile tables beside the ceiling of the machine in the same run: whichever is slower,
// writing the table's bytes or doing its arithmetic. Both are measured between the fills, on as
// many threads; of each the best time counts, since others may use the machine. Counters are
// millions of cells per second. Memory that the system has just handed out has a ceiling of its
// own. Multiplications and additions are not fused, as in the program: docs/decisions/0012-simd.md.

#include <algorithm>
#include <chrono>
#include <limits>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "common/vectors/instruction_sets.hpp"
#include "models/table/fill.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

// Arithmetic of a cell, each operation counted as one though a division takes 16 times as long as
// an addition: times of core and DRAM and the larger one 3, exponent and its bound 4, exp2 27, 1 +
// y, log2 20, over p, exp2 near zero 22, time 2, energy 5. Polynomials in Horner's form, which
// needs least; states of clocks, power limit and loops come on top.
constexpr double operations_per_cell = 85.0;
constexpr double bytes_per_cell = 2 * sizeof(double);

template <class F>
double seconds(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Multiplications and additions on numbers that stay in registers: enough chains to fill the units.
constexpr std::size_t chains = 12, chain_steps = 2000;

template <class V>
RUBATO_LANES void multiply_and_add(double* result) {
  V x0 = lanes::all<V>(1.0), x1 = x0 + 1.0, x2 = x0 + 2.0, x3 = x0 + 3.0, x4 = x0 + 4.0,
    x5 = x0 + 5.0, x6 = x0 + 6.0, x7 = x0 + 7.0, x8 = x0 + 8.0, x9 = x0 + 9.0, x10 = x0 + 10.0,
    x11 = x0 + 11.0;
  const V a = lanes::all<V>(0.999999), b = lanes::all<V>(1e-6);
  for (std::size_t i = 0; i < chain_steps; ++i) {
    x0 = x0 * a + b, x1 = x1 * a + b, x2 = x2 * a + b, x3 = x3 * a + b;
    x4 = x4 * a + b, x5 = x5 * a + b, x6 = x6 * a + b, x7 = x7 * a + b;
    x8 = x8 * a + b, x9 = x9 * a + b, x10 = x10 * a + b, x11 = x11 * a + b;
  }
  const V sum = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11;
  *result = sum[0];
}

// For one instruction set.
struct Arithmetic {
  std::string_view name;
  void (*multiply_and_add)(double* result);
};

Arithmetic arithmetic(std::string_view name) {
  const auto all = lanes::runnable([]<class Set>(Set) {
    return Arithmetic{Set::name, Set::template compiled<multiply_and_add<typename Set::Vector>>};
  });
  return *std::ranges::find(all, name, &Arithmetic::name);
}

void write_past_caches(double* to, std::size_t n) {
#ifdef __x86_64__
  for (std::size_t i = 0; i + 2 <= n; i += 2) _mm_stream_pd(to + i, _mm_set1_pd(1.0));
  _mm_sfence();
#else
  std::fill_n(to, n, 1.0);
#endif
}

// The best times seen of what the ceiling is made of.
class Ceiling {
 public:
  Ceiling(const TableCells& loops, std::size_t cells)
      : loops_(loops),
        cells_(static_cast<double>(cells)),
        size_(2 * cells),
        numbers_(unset_numbers(size_)) {}

  void measure() {
    constexpr std::size_t parts = 16;
    const auto run = arithmetic(loops_.name).multiply_and_add;
    const double arithmetic_s = seconds([&] {
      tbb::parallel_for(std::size_t{0}, parts, [&](std::size_t) {
        double result = 0.0;
        run(&result);
        benchmark::DoNotOptimize(result);
      });
    });
    const double operations =
        2.0 * chains * chain_steps * parts * static_cast<double>(loops_.lanes);
    operations_per_s_ = std::max(operations_per_s_, operations / arithmetic_s);
    for (const bool past_caches : {false, true})
      take_writing(bytes_per_s_, seconds([&] { write(numbers_.get(), past_caches); }));
    take_writing(new_bytes_per_s_, seconds([&] { write(unset_numbers(size_).get(), false); }));
  }

  void report(benchmark::State& state, double fill_s) const {
    const double arithmetic = operations_per_s_ / operations_per_cell;
    const double writing = bytes_per_s_ / bytes_per_cell;
    const double writing_new = new_bytes_per_s_ / bytes_per_cell;
    const double found = cells_ / fill_s;
    constexpr double million = 1e6;
    state.counters["1_Mcells/s"] = found / million;
    state.counters["2_arithmetic"] = arithmetic / million;
    state.counters["3_writing"] = writing / million;
    state.counters["4_writing_new"] = writing_new / million;
    state.counters["of_ceiling"] = found / std::min(arithmetic, writing);
    state.counters["of_new_ceiling"] = found / std::min(arithmetic, writing_new);
  }

 private:
  void write(double* numbers, bool past_caches) const {
    constexpr std::size_t written_at_once = 8192;
    const std::size_t chunks = (size_ + written_at_once - 1) / written_at_once;
    tbb::parallel_for(std::size_t{0}, chunks, [&](std::size_t i) {
      double* const to = numbers + i * written_at_once;
      const std::size_t n = std::min(written_at_once, size_ - i * written_at_once);
      if (past_caches) return write_past_caches(to, n);
      std::fill_n(to, n, 1.0);
    });
    benchmark::ClobberMemory();
  }

  void take_writing(double& best_bytes_per_s, double write_s) const {
    best_bytes_per_s = std::max(best_bytes_per_s, bytes_per_cell * cells_ / write_s);
  }

  const TableCells& loops_;
  double cells_;
  std::size_t size_;
  std::shared_ptr<double[]> numbers_;
  double operations_per_s_ = 0.0, bytes_per_s_ = 0.0, new_bytes_per_s_ = 0.0;
};

// `kernels` copies of the kernels of the GPT-3-xl step, none like another.
GpuModel model_of(std::size_t kernels) {
  const GpuModel model(load_gpu_spec("rtx-3080-ti"), load_trace("gpt3-xl"));
  std::vector<KernelCoefficients> coefficients;
  for (std::size_t k = 0; k < kernels; ++k) {
    KernelCoefficients c = model.coefficients(id_at<KernelId>(k % model.kernels()));
    c.core_cycles *= 1.0 + 1e-5 * static_cast<double>(k);
    c.core_j *= 1.0 + 1e-5 * static_cast<double>(k);
    coefficients.push_back(c);
  }
  return model.with(std::move(coefficients));
}

// Into a new table each time, or into memory that is there.
void fill_table(benchmark::State& state, const TableCells& loops, const char* grid_name,
                bool new_memory) {
  const GpuModel model = model_of(static_cast<std::size_t>(state.range(0)));
  const ClockGrid grid = make_clock_grid(model.spec(), grid_name);
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(state.range(1)));
  const std::size_t cells = model.kernels() * grid.size();
  Ceiling ceiling(loops, cells);
  std::vector<double> time_s(new_memory ? 0 : cells), energy_j(time_s.size());
  double best_s = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const double fill_s = seconds([&] {
      if (new_memory) {
        const ProfileTable table = fill_profile_table(model, grid, loops);
        benchmark::DoNotOptimize(table.times_s(0).data());
      } else {
        fill_costs(model, grid, time_s, energy_j, loops);
        benchmark::DoNotOptimize(time_s.data());
      }
    });
    state.SetIterationTime(fill_s);
    best_s = std::min(best_s, fill_s);
    ceiling.measure();
  }
  ceiling.report(state, best_s);
}

// What explore() asks for: also the clock in effect of every cell, one launch at a time.
void operating_points(benchmark::State& state) {
  const GpuModel model = model_of(46);
  const ClockGrid grid = make_clock_grid(model.spec(), "full");
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 1);
  std::size_t cells = 0;
  for (auto _ : state) {
    const auto points = evaluate_all(model, grid);
    benchmark::DoNotOptimize(points.data());
    cells += points.size();
  }
  state.counters["cells/s"] =
      benchmark::Counter(static_cast<double>(cells), benchmark::Counter::kIsRate);
}
BENCHMARK(operating_points)->UseRealTime()->Unit(benchmark::kMicrosecond);

void add(const TableCells& loops, const char* grid, std::int64_t kernels, bool new_memory) {
  benchmark::RegisterBenchmark(
      fmt::format("{}/{}/{}", new_memory ? "new_table" : "fill_costs", loops.name, grid).c_str(),
      [&loops, grid, new_memory](benchmark::State& state) {
        fill_table(state, loops, grid, new_memory);
      })
      ->ArgNames({"kernels", "threads"})
      ->Args({kernels, 1})
      ->Args({kernels, 2})
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

[[maybe_unused]] const bool registered = [] {
  for (const TableCells& loops : table_cells()) {
    for (const char* grid : {"paper", "full"}) add(loops, grid, 46, true);
  }
  add(table_cells().back(), "paper", 1000, true);
  for (const std::int64_t kernels : {1000, 10000}) {
    for (const bool new_memory : {true, false})
      add(table_cells().back(), "full", kernels, new_memory);
  }
  return true;
}();

}  // namespace
}  // namespace rubato
