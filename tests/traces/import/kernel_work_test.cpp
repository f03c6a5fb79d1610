#include "traces/import/kernel_work.hpp"

#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/captures.hpp"
#include "traces/import/builder.hpp"
#include "traces/import/operator_work.hpp"
#include "traces/import/readers.hpp"

namespace rubato {
namespace {

constexpr LaunchShape hundred{{100, 1, 1}, {128, 1, 1}};

std::optional<NameWork> of(std::string_view name, int items = 4) {
  return work_from_name(name, hundred, items);
}

// Names as Kineto and Nsight Systems write them.
TEST(KernelWork, ElementwiseKernelsTellTheirElements) {
  const double elements = 100.0 * 128 * 4;
  const auto add =
      of("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
         "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, "
         "at::detail::Array<char*, 3>)");
  EXPECT_EQ(add, (NameWork{elements, elements * 3 * 4, Dtype::fp32}));
  const auto gelu = of(
      "void at::native::vectorized_elementwise_kernel<(int)8, "
      "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &, at::native::GeluType)::[lambda() "
      "(instance 1)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)], std::array<char "
      "*, (unsigned long)2>>(int, T2, T3)",
      8);
  EXPECT_EQ(gelu, (NameWork{2 * elements, 2 * elements * 2 * 2, Dtype::bf16}));
  // Not in one piece: pointers are not in the name, the functor's operands are.
  const auto product =
      of("void at::native::elementwise_kernel<128, 2, "
         "at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<c10::Half, c10::Half, "
         "c10::Half, "
         "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, "
         "at::native::BinaryFunctor<c10::Half, c10::Half, c10::Half, "
         "at::native::binary_internal::MulFunctor<float> > const&)::{lambda(int)#1}>(int, "
         "at::native::gpu_kernel_impl_nocast<...>)");
  EXPECT_EQ(product, (NameWork{elements / 2, elements / 2 * 3 * 2, Dtype::fp16}));
  const auto copy = of(
      "void at::native::elementwise_kernel<(int)128, (int)4, void "
      "at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase "
      "&)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 12)]::operator ()() "
      "const::[lambda(c10::BFloat16) (instance 1)]>(at::TensorIteratorBase &, const T1 "
      "&)::[lambda(int) (instance 1)]>(int, T3)");
  EXPECT_EQ(copy, (NameWork{0.0, elements * 2 * 2, Dtype::bf16}));
  const auto narrow =
      of("void at::native::vectorized_elementwise_kernel<4, "
         "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, "
         "std::array<char*, 2ul> >(int, x)");
  EXPECT_EQ(narrow, (NameWork{0.0, elements * (4 + 2), Dtype::fp32}));
  const auto fill =
      of("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<double>, "
         "std::array<char*, 1ul> >(int, x)");
  EXPECT_EQ(fill, (NameWork{0.0, elements * 8, Dtype::fp64}));
  const auto cast =
      of("void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctor_add<float>, "
         "std::array<char *, (unsigned long)3>, (int)8, TrivialOffsetCalculator<(int)2, unsigned "
         "int>>(int)");
  EXPECT_EQ(cast, (NameWork{2 * elements, 2 * elements * 3 * 4, Dtype::fp32}));
}

TEST(KernelWork, OptimizersTellTheirChunks) {
  const double elements = 100.0 * 65536;
  const auto name = [](const std::string& depth, const std::string& functor) {
    return "void at::native::(anonymous "
           "namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
           "namespace)::" +
           depth + ", at::native::(anonymous namespace)::" + functor +
           ", std::plus<float>, float>(x)";
  };
  EXPECT_EQ(of(name("TensorListMetadata<2>", "BinaryOpListAlphaFunctor<float, 2, 2, 0>")),
            (NameWork{elements, elements * 3 * 4, Dtype::fp32}));
  EXPECT_EQ(of(name("TensorListMetadata<1>", "BinaryOpScalarFunctor<float, 1, 1, 0>")),
            (NameWork{elements, elements * 2 * 4, Dtype::fp32}));
  EXPECT_EQ(of(name("TensorListScalarListMetadata<float, 3>",
                    "PointwiseOpScalarListFunctor<c10::BFloat16, 3, 3, 0>")),
            (NameWork{elements, elements * 4 * 2, Dtype::bf16}));
  EXPECT_EQ(
      of(name("FusedOptimizerTensorListMetadata<4>", "FusedAdamMathFunctor<float, 4, x, true>")),
      (NameWork{elements, elements * 7 * 4, Dtype::fp32}));
}

TEST(KernelWork, FlashAttentionTakesKeysAsManyAsQueries) {
  const LaunchShape shape{{8, 2, 16}, {128, 1, 1}};
  const std::string causal =
      "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 32, 4, "
      "false, false, cutlass::half_t, x>, false, true, false>(p)";
  const double s = 8 * 128, heads = 2 * 16, d = 64;
  EXPECT_EQ(work_from_name(causal, shape, 4),
            (NameWork{4 * heads * s * s * d / 2, 4 * heads * s * d * 2, Dtype::fp16,
                      AttentionShape{2, 1024, 1024, 16, 16, 64, true}}));
  const std::string backward =
      "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<(int)64, "
      "(int)64, (int)128, (int)8, cutlass::bfloat16_t>, (bool)0, (bool)0, (bool)0>(p)";
  EXPECT_EQ(work_from_name(backward, shape, 4),
            (NameWork{10 * heads * s * s * d, 8 * heads * s * d * 2, Dtype::bf16,
                      AttentionShape{2, 1024, 1024, 16, 16, 64, false}}));
}

TEST(KernelWork, WhatIsNotUnderstoodStaysUnknown) {
  for (const char* name :
       {"", "ampere_sgemm_128x64_tn", "void at::native::vectorized_elementwise_kernel<4, x",
        "void at::native::vectorized_elementwise_kernel<4, Odd, std::array<char*, 2ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<c10::complex<float> >, "
        "std::array<char*, 3ul> >(int)",
        "void at::native::index_elementwise_kernel<128, 4, x>(int)",
        "void at::native::elementwise_kernel<128, 4, y>(int)",
        "multi_tensor_apply_kernel<TensorListMetadata<0>, F<float> >(x)", "flash_fwd_kernel<>(x)"})
    EXPECT_FALSE(of(name)) << name;
  // Pieces of real names in any order are read or refused.
  rc::check([] {
    const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
        "void ", "vectorized_elementwise_kernel<", "elementwise_kernel<", "4", "(int)", ", ", "<",
        ">", "(", ")", "{lambda(", "float", "Functor", "gpu_kernel_impl<", "std::array<char*, 3ul>",
        "multi_tensor_apply_kernel<", "TensorListMetadata<2>", "flash_fwd_kernel<", "::"));
    std::string name;
    for (const std::string& piece : pieces) name += piece;
    const auto work = work_from_name(name, hundred, 4);
    RC_ASSERT(!work || (std::isfinite(work->dram_bytes) && work->dram_bytes >= 0.0));
  });
}

