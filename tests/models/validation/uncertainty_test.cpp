// What is drawn where nobody measured: how wide, and what is drawn alike.

#include "models/validation/uncertainty.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/gpu/device.hpp"
#include "models/kernel/anchor.hpp"
#include "models/table/gpu_model.hpp"
#include "traces/files/trace_json.hpp"

namespace rubato {
namespace {

using Draws = std::vector<std::vector<double>>;  // shape [kernels][draws]

// Of all draws around zero, and of the mean over the kernels.
struct Scatter {
  double of_one = 0.0, of_mean = 0.0;
};

Scatter scatter_of(const Draws& logarithms) {
  const auto kernels = static_cast<double>(logarithms.size()),
             draws = static_cast<double>(logarithms.front().size());
  Scatter squares;
  for (std::size_t i = 0; i < logarithms.front().size(); ++i) {
    double mean = 0.0;
    for (const std::vector<double>& kernel : logarithms) {
      mean += kernel[i] / kernels;
      squares.of_one += kernel[i] * kernel[i] / kernels / draws;
    }
    squares.of_mean += mean * mean / draws;
  }
  return {std::sqrt(squares.of_one), std::sqrt(squares.of_mean)};
}

// Of a step of kernels captured at 1 ms each: their times at half the clock over that, in draws
// that all return the captured time.
std::vector<std::vector<double>> drawn_slowdowns(const std::vector<Kernel>& kernels) {
  Trace trace;
  trace.name = "t";
  trace.segments = {{"s", 1, {}}};
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    trace.kernels.push_back(kernels[k]);
    trace.kernels.back().measured_time_s = 1e-3;
    trace.segments.front().launches.push_back(id_at<KernelId>(k));
  }
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  spec.ensemble.clear();  // of the splits alone
  const GpuModel model(spec, trace);
  const ClockPair half = captured_clock(spec, "1593/705");
  std::vector<std::vector<double>> slowdowns(kernels.size());
  for (const GpuModel& draw : draw_models(model, trace, 16)) {
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const auto id = id_at<KernelId>(k);
      EXPECT_NEAR(draw.evaluate(id, spec.default_clock).time_s, 1e-3, 1e-12);
      slowdowns[k].push_back(draw.evaluate(id, half).time_s / 1e-3);
    }
  }
  return slowdowns;
}

Kernel captured_kernel(const char* name, const char* label, KernelClass kind) {
  Kernel kernel;
  kernel.name = name;
  kernel.label = label;
  kernel.kind = kind;
  return kernel;
}

// What measured kernels of a class are like: products follow the core clock, element-wise ones do
// not.
TEST(Uncertainty, DrawsOfAClassAreItsMeasuredKernels) {
  auto of = drawn_slowdowns({captured_kernel("a", "a", KernelClass::gemm),
                             captured_kernel("b", "b", KernelClass::elementwise)});
  for (std::vector<double>& kernel : of) std::ranges::sort(kernel);
  EXPECT_GT(of[0][8], of[1][8] + 0.2);
}

// Launches of one function are alike; others lean a little more one way than not.
TEST(Uncertainty, DrawsOfUnknownFunctionsAreTheirOwn) {
  std::vector<Kernel> kernels{captured_kernel("a 1", "a", KernelClass::other),
                              captured_kernel("a 2", "a", KernelClass::other)};
  std::vector<std::string> names;
  for (int k = 0; k < 40; ++k) names.push_back("f" + std::to_string(k));
  for (const std::string& name : names)
    kernels.push_back(captured_kernel(name.c_str(), name.c_str(), KernelClass::other));
  const auto of = drawn_slowdowns(kernels);
  double middle = 0.0;
  for (const double slowdown : of[0]) middle += slowdown / static_cast<double>(of[0].size());
  double variance = 0.0, of_mean = 0.0;
  for (std::size_t i = 0; i < of[0].size(); ++i) {
    EXPECT_NEAR(of[0][i], of[1][i], 1e-9);
    double sum = 0.0;
    for (std::size_t k = 2; k < of.size(); ++k) {
      EXPECT_GT(of[k][i], 0.99);
      EXPECT_LT(of[k][i], 2.01);
      sum += of[k][i] - middle;
      variance += std::pow(of[k][i] - middle, 2) / 40.0;
    }
    of_mean += std::pow(sum / 40.0, 2);
  }
  EXPECT_GT(std::sqrt(variance / static_cast<double>(of[0].size())), 0.15);
  EXPECT_GT(of_mean / variance, 0.12);  // independent: 0.025
  EXPECT_LT(of_mean / variance, 0.5);   // as one: 1
}

