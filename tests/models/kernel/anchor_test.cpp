#include "models/kernel/anchor.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "models/gpu/clock_grid.hpp"
#include "models/kernel/coefficients.hpp"
#include "models/kernel/model.hpp"
#include "models/kernel/peaks.hpp"

namespace rubato {
namespace {

const GpuSpec& a100() {
  static const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
  return spec;
}

Kernel kernel_of(KernelClass kind, std::string label, Dtype dtype = Dtype::unknown) {
  Kernel kernel;
  kernel.name = kernel.label = std::move(label);
  kernel.kind = kind;
  kernel.dtype = dtype;
  return kernel;
}

CapturePoint point_at(const GpuSpec& spec, std::string_view clock, double time_s) {
  return {parse_clock_pair(spec, clock), time_s, spec.power_limit.limit_w};
}

double time_s(const GpuSpec& spec, const KernelCoefficients& kernel, std::string_view clock) {
  return operating_point(spec, kernel, parse_clock_pair(spec, clock), spec.power_limit.limit_w)
      .time_s;
}

// Whatever is known of a kernel, wherever the split is put, also where the power limit binds.
RC_GTEST_PROP(Anchor, ReturnsTheCapturedTimeAtTheCapturedClocks, ()) {
  const auto names = shipped_gpu_specs();
  const GpuSpec spec = load_gpu_spec(*rc::gen::elementOf(names));
  const ClockGrid grid = make_clock_grid(spec, "");
  Kernel kernel = kernel_of(
      static_cast<KernelClass>(*rc::gen::inRange(0, static_cast<int>(KernelClass::other) + 1)),
      *rc::gen::element<std::string>("k", "Memcpy HtoD", "ampere_sgemm", "s16816"));
  const auto size = [] { return std::pow(10.0, *rc::gen::inRange(-1, 15)); };
  if (*rc::gen::arbitrary<bool>()) kernel.flops = size();
  if (*rc::gen::arbitrary<bool>()) kernel.dram_bytes = size();
  if (*rc::gen::arbitrary<bool>()) kernel.work_source = WorkSource::measured;
  const CapturePoint at{grid.pairs()[*rc::gen::inRange<std::size_t>(0, grid.size())],
                        1e-6 * *rc::gen::inRange(1, 1'000'000),
                        *rc::gen::element(spec.power_limit.min_w, spec.power_limit.limit_w)};
  const double lean = 0.01 * *rc::gen::inRange(0, 101);
  const KernelCoefficients found = anchored(spec, kernel, at, lean).coefficients;
  const OperatingPoint point = operating_point(spec, found, at.clock, at.power_limit_w);
  RC_ASSERT(std::abs(point.time_s / at.time_s - 1.0) < 1e-9);
  RC_ASSERT(found.core_cycles > 0.0 && found.dram_bytes > 0.0 && found.fixed_s > 0.0);
  RC_ASSERT(found.core_j >= 0.0 && std::isfinite(point.energy_j));
}

// At half the core clock DRAM time grows as far as the crossbar loses bandwidth; core time doubles.
TEST(Anchor, UnknownWorkIsOpenFromAllDramToAllCore) {
  const Kernel kernel = kernel_of(KernelClass::other, "who knows");
  const CapturePoint at = point_at(a100(), "1593/1410", 1e-3);
  const auto slower = [&](double lean) {
    return time_s(a100(), anchored(a100(), kernel, at, lean).coefficients, "1593/705") / 1e-3;
  };
  const double bandwidth_lost = dram_bandwidth(a100(), a100().mem_states[0], 1410.0) /
                                dram_bandwidth(a100(), a100().mem_states[0], 705.0);
  EXPECT_NEAR(slower(0.0), bandwidth_lost, 0.01);
  EXPECT_NEAR(slower(1.0), 2.0, 0.01);
  for (double lean = 0.1; lean <= 1.0; lean += 0.1) EXPECT_GE(slower(lean), slower(lean - 0.1));
  EXPECT_EQ(anchored(a100(), kernel, at).split, SplitSource::class_prior);
}

TEST(Anchor, KnownWorkBoundsTheSplit) {
  const ClockState state = clock_state(a100(), a100().default_clock, false);
  const double time = 1e-3;
  Kernel kernel = kernel_of(KernelClass::elementwise, "streams");
  kernel.dram_bytes = 0.8 * state.dram_bytes_per_s * time;
  const CapturePoint at = point_at(a100(), "1593/1410", time);
  for (const double lean : {0.0, 0.5, 1.0})
    EXPECT_GE(anchored(a100(), kernel, at, lean).coefficients.dram_bytes,
              *kernel.dram_bytes * (1.0 - 1e-9));
  Kernel product = kernel_of(KernelClass::gemm, "ampere_bf16_s16816gemm", Dtype::bf16);
  product.flops = 0.4 * 221184.0 * 1410e6 * time;  // far from the power limit
  for (const double lean : {0.0, 0.5, 1.0})
    EXPECT_GE(anchored(a100(), product, at, lean).coefficients.core_cycles,
              0.4 * 1410e6 * time * (1.0 - 1e-9));
  // A product that reads little and computes little is bound by what it does more of.
  product.flops = 0.01 * 221184.0 * 1410e6 * time;
  product.dram_bytes = 0.5 * state.dram_bytes_per_s * time;
  EXPECT_EQ(anchored(a100(), product, at).split, SplitSource::work);
  const double bandwidth_lost =
      state.dram_bytes_per_s / dram_bandwidth(a100(), a100().mem_states[0], 705.0);
  EXPECT_LT(time_s(a100(), anchored(a100(), product, at).coefficients, "1593/705"),
            1.03 * bandwidth_lost * time);
}

// Captured in the time that the model gives it, a kernel of known work follows clocks as the model
// has it: core and memory overlap as they do without a capture.
TEST(Anchor, KnownWorkFollowsClocksAsWithoutACapture) {
  for (const char* gpu : {"a100-sxm4-80gb", "h100-sxm5", "rtx-3080-ti"}) {
    const GpuSpec spec = load_gpu_spec(gpu);
    const double low_mhz = 0.75 * spec.core.max_mhz;
    for (const KernelClass kind : {KernelClass::gemm, KernelClass::softmax, KernelClass::permute}) {
      Kernel kernel = kernel_of(kind, "k", Dtype::bf16);
      kernel.dram_bytes = 1e9;
      kernel.flops = kind == KernelClass::gemm ? 4e11 : 1e9;
      if (kind == KernelClass::gemm) kernel.gemm = GemmShape{4096, 4096, 12'000, 1};
      const KernelCoefficients own = derived(spec, kernel).value();
      const auto taken_s = [&](const KernelCoefficients& of, std::optional<double> mhz) {
        return operating_point(spec, of, {spec.default_clock.mem, mhz}, spec.power_limit.limit_w)
            .time_s;
      };
      const KernelCoefficients found =
          anchored(spec, kernel, {spec.default_clock, taken_s(own, {}), spec.power_limit.limit_w})
              .coefficients;
      const double slower = taken_s(own, low_mhz) / taken_s(own, {});
      EXPECT_NEAR(taken_s(found, low_mhz) / taken_s(found, {}), slower, 0.012)
          << gpu << ", " << name_of(kind);
    }
  }
}

TEST(Anchor, CountedBytesLeaveLittleOpen) {
  const ClockState state = clock_state(a100(), a100().default_clock, false);
  Kernel kernel = kernel_of(KernelClass::elementwise, "counted");
  kernel.dram_bytes = 0.3 * state.dram_bytes_per_s * 1e-3;
  kernel.work_source = WorkSource::measured;
  const CapturePoint at = point_at(a100(), "1593/1410", 1e-3);
  EXPECT_EQ(anchored(a100(), kernel, at).split, SplitSource::counters);
  for (const double lean : {0.0, 0.5, 1.0}) {
    const double bytes = anchored(a100(), kernel, at, lean).coefficients.dram_bytes;
    EXPECT_NEAR(bytes / *kernel.dram_bytes, 1.0, 0.16) << lean;
  }
}

TEST(Anchor, WorkBeyondThePeakIsDropped) {
  const CapturePoint at = point_at(a100(), "1593/1410", 1e-3);
  Kernel kernel = kernel_of(KernelClass::gemm, "ampere_sgemm_128x64_tn", Dtype::fp32);
  kernel.flops = 10e12 * 1e-3;  // half of fp32 on CUDA cores
  EXPECT_FALSE(anchored(a100(), kernel, at).flops_dropped);
  kernel.flops = 100e12 * 1e-3;  // well within tf32 on tensor cores
  const AnchoredKernel found = anchored(a100(), kernel, at);
  EXPECT_TRUE(found.flops_dropped);
  EXPECT_FALSE(found.bytes_dropped);
  kernel.flops.reset();
  EXPECT_EQ(found.coefficients.core_cycles, anchored(a100(), kernel, at).coefficients.core_cycles);
  kernel.label = "ampere_tf32_s1688gemm_128x128";
  kernel.flops = 100e12 * 1e-3;
  EXPECT_FALSE(anchored(a100(), kernel, at).flops_dropped);
  kernel.dram_bytes = 3e12 * 1e-3;
  EXPECT_TRUE(anchored(a100(), kernel, at).bytes_dropped);
}

TEST(Anchor, CopiesOfTheHostFollowNoClockAndDrawLittle) {
  Kernel copy = kernel_of(KernelClass::memcpy, "Memcpy HtoD (Pinned -> Device)");
  copy.dram_bytes = 20e9 * 1e-3;
  const CapturePoint at = point_at(a100(), "1593/1410", 1e-3);
  const AnchoredKernel found = anchored(a100(), copy, at);
  EXPECT_EQ(found.split, SplitSource::link);
  EXPECT_FALSE(found.bytes_dropped);
  EXPECT_NEAR(time_s(a100(), found.coefficients, "1593/705"), 1e-3, 5e-6);
  const OperatingPoint point =
      operating_point(a100(), found.coefficients, at.clock, at.power_limit_w);
  const double idle_w = idle_power_w(a100(), a100().mem_states[0], 1410.0);
  EXPECT_LT(point.energy_j / point.time_s, idle_w + 0.05 * a100().power_limit.limit_w);
  copy.dram_bytes = 50e9 * 1e-3;  // more than PCIe 4.0 carries
  EXPECT_TRUE(anchored(a100(), copy, at).bytes_dropped);
  // Within the device it is DRAM traffic.
  copy.label = "Memcpy DtoD (Device -> Device)";
  copy.dram_bytes = 1.5e12 * 1e-3;
  EXPECT_NE(anchored(a100(), copy, at).split, SplitSource::link);
}

TEST(Anchor, AKernelThatWasFittedKeepsItsShape) {
  const GpuSpec spec = load_gpu_spec("rtx-3080-ti");
  const CalibratedKernel& known = spec.kernels[2];
  Kernel kernel = kernel_of(known.kind, known.name);
  const CapturePoint at = point_at(spec, "9501/1470", 0.02);
  const AnchoredKernel found = anchored(spec, kernel, at);
  EXPECT_EQ(found.split, SplitSource::fit);
  EXPECT_NEAR(found.coefficients.core_cycles / known.coefficients.core_cycles,
              found.coefficients.core_j / known.coefficients.core_j, 1e-12);
  EXPECT_NEAR(time_s(spec, found.coefficients, "9501/1470"), 0.02, 0.02 * 1e-9);
}

TEST(Peaks, TheNameTellsTheType) {
  using enum ArithmeticUnit;
  struct Row {
    const char* label;
    Dtype recorded;
    Arithmetic expected;
  };
  for (const Row& row :
       {Row{"ampere_sgemm_128x64_tn", Dtype::fp32, {Dtype::fp32, cuda}},
        Row{"sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x32x8_stage3_"
            "warpsize2x1x1_g1_ffma_aligna4_alignc4_execute_kernel__5x_cudnn",
            Dtype::fp32,
            {Dtype::fp32, cuda}},
        Row{"sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize32x32x8",
            Dtype::fp32,
            {Dtype::tf32, tensor}},
        Row{"cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4",
            Dtype::fp32,
            {Dtype::tf32, tensor}},
        Row{"turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_stages_32x1_tn",
            Dtype::fp16,
            {Dtype::fp16, tensor}},
        Row{"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn", Dtype::fp16, {Dtype::fp16, tensor}},
        Row{"volta_sgemm_64x32_sliced1x4_nt", Dtype::fp32, {Dtype::fp32, cuda}},
        Row{"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_nn",
            Dtype::bf16,
            {Dtype::bf16, tensor}},
        Row{"cutlass_80_tensorop_s16816gemm_relu_128x128", Dtype::bf16, {Dtype::bf16, tensor}},
        Row{"nvjet_tst_192x192_64x4_1x2_h_bz_coopB_NTT", Dtype::unknown, {Dtype::bf16, tensor}},
        Row{"sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x128x128",
            Dtype::unknown,
            {Dtype::fp8, tensor}},
        Row{"ampere_dgemm_128x64_nn", Dtype::fp64, {Dtype::fp64, either}},
        Row{"something", Dtype::fp16, {Dtype::fp16, either}}}) {
    EXPECT_EQ(arithmetic_of(kernel_of(KernelClass::gemm, row.label, row.recorded)), row.expected)
        << row.label;
  }
  EXPECT_EQ(arithmetic_of(kernel_of(KernelClass::elementwise, "add", Dtype::bf16)),
            (Arithmetic{Dtype::fp32, cuda}));
}

TEST(Peaks, ByTypeAndUnit) {
  const auto peak = [](const GpuSpec& spec, const char* label, Dtype dtype) {
    return peak_flop_per_cycle(spec, kernel_of(KernelClass::gemm, label, dtype)) / spec.sm_count;
  };
  EXPECT_EQ(peak(a100(), "ampere_sgemm_128x64_tn", Dtype::fp32), 128.0);
  EXPECT_EQ(peak(a100(), "gemm", Dtype::fp32), 1024.0);  // may run as tf32
  EXPECT_EQ(peak(a100(), "gemm", Dtype::bf16), 2048.0);
  EXPECT_EQ(peak(a100(), "gemm", Dtype::fp64), 128.0);
  EXPECT_EQ(peak(a100(), "gemm", Dtype::unknown), 2048.0);
  // Without tensor cores, or without a word on the type: the chip's rate for 16 bits.
  EXPECT_EQ(peak(load_gpu_spec("titan-xp"), "gemm", Dtype::fp16), 256.0);
  EXPECT_EQ(peak(load_gpu_spec("v100-pcie"), "gemm", Dtype::bf16), 1024.0);
}

}  // namespace
}  // namespace rubato
