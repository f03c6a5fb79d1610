// Filling profile tables beside the ceiling of the machine in the same run: whichever is slower,
// writing the table's bytes or doing its arithmetic. Both are measured between the fills, on as
// many threads; of each the best time counts, since others may use the machine.

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

#include "models/table_fill.hpp"
#include "traces/trace_json.hpp"

namespace rubato {
namespace {

// Arithmetic of a cell (formulas::point_at and the comparison with the power limit), each operation
// counted as one though a division takes many times longer: soft maximum 6 around exp2 (27), log2
// of 1 + y (21) and exp2 (27), the two times and the larger one 3, time 2, energy 5, limit 2, and 2
// to stay in range. Polynomials in Horner's form; what checks and loops cost comes on top.
constexpr double operations_per_cell = 95.0;
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

void arithmetic(std::string_view loops, double* result) {
#ifdef __x86_64__
  struct Wide {
    [[gnu::target("avx512f")]] static void eight(double* r) { multiply_and_add<lanes::Eight>(r); }
    [[gnu::target("avx2")]] static void four(double* r) { multiply_and_add<lanes::Four>(r); }
  };
  if (loops == "avx512") return Wide::eight(result);
  if (loops == "avx2") return Wide::four(result);
#endif
  multiply_and_add<lanes::Two>(result);
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
    constexpr std::size_t parts = 16, written_at_once = 8192;
    const double arithmetic_s = seconds([&] {
      tbb::parallel_for(std::size_t{0}, parts, [&](std::size_t) {
        double result = 0.0;
        arithmetic(loops_.name, &result);
        benchmark::DoNotOptimize(result);
      });
    });
    const double operations =
        2.0 * chains * chain_steps * parts * static_cast<double>(loops_.lanes);
    operations_per_s_ = std::max(operations_per_s_, operations / arithmetic_s);
    for (const bool past_caches : {false, true}) {
      const double write_s = seconds([&] {
        const std::size_t chunks = (size_ + written_at_once - 1) / written_at_once;
        tbb::parallel_for(std::size_t{0}, chunks, [&](std::size_t i) {
          double* const to = numbers_.get() + i * written_at_once;
          const std::size_t n = std::min(written_at_once, size_ - i * written_at_once);
          if (past_caches) return write_past_caches(to, n);
          std::fill_n(to, n, 1.0);
        });
      });
      benchmark::ClobberMemory();
      bytes_per_s_ = std::max(bytes_per_s_, bytes_per_cell * cells_ / write_s);
    }
  }

  void report(benchmark::State& state, double fill_s) const {
    const double arithmetic = operations_per_s_ / operations_per_cell;
    const double writing = bytes_per_s_ / bytes_per_cell;
    state.counters["best_Mcells/s"] = cells_ / fill_s / 1e6;
    state.counters["arithmetic_Mcells/s"] = arithmetic / 1e6;
    state.counters["writing_Mcells/s"] = writing / 1e6;
    state.counters["of_ceiling"] = cells_ / fill_s / std::min(arithmetic, writing);
  }

 private:
  const TableCells& loops_;
  double cells_;
  std::size_t size_;
  std::shared_ptr<double[]> numbers_;
  double operations_per_s_ = 0.0, bytes_per_s_ = 0.0;
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

void fill_table(benchmark::State& state, const TableCells& loops, const char* grid_name) {
  const GpuModel model = model_of(static_cast<std::size_t>(state.range(0)));
  const ClockGrid grid = make_clock_grid(model.spec(), grid_name);
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(state.range(1)));
  Ceiling ceiling(loops, model.kernels() * grid.size());
  double best_s = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const double fill_s = seconds([&] {
      const ProfileTable table = fill_profile_table(model, grid, loops);
      benchmark::DoNotOptimize(table.times_s(0).data());
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

[[maybe_unused]] const bool registered = [] {
  for (const TableCells& loops : table_cells()) {
    for (const char* grid : {"paper", "full"}) {
      auto* bench = benchmark::RegisterBenchmark(
          fmt::format("fill_table/{}/{}", loops.name, grid).c_str(),
          [&loops, grid](benchmark::State& state) { fill_table(state, loops, grid); });
      bench->ArgNames({"kernels", "threads"})->UseManualTime()->Unit(benchmark::kMicrosecond);
      const bool fastest = &loops == &table_cells().back();
      for (const std::int64_t kernels : {46, 1000, 10000}) {
        if (kernels > 46 && (!fastest || std::string_view(grid) == "paper")) continue;
        bench->Args({kernels, 1})->Args({kernels, 2});
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace rubato
