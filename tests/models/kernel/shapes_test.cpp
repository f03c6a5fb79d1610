// Kernels from their shapes: by hand on a GPU of round numbers, by brute force, and what must hold
// for every architecture.

#include "models/kernel/shapes.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/kernel/model.hpp"
#include "tests/expect_error.hpp"

namespace rubato {
namespace {

Kernel kernel_of(KernelClass kind, Dtype dtype) {
  Kernel kernel;
  kernel.name = kernel.label = "k";
  kernel.kind = kind;
  kernel.dtype = dtype;
  return kernel;
}

Kernel product_of(GemmShape shape, Dtype dtype) {
  Kernel kernel = kernel_of(KernelClass::gemm, dtype);
  kernel.gemm = shape;
  return kernel;
}

Kernel attention_of(AttentionShape shape, Dtype dtype = Dtype::bf16) {
  Kernel kernel = kernel_of(KernelClass::attention, dtype);
  kernel.attention = shape;
  return kernel;
}

double time_s(const GpuSpec& spec, const Kernel& kernel) {
  return operating_point(spec, from_shape(spec, kernel).value(), spec.default_clock,
                         spec.power_limit.limit_w)
      .time_s;
}

const ProductCosts round_costs{.tiles = {{128.0, 128.0}},
                               .k_step = 64.0,
                               .item_cycles = 100.0,
                               .split_cycles = 10.0,
                               .operand_bytes_per_cycle = 1e9,
                               .whole_waves = 1.0,
                               .launch_s = 1e-6,
                               .overlap = 3.0,
                               .dram_factor = 1.0};

// 2 x 128 x 128 x 64 FLOP at 2048 FLOP per cycle are 1024 cycles; 101 tiles on 100 SMs two waves.
TEST(ProductCycles, AreWavesOfTiles) {
  const auto cycles = [](double whole, std::uint64_t columns) {
    ProductCosts costs = round_costs;
    costs.whole_waves = whole;
    return product_cycles(costs, {.m = 128, .n = 128 * columns, .k = 64}, 2048.0, 2.0, 100.0);
  };
  EXPECT_NEAR(cycles(1.0, 100), 1124.0, 1e-6);
  EXPECT_NEAR(cycles(1.0, 101), 2.0 * 1124.0, 1e-6);
  EXPECT_NEAR(cycles(0.0, 101), 1.01 * 1124.0, 1e-6);
  EXPECT_NEAR(cycles(0.0, 7), 1124.0, 1e-6);  // an SM without work does not help
}

// A deep product of one tile: sixteen parts of 1024 cycles each, and what joining them takes.
TEST(ProductCycles, SplitADeepProduct) {
  EXPECT_NEAR(product_cycles(round_costs, {.m = 128, .n = 128, .k = 1024}, 2048.0, 2.0, 100.0),
              1024.0 + 100.0 + 15.0 * 10.0, 1e-6);
}

TEST(ProductBytes, AreReadOnceOrAgainByWaves) {
  const GemmShape shape{.m = 8192, .n = 8192, .k = 8192};
  const double once = 2.0 * 3.0 * 8192.0 * 8192.0;
  EXPECT_EQ(product_bytes(shape, 2.0, 132.0, 1e9), once);
  const double again = product_bytes(shape, 2.0, 132.0, 50e6);
  EXPECT_GT(again, 1.5 * once);
  EXPECT_LT(again, 8.0 * once);
}

// The blocks that causal tiles meet, in the mean, against a sum over tiles.
TEST(Attention, TakesTheBlocksThatTheMaskLeaves) {
  GpuSpec spec = load_gpu_spec("h200-sxm5");
  spec.operators->attention.item_cycles = 1e-6;
  spec.sm_count = 1.0;  // so that the longest tile does not count
  for (const std::uint64_t group : {1U, 2U, 4U, 8U}) {
    const AttentionShape shape{.batch = 1,
                               .q_tokens = 4096,
                               .kv_tokens = 4096,
                               .heads = 8 * group,
                               .kv_heads = 8,
                               .head_dim = 128,
                               .causal = true};
    AttentionShape whole = shape;
    whole.causal = false;
    const double tiles = 4096.0 * static_cast<double>(group) / 128.0;
    double blocks = 0.0;
    for (double i = 0.0; i < tiles; ++i)
      blocks += std::min(std::ceil((i + 1.0) / static_cast<double>(group)), 32.0);
    EXPECT_NEAR(from_shape(spec, attention_of(shape))->core_cycles /
                    from_shape(spec, attention_of(whole))->core_cycles,
                blocks / (tiles * 32.0), 1e-6);
  }
}

TEST(Attention, BackwardTakesFiveProductsOfTwo) {
  GpuSpec spec = load_gpu_spec("h100-sxm5");
  spec.operators->attention.item_cycles = 1.0;
  Kernel forward = attention_of({8, 4096, 4096, 16, 16, 128, true});
  forward.pass = Pass::forward;
  Kernel backward = forward;
  backward.pass = Pass::backward;
  EXPECT_NEAR(from_shape(spec, backward)->core_cycles / from_shape(spec, forward)->core_cycles,
              2.5 / spec.operators->attention.backward, 0.01);
}

// One query reads all keys once; a short cache takes little more than the launch.
TEST(Attention, DecodingReadsTheCache) {
  const GpuSpec spec = load_gpu_spec("h200-sxm5");
  const double cache = 2.0 * 64.0 * 8.0 * 32768.0 * 128.0 * 2.0;
  const Kernel kernel = attention_of({64, 1, 32768, 64, 8, 128, true});
  EXPECT_NEAR(time_s(spec, kernel) / (cache / 4.32e12), 1.0, 0.1);
  EXPECT_LT(time_s(spec, attention_of({1, 1, 512, 64, 8, 128, true})), 12e-6);
}

// fp32 stays on CUDA cores; tf32 is asked for.
TEST(Products, TakeThePathOfTheirType) {
  for (const char* name : {"h100-sxm5", "a100-sxm4-80gb", "b200-sxm6", "l40s"}) {
    SCOPED_TRACE(name);
    const GpuSpec spec = load_gpu_spec(name);
    const GemmShape shape{.m = 8192, .n = 8192, .k = 8192};
    const double fp32 = time_s(spec, product_of(shape, Dtype::fp32)),
                 tf32 = time_s(spec, product_of(shape, Dtype::tf32)),
                 bf16 = time_s(spec, product_of(shape, Dtype::bf16));
    const double peak_s =
        2.0 * std::pow(8192.0, 3) /
        (spec.peaks.cuda_flop_per_cycle.at(Dtype::fp32) * spec.core.max_mhz * 1e6);
    EXPECT_GT(fp32, peak_s);
    EXPECT_GT(fp32, 1.3 * tf32);
    EXPECT_GT(tf32, 1.3 * bf16);
    EXPECT_LT(tf32, peak_s);
  }
  const GpuSpec h100 = load_gpu_spec("h100-sxm5");
  // Measured at 1980 MHz: 21.3 ms (models/data/measured/hopper_defaults).
  EXPECT_NEAR(time_s(h100, product_of({.m = 8192, .n = 8192, .k = 8192}, Dtype::fp32)), 21.3e-3,
              0.05 * 21.3e-3);
}

// A kernel that the spec measured in bf16 is not the one of the same name in fp32.
// Eight experts of 4096 x 14336, two of them for each token, on an H200 (ai-dynamo/aiconfigurator):
// 10.92 ms of 8192 tokens, 0.67 ms of 48, with activation and sum, up to a tenth of it.
TEST(Products, OfFusedExpertsAreAsMeasured) {
  const GpuSpec spec = load_gpu_spec("h200-sxm5");
  const auto experts_s = [&](std::uint64_t rows, const char* label) {
    double sum_s = 0.0;
    for (const GemmShape& shape : {GemmShape{.m = 28672, .n = rows, .k = 4096, .batch = 8},
                                   GemmShape{.m = 4096, .n = rows, .k = 14336, .batch = 8}}) {
      Kernel kernel = product_of(shape, Dtype::bf16);
      kernel.label = label;
      sum_s += time_s(spec, kernel);
    }
    return sum_s;
  };
  EXPECT_NEAR(experts_s(2048, "fused experts") / 10.92e-3, 0.92, 0.05);
  EXPECT_NEAR(experts_s(12, "fused experts") / 0.67e-3, 0.97, 0.06);
  EXPECT_LT(experts_s(2048, "grouped GEMM"), 0.9 * experts_s(2048, "fused experts"));
}

TEST(Products, OfAnotherTypeAreNotTheMeasuredOnes) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const CalibratedKernel& measured =
      *std::ranges::find(spec.kernels, "10_gemm_fc", &CalibratedKernel::name);
  Kernel kernel = product_of(*measured.gemm, Dtype::bf16);
  kernel.name = measured.name;
  EXPECT_EQ(calibrated_kernel(spec, kernel), &measured);
  kernel.dtype = Dtype::fp16;
  EXPECT_EQ(calibrated_kernel(spec, kernel), &measured);
  kernel.dtype = Dtype::fp32;
  EXPECT_EQ(calibrated_kernel(spec, kernel), nullptr);
}

// As PyTorch ran them at 1980 MHz: models/data/measured/hopper_defaults, less the time to clear the
// table of 206 MB (63 and 48 us), and a step of GPT-3 XL at batch 4 (tests/captures/h100).
TEST(Streams, OfVocabulariesTakeWhatWasMeasured) {
  struct Row {
    const char* spec;
    KernelClass kind;
    const char* label;
    double bytes, us;
  };
  for (const Row& row :
       {Row{"h100-sxm5", KernelClass::embedding, "embedding wte_bwd", 96.7e6, 354.0},
        Row{"h200-sxm5", KernelClass::embedding, "embedding wte_bwd", 96.7e6, 354.0},
        Row{"h100-sxm5", KernelClass::embedding, "embedding wte_bwd", 48.5e6, 208.5},
        Row{"h100-sxm5", KernelClass::softmax, "classifier", 1.65e9, 854.5},
        Row{"h200-sxm5", KernelClass::softmax, "classifier", 1.65e9, 737.6},
        Row{"h100-sxm5", KernelClass::softmax, "cunn_SoftMaxForward", 0.824e9, 382.6},
        Row{"h100-sxm5", KernelClass::softmax, "cunn_SoftMaxBackward", 1.236e9, 551.3}}) {
    Kernel kernel = kernel_of(row.kind, Dtype::bf16);
    kernel.label = row.label;
    kernel.dram_bytes = row.bytes;
    EXPECT_NEAR(1e6 * time_s(load_gpu_spec(row.spec), kernel), row.us, 0.1 * row.us)
        << row.spec << " " << row.label;
  }
  Kernel loss = kernel_of(KernelClass::reduce, Dtype::fp32);
  loss.label = "loss_nll";
  loss.dram_bytes = 12.0 * 4096;
  EXPECT_NEAR(1e6 * time_s(load_gpu_spec("h100-sxm5"), loss), 18.7, 1.9);
}

// Energies of an architecture hold at the default clock, whatever curve a spec has below it.
TEST(Shapes, PowerAtTheDefaultClockIsThatOfTheArchitecture) {
  const GpuSpec spec = load_gpu_spec("a100-pcie-40gb");
  GpuSpec steep = spec;
  steep.voltage.relative_v.back() = 2.0;
  const Kernel kernel = product_of({.m = 4096, .n = 4096, .k = 4096}, Dtype::bf16);
  const double mhz = spec.core.max_mhz;
  const auto core_j = [&](const GpuSpec& gpu) {
    const double v = relative_voltage(gpu, gpu.mem_states.front(), mhz);
    return from_shape(gpu, kernel)->core_j * v * v;
  };
  EXPECT_NEAR(core_j(steep) / core_j(spec), 1.0, 1e-9);
}

TEST(Architectures, AreReadAndNamedInErrors) {
  for (const std::string& name : architectures()) {
    if (name == "common") continue;
    EXPECT_FALSE(read_operators(name, "{}", "s.json").source.empty()) << name;
  }
  expect_error<DataError>([] { (void)read_operators("hoper", "{}", "s.json"); },
                          "s.json: architecture: 'hoper' is not known; did you mean 'hopper'?");
  expect_error<DataError>([] { (void)read_operators("hopper", R"({"l2": 3})", "s.json"); }, "'l2'");
  expect_error<DataError>(
      [] { (void)read_operators("hopper", R"({"tensor": {"item_cycles": -1}})", "s.json"); },
      "tensor.item_cycles");
}

}  // namespace
}  // namespace rubato