TEST(KernelWork, GuessesAreMarkedAndPossible) {
  CaptureBuilder builder("made");
  const std::string head = "vectorized_elementwise_kernel<",
                    tail = ", CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)";
  const auto add = [&](const std::string& label, std::int64_t duration_ns, Kernel kernel = {}) {
    kernel.label = label;
    kernel.launch = hundred;
    builder.launch({builder.kernel(kernel, "k"), builder.stream(0, 0), 0, duration_ns, {}, {}, {}});
  };
  add(head + "4" + tail, 1000);
  Kernel known;
  known.flops = 5.0;
  known.work_source = WorkSource::derived;
  add(head + "4" + tail, 1000, known);
  add(head + "2" + tail, 10);  // 614 kB in 10 ns
  add("other", 1000);
  Capture capture = std::move(builder).finish();
  Capture wide = capture;
  guess_kernel_work(capture);
  EXPECT_EQ(capture.kernels[0].work_source, WorkSource::guessed);
  EXPECT_EQ(capture.kernels[0].dram_bytes, 51200.0 * 12);
  EXPECT_EQ(capture.kernels[1].flops, 5.0);
  EXPECT_FALSE(capture.kernels[1].dram_bytes);
  for (const std::size_t k : {2U, 3U}) {
    EXPECT_EQ(capture.kernels[k].work_source, WorkSource::unknown);
    EXPECT_FALSE(capture.kernels[k].flops || capture.kernels[k].dram_bytes);
  }
  // A load of 8 elements anywhere tells that threads take 8 everywhere.
  wide.kernels[3].label = head + "8" + tail;
  guess_kernel_work(wide);
  EXPECT_EQ(wide.kernels[0].dram_bytes, 2 * 51200.0 * 12);
}