// The spread of a class's kernels, cut to 5 and 30 %; of a kernel at other work the part that
// its work has moved; nothing of what was measured.
TEST(Uncertainty, CoefficientErrorsAreTheSpreadOfTheClass) {
  GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  spec.kernels.clear();
  const auto add = [&](double log_cycles_per_byte) {
    CalibratedKernel& known = spec.kernels.emplace_back();
    known.name = "k" + std::to_string(spec.kernels.size());
    known.kind = KernelClass::softmax;
    known.dram_bytes = 1e6 * static_cast<double>(spec.kernels.size());
    known.coefficients.core_cycles = *known.dram_bytes * std::exp(log_cycles_per_byte);
  };
  Kernel kernel = captured_kernel("new", "new", KernelClass::softmax);
  const auto error = [&](CoefficientSource source) {
    return coefficient_error(spec, kernel, source);
  };
  add(0.0);
  EXPECT_EQ(error(CoefficientSource::derived), 0.3);  // one says nothing
  add(0.2);
  EXPECT_NEAR(error(CoefficientSource::derived), 0.2 / std::sqrt(2.0), 1e-12);
  add(0.4);
  spec.kernels.emplace_back().kind = KernelClass::softmax;  // of no known work
  EXPECT_NEAR(error(CoefficientSource::derived), 0.2, 1e-12);
  EXPECT_EQ(error(CoefficientSource::measured), 0.0);
  EXPECT_EQ(error(CoefficientSource::guessed), 0.3);
  kernel.name = "k1";
  kernel.dram_bytes = 2e6;  // a third of the way to eight times the work, which is another kernel
  EXPECT_NEAR(error(CoefficientSource::scaled), 0.2 / 3.0, 1e-12);
  kernel.dram_bytes = 1e9;
  EXPECT_NEAR(error(CoefficientSource::scaled), 0.2, 1e-12);
  add(3.0);
  EXPECT_EQ(error(CoefficientSource::derived), 0.3);
  for (CalibratedKernel& known : spec.kernels)
    known.coefficients.core_cycles = known.dram_bytes.value_or(0.0);
  EXPECT_EQ(error(CoefficientSource::derived), 0.05);
}

std::vector<Kernel> functions(std::size_t count, KernelClass kind) {
  std::vector<Kernel> kernels;
  for (std::size_t k = 0; k < count; ++k) {
    const std::string name = "f" + std::to_string(k);
    kernels.push_back(captured_kernel(name.c_str(), name.c_str(), kind));
  }
  return kernels;
}

// Half of the variance of what is derived or guessed is common to a class.
TEST(Uncertainty, GuessedWorkIsHalfCommonToItsClass) {
  GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  spec.ensemble.clear();
  Trace trace;
  trace.name = "t";
  trace.segments = {{"s", 1, {}}};
  trace.kernels = functions(40, KernelClass::softmax);
  for (std::size_t k = 0; k < trace.kernels.size(); ++k) {
    trace.kernels[k].flops = trace.kernels[k].dram_bytes = 1e9;
    trace.segments.front().launches.push_back(id_at<KernelId>(k));
  }
  const GpuModel model(spec, trace);
  ASSERT_EQ(model.source(KernelId{0}), CoefficientSource::derived);
  for (const auto value : {&KernelCoefficients::core_cycles, &KernelCoefficients::dram_bytes,
                           &KernelCoefficients::core_j}) {
    Draws logarithms(trace.kernels.size());
    for (const GpuModel& draw : draw_models(model, trace, 16)) {
      for (std::size_t k = 0; k < logarithms.size(); ++k) {
        const auto id = id_at<KernelId>(k);
        logarithms[k].push_back(
            std::log(draw.coefficients(id).*value / model.coefficients(id).*value));
      }
    }
    const Scatter found = scatter_of(logarithms);
    EXPECT_NEAR(found.of_one, 0.3, 0.03);
    EXPECT_NEAR(found.of_mean, 0.3 * std::sqrt(0.5 + 0.5 / 40.0), 0.03);
  }
}

TEST(Uncertainty, NoDrawsAreOne) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const Trace trace = load_trace("gpt3-xl");
  EXPECT_EQ(draw_models(GpuModel(spec, trace), trace, 0).size(), 1U);
}

}  // namespace
}  // namespace rubato
