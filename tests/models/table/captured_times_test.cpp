// Captured times count: a step's default time is its captured time, for every capture.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "models/gpu/device.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/captures.hpp"
#include "traces/capture_stats.hpp"
#include "traces/files/trace_json.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

double time_of(const Trace& trace, const GpuModel& model, const ClockPair& clock) {
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  double time_s = 0.0;
  for (std::size_t k = 0; k < counts.size(); ++k)
    time_s += static_cast<double>(counts[k]) * model.evaluate(id_at<KernelId>(k), clock).time_s;
  return time_s;
}

double captured_time(const Trace& trace) {
  const std::vector<std::uint64_t> counts = launch_counts(trace);
  double time_s = 0.0;
  for (std::size_t k = 0; k < counts.size(); ++k)
    time_s += static_cast<double>(counts[k]) * *trace.kernels[k].measured_time_s;
  return time_s;
}

// The paper's step as if it had been captured on a GPU that is 30 % slower at what it does.
Trace slow_step() {
  Trace trace = load_trace("gpt3-xl");
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const GpuModel model(spec, trace);
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    trace.kernels[k].measured_time_s =
        1.3 * model.evaluate(id_at<KernelId>(k), spec.default_clock).time_s;
  }
  return trace;
}

TEST(CapturedTimes, AreReturnedByMeasuredAndByAnchoredKernels) {
  Trace trace = slow_step();
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const double measured_s = captured_time(trace);
  EXPECT_NEAR(time_of(trace, GpuModel(spec, trace), spec.default_clock) / measured_s, 1.0, 1e-9);
  for (Kernel& kernel : trace.kernels) kernel.name += " of another program";
  const GpuModel model(spec, trace);
  EXPECT_EQ(model.source(KernelId{2}), CoefficientSource::anchored);
  EXPECT_NEAR(time_of(trace, model, spec.default_clock) / measured_s, 1.0, 1e-9);
}

TEST(CapturedTimes, AreOfTheCardsPowerLimitWhateverLimitIsAskedFor) {
  const Trace trace = slow_step();
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  EXPECT_GT(time_of(trace, GpuModel(spec, trace, 200.0), spec.default_clock),
            1.05 * captured_time(trace));
}

TEST(CapturedTimes, AreOfTheClocksOfTheCapture) {
  Trace trace = slow_step();
  trace.captured = CaptureConditions{"NVIDIA GeForce RTX 3080 Ti", "5001/1050"};
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const GpuModel model(spec, trace);
  const double measured_s = captured_time(trace);
  EXPECT_NEAR(time_of(trace, model, captured_clock(spec, "5001/1050")) / measured_s, 1.0, 1e-9);
  EXPECT_LT(time_of(trace, model, spec.default_clock) / measured_s, 0.9);
}

TEST(CapturedTimes, OfAnotherChipAreNotThisOnes) {
  Trace trace = slow_step();
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  trace.captured = CaptureConditions{"NVIDIA A100-SXM4-80GB", {}};
  const GpuModel model(spec, trace);
  EXPECT_EQ(model.source(KernelId{2}), CoefficientSource::measured);
  EXPECT_NEAR(time_of(trace, model, spec.default_clock) / captured_time(trace), 1.0 / 1.3, 1e-9);
  // Where nothing else is known, they are a guess.
  Kernel& kernel = trace.kernels[2];
  kernel.name = "mystery";
  kernel.kind = KernelClass::other;
  kernel.flops.reset();
  kernel.dram_bytes.reset();
  EXPECT_EQ(GpuModel(spec, trace).source(KernelId{2}), CoefficientSource::guessed);
}

struct RealCapture {
  const char* file;
  const char* spec;
};

class RealCaptures : public testing::TestWithParam<RealCapture> {};

TEST_P(RealCaptures, DefaultTimeIsCapturedTime) {
  const auto [file, spec_name] = GetParam();
  const GpuSpec spec = load_gpu_spec(spec_name);
  const Trace trace = fold(import_capture(captured(file)));
  const GpuModel model(spec, trace);
  const double ratio = time_of(trace, model, spec.default_clock) / captured_time(trace);
  EXPECT_NEAR(ratio, 1.0, 0.01);  // what was asked for
  EXPECT_NEAR(ratio, 1.0, 1e-8);  // what construction gives
}

INSTANTIATE_TEST_SUITE_P(
    All, RealCaptures,
    testing::Values(RealCapture{"traces/kineto_a100_ddp2_resnet.json.gz", "a100-sxm4-80gb"},
                    RealCapture{"traces/kineto_h100_qwen_fwd.json.gz", "h100-sxm5"},
                    RealCapture{"traces/nsys_h100_2gpu_dit.sqlite", "h100-sxm5"},
                    RealCapture{"traces/chakra_resnet_rank0.et.gz", "v100-pcie"},
                    RealCapture{"traces/chakra_resnet_rank0.json.gz", "v100-pcie"}),
    [](const auto& tested) {
      std::string name = std::filesystem::path(tested.param.file).stem().string();
      std::ranges::replace_if(
          name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

TEST(RealRanks, DefaultTimeIsCapturedTime) {
  const GpuSpec spec = load_gpu_spec("v100-pcie");
  std::size_t ranks = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(captured("multirank/dlrm_v100_8rank"))) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !name.ends_with(".json.gz")) continue;
    const Trace trace = fold(import_capture(entry.path()));
    EXPECT_NEAR(time_of(trace, GpuModel(spec, trace), spec.default_clock) / captured_time(trace),
                1.0, 1e-8)
        << name;
    ++ranks;
  }
  EXPECT_EQ(ranks, 8U);
}

}  // namespace
}  // namespace rubato
