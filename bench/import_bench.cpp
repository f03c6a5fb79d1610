// Importing PyTorch profiler traces, two of them real ones blown up, beside parsing the same bytes
// with simdjson and doing nothing with them: the ceiling of any importer that uses it.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <simdjson.h>
#include <unistd.h>

#include "bench/blown_up_trace.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

// One launch as record_shapes and with_stack write it: two frames of the stack, an operator with
// shapes, the launch call, the kernel and the arrows between them.
std::string events_of_launch(std::uint64_t i) {
  const double ts = 1e9 + 20.0 * static_cast<double>(i);
  std::string out;
  for (int frame = 0; frame < 2; ++frame) {
    out += fmt::format(
        "  {{\n    \"ph\": \"X\", \"cat\": \"python_function\", \"name\": "
        "\"torch/nn/modules/linear.py({}): forward\", \"pid\": 9, \"tid\": 9,\n    \"ts\": "
        "{:.3f}, \"dur\": {:.3f},\n    \"args\": {{\n      \"Python parent id\": {}, \"Python "
        "id\": "
        "{}, \"Ev Idx\": {}\n    }}\n  }},\n",
        100 + frame, ts, 15.0, i, i + 1, i);
  }
  out += fmt::format(
      "  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::addmm\", \"pid\": 9, "
      "\"tid\": "
      "9,\n    \"ts\": {:.3f}, \"dur\": 11.512,\n    \"args\": {{\n      \"External id\": "
      "{},\"Record "
      "function id\": 0, \"Concrete Inputs\": [\"\", \"\", \"\", \"1\", \"1\"], \"Input type\": "
      "[\"c10::BFloat16\", \"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\", \"Scalar\"], \"Input "
      "Strides\": [[1], [1024, 1], [1, 1024], [], []], \"Input Dims\": [[1024], [8944, 1024], "
      "[1024, 1024], [], []], \"Ev Idx\": {}\n    }}\n  }},\n",
      ts + 1.0, i, i);
  out += fmt::format(
      "  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", "
      "\"pid\": 9, "
      "\"tid\": 9,\n    \"ts\": {:.3f}, \"dur\": 4.231,\n    \"args\": {{\n      \"External id\": "
      "{}, "
      "\"cbid\": 211, \"correlation\": {}\n    }}\n  }},\n",
      ts + 3.0, i, i);
  out += fmt::format(
      "  {{\n    \"ph\": \"s\", \"id\": {}, \"pid\": 9, \"tid\": 9, \"ts\": {:.3f},\n    \"cat\": "
      "\"ac2g\", \"name\": \"ac2g\"\n  }},\n",
      i, ts + 3.0);
  out += fmt::format(
      "  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
      "\"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_"
      "segment_k_off_kernel__5x_cublas\", \"pid\": 0, \"tid\": 7,\n    \"ts\": {:.3f}, \"dur\": "
      "12.128,\n    \"args\": {{\n      \"External id\": {}, \"queued\": 0, \"device\": 0, "
      "\"context\": 1, \"stream\": 7, \"correlation\": {}, \"registers per thread\": 168, \"shared "
      "memory\": 213504, \"blocks per SM\": 4.24, \"warps per SM\": 50.9, \"grid\": [8, 70, 1], "
      "\"block\": [384, 1, 1], \"est. achieved occupancy %\": 19\n    }}\n  }}",
      ts + 40.0, i, i);
  return out;
}

// Some hundred MB of a file, removed at the end.
class BigTrace {
 public:
  explicit BigTrace(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("rubato_import_bench_{}_{}.json", ::getpid(), name)) {}
  ~BigTrace() { std::filesystem::remove(path_); }
  BigTrace(const BigTrace&) = delete;
  BigTrace& operator=(const BigTrace&) = delete;

  // 100,000 launches.
  void generate() const {
    constexpr std::uint64_t launches = 100'000;
    std::ofstream out(path_, std::ios::binary);
    out << "{\n\"schemaVersion\": 1,\n\"traceEvents\": [\n";
    for (std::uint64_t i = 0; i < launches; ++i)
      out << events_of_launch(i) << (i + 1 < launches ? ",\n" : "\n");
    out << "]}\n";
  }

  void blow_up(const std::filesystem::path& real) const {
    constexpr std::uint64_t bytes = 200'000'000;
    blow_up_trace(real, path_, bytes);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(std::filesystem::file_size(path_));
  }

 private:
  std::filesystem::path path_;
};

void parse_with_simdjson(benchmark::State& state, const BigTrace& trace) {
  simdjson::dom::parser parser;  // its memory is warm after the first load
  for (auto _ : state) benchmark::DoNotOptimize(parser.load(trace.path().string()).error());
  state.SetBytesProcessed(state.iterations() * trace.bytes());
}

void import(benchmark::State& state, const BigTrace& trace) {
  for (auto _ : state) benchmark::DoNotOptimize(import_capture(trace.path()).launches.size());
  state.SetBytesProcessed(state.iterations() * trace.bytes());
}

// Real captures as they were published, where they are at hand (tests/captures holds what readers
// read of them, which is quicker); one made up everywhere.
int run(int argc, char** argv) {
  const std::filesystem::path shared = std::filesystem::path(RUBATO_SHARED_DIR) / "data/traces";
  std::vector<std::unique_ptr<BigTrace>> traces;
  for (const std::string name : {"made_up", "kineto_a100_ddp2_resnet", "kineto_h100_qwen_fwd"}) {
    const std::filesystem::path real = shared / (name + ".json.gz");
    const bool made_up = name == "made_up";
    if (!made_up && !std::filesystem::exists(real)) continue;
    const BigTrace& trace = *traces.emplace_back(std::make_unique<BigTrace>(name));
    if (made_up) {
      trace.generate();
    } else {
      trace.blow_up(real);
    }
    const auto measured = [&](const char* what, auto* function) {
      benchmark::RegisterBenchmark(
          fmt::format("{}/{}", what, name).c_str(),
          [function, &trace](benchmark::State& state) { function(state, trace); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    measured("parse_with_simdjson", &parse_with_simdjson);
    measured("import", &import);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace rubato

int main(int argc, char** argv) { return rubato::run(argc, argv); }