// Element-wise kernels of a real file whose operators have shapes: names must say the same.
TEST(KernelWork, NamesAgreeWithShapesOfARealCapture) {
  const Capture capture =
      import_kineto(captured("traces/kineto_h100_qwen_fwd.json.gz"), ImportOptions{});
  int compared = 0, equal = 0;
  for (const Kernel& kernel : capture.kernels) {
    if (kernel.work_source != WorkSource::guessed || !kernel.launch || !kernel.flops) continue;
    const auto work = work_from_name(kernel.label, *kernel.launch, 4);
    if (!work || work->flops == 0.0) continue;
    ++compared;
    // Up to one block of elements more, since the last one is not full.
    if (work->flops >= *kernel.flops && work->flops < *kernel.flops + 512.0) ++equal;
  }
  EXPECT_GE(compared, 10);
  EXPECT_EQ(equal, compared);
}

// ---- Convolutions ----

// By definition: every place of the window, every weight in it.
double products_of(std::uint64_t size, std::uint64_t window, std::uint64_t stride,
                   std::uint64_t padding, std::uint64_t dilation, std::uint64_t& places) {
  places = 0;
  for (std::uint64_t at = 0; at + dilation * (window - 1) < size + 2 * padding; at += stride)
    ++places;
  return static_cast<double>(places * window);
}

TEST(ConvolutionWork, CountsWhatTheDefinitionDoes) {
  rc::check([] {
    const auto pick = [](std::uint64_t from, std::uint64_t to) {
      return *rc::gen::inRange<std::uint64_t>(from, to);
    };
    const std::uint64_t n = pick(1, 3), in = pick(1, 4), out = pick(1, 4), groups = 1;
    const std::uint64_t h = pick(5, 12), w = pick(5, 12), r = pick(1, 4), s = pick(1, 4);
    const std::uint64_t stride = pick(1, 4), padding = pick(0, 3), dilation = pick(1, 3);
    const auto pair = [](std::uint64_t a) {
      return "[" + std::to_string(a) + ", " + std::to_string(a) + "]";
    };
    std::uint64_t rows = 0, columns = 0;
    const double flops = 2.0 * static_cast<double>(n * out * in / groups) *
                         products_of(h, r, stride, padding, dilation, rows) *
                         products_of(w, s, stride, padding, dilation, columns);
    const std::vector<std::vector<std::uint64_t>> dims{{n, in, h, w}, {out, in, r, s}, {out}};
    const std::vector<Dtype> dtypes(3, Dtype::fp32);
    const std::vector<std::string> values{
        "", "", "", pair(stride), pair(padding), pair(dilation), "False", "[0, 0]", "1"};
    const OperatorWork forward = operator_work({"aten::convolution", dims, dtypes, values});
    RC_ASSERT(forward.flops == flops);
    RC_ASSERT(forward.source == WorkSource::derived);
    RC_ASSERT(forward.dram_bytes == 4.0 * static_cast<double>(n * in * h * w + out * in * r * s +
                                                              n * out * rows * columns));
    const OperatorWork cudnn =
        operator_work({"aten::cudnn_convolution",
                       {dims[0], dims[1]},
                       {dtypes[0], dtypes[0]},
                       {"", "", pair(padding), pair(stride), pair(dilation), "1"}});
    RC_ASSERT(cudnn.flops == flops);
    const OperatorCall backward{
        "aten::convolution_backward", {{n, out, rows, columns}, dims[0], dims[1]}, dtypes, {}};
    RC_ASSERT(operator_work(backward).flops == 2.0 * flops);
  });
}

TEST(ConvolutionWork, WhatIsNotSaidIsGuessed) {
  const std::vector<std::vector<std::uint64_t>> dims{{2, 8, 10, 10}, {16, 4, 3, 3}};  // two groups
  const std::vector<Dtype> dtypes(2, Dtype::unknown);
  const OperatorWork same = operator_work({"aten::conv2d", dims, dtypes, {}});
  EXPECT_EQ(same.source, WorkSource::guessed);
  EXPECT_EQ(same.flops, 2.0 * 2 * 16 * 100 * 4 * 9);
  EXPECT_FALSE(same.dram_bytes);
  // The first layer: no gradient of the input.
  std::vector<std::string> values(11);
  values[10] = "[False, True, False]";
  const OperatorCall first{"aten::convolution_backward",
                           {{2, 16, 10, 10}, dims[0], dims[1]},
                           std::vector<Dtype>(3, Dtype::fp16),
                           values};
  EXPECT_EQ(operator_work(first).flops, same.flops);
  EXPECT_FALSE(is_two_products(first));
  EXPECT_FALSE(operator_work({"aten::conv2d", {{2, 8}, {16, 4}}, dtypes, {}}).flops);
}

}  // namespace
}  // namespace rubato
