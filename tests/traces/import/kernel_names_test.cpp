// What kernels are, by their names.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "traces/import/kernel_names.hpp"

namespace rubato {
namespace {

TEST(KernelNames, SayWhatAKernelIs) {
  EXPECT_EQ(kernel_class_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
            KernelClass::communication);
  EXPECT_EQ(kernel_class_of("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT"), KernelClass::gemm);
  EXPECT_EQ(kernel_class_of("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32"), KernelClass::gemm);
  EXPECT_EQ(kernel_class_of("void at::native::reduce_kernel<512, 1>"), KernelClass::reduce);
  EXPECT_EQ(kernel_class_of("mystery"), KernelClass::other);
  EXPECT_EQ(
      short_kernel_name("void at::native::(anonymous namespace)::softmax_warp<float, 4>(float*)"),
      "softmax_warp");
  EXPECT_EQ(short_kernel_name("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn");
  EXPECT_EQ(collective_kind_of("_reduce_scatter_base"), CollectiveKind::reduce_scatter);
}

TEST(KernelClasses, FollowFromNames) {
  const auto expect = [](std::string_view name, KernelClass kind) {
    EXPECT_EQ(kernel_class_of(name), kind) << name;
  };
  expect("void fbgemm_gpu::permute_2D_lengths_kernel<int>(int)", KernelClass::permute);
  expect("split_embedding_forward_kernel", KernelClass::embedding);
  expect("void fbgemm_gpu::bounds_check_indices_kernel<long>", KernelClass::other);
  expect("void cutlass::device_kernel<fbgemm_gpu::f8f8bf16_rowwise>", KernelClass::gemm);
  expect("triton_tem_fused_addmm_gelu_12", KernelClass::gemm);
  expect("triton_tem_fused_mm_native_layer_norm_3", KernelClass::gemm);
  expect("triton_tem_fused_flex_attention_0", KernelClass::attention);
  expect("triton_mm", KernelClass::gemm);
  expect("fused_moe_kernel", KernelClass::gemm);
  expect("triton_poi_fused__scaled_dot_product_flash_attention_add_5", KernelClass::elementwise);
  expect("triton_red_fused__softmax_1", KernelClass::softmax);
  expect("triton_per_fused_native_layer_norm_addmm_1", KernelClass::layernorm);
  expect("triton_per_fused_sum_gemm_1", KernelClass::reduce);
}

// Functions of libraries other than NCCL, as profilers write them.
TEST(KernelClasses, CollectivesOfAllLibrariesAreCollectives) {
  for (const char* name : {
           "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*)",
           "void deep_ep::internode::combine<8, true, __nv_bfloat16>(int4*, float*)",
           "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, float*)",
           "void deep_ep::intranode::cached_notify_combine<8>(void**, int*, int, int, int)",
           "_ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvP4int4PfPi",
           "void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop<8>(int, int, int)",
           "kuserbuffers_pushsend(int*, int*, int4*, int4*, int)",
           "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
           "void sglang::cross_device_reduce_2stage<half, 4>(sglang::RankData*)",
           "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1, "
           "__nv_bfloat16, 8>()",
           "void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<float>()",
           "void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8, true>(AllReduceParams)",
           "void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(AllReduceParams)",
           "void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel<true>(int)",
           "void mscclpp::executionKernel<__half, mscclpp::LL16Packet>(int)",
           "mscclKernel_Sum_half_LL_false(mscclAlgo*)",
           "void allreduce7<__half>(__half*, __half*)",
           "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
           "rcclGenericKernel_1(ncclDevComm*, unsigned long)",
           "oneccl_allreduce_ring_fp16",
           "void ccl::reduce_ring<float>(float*)",
           "void nvshmemi_proxy_barrier_all(int)",
           "void c10d::nvshmem_extension::allToAllV(void*, void*)",
           "void c10d::symmetric_memory::barrier_kernel(unsigned int**)",
           "void (anonymous namespace)::one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>()",
           "void (anonymous namespace)::multimem_one_shot_reduce_kernel<float, 16>(float*)",
           "mori::moe::EpDispatchIntraNodeKernel<__hip_bfloat16>(int)",
           "void quickreduce::allreduce_prototype_twoshot<quickreduce::CodecQ4, half>(half*)",
       })
    EXPECT_EQ(kernel_class_of(name), KernelClass::communication) << name;
}

// Namespaces, arguments and words that only look like a collective or like attention.
TEST(KernelClasses, NamespacesDecideOnlyWhereTheFunctionSaysNothing) {
  const auto expect = [](const char* name, KernelClass kind) {
    EXPECT_EQ(kernel_class_of(name), kind) << name;
  };
  expect("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>, false>(P)",
         KernelClass::attention);
  expect("void flash::prepare_varlen_num_blocks_kernel<1>(int)", KernelClass::attention);
  expect(
      "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
      "flash::CollectiveMainloopFwdSm90<2, cutlass::bfloat16_t> > > >(P)",
      KernelClass::attention);
  expect("void flashinfer::BatchDecodeWithPagedKVCacheKernel<1, 2>(P)", KernelClass::attention);
  expect("void flashinfer::norm::RMSNormKernel<8, __nv_bfloat16>(P)", KernelClass::layernorm);
  expect("void flashinfer::sampling::TopKSamplingFromProbKernel<1024>(P)", KernelClass::other);
  expect("void flashinfer::activation::act_and_mul_kernel<__half>(P)", KernelClass::other);
  expect("void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)", KernelClass::other);
  expect("void vllm::reshape_and_cache_flash_kernel<c10::BFloat16>(P)", KernelClass::permute);
  expect("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu>(P)", KernelClass::gemm);
  expect("void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<int> >(P)",
         KernelClass::reduce);
  expect("_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionIiEEEEvv",
         KernelClass::gemm);
  expect("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdIiEEJiEEEvT0_", KernelClass::layernorm);
  expect("_ZN2at6native18elementwise_kernelILi128ELi4EEvi", KernelClass::elementwise);
  expect(
      "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl("
      "at::TensorIteratorBase&)::{lambda()#1}, std::array<char*, 2ul> >(int)",
      KernelClass::gelu);
  expect("void dot_kernel<float, 128, cublasDotParams<cublasGemvTensor<float const> > >(int)",
         KernelClass::gemm);
  expect("void my_kernel<cutlass::half_t>(cutlass::half_t*)", KernelClass::other);
  expect("void my_kernel(flash::AllReduceParams, nccl::Comm)", KernelClass::other);
  expect("void small_reduce_kernel<float>(float*)", KernelClass::reduce);
  expect("void blockAllReduceSum<float>(float*)", KernelClass::reduce);
  expect("triton_poi_fused_all_reduce_wait_tensor_add_3", KernelClass::elementwise);
  expect("void broken<at::native::flash", KernelClass::attention);
  expect("", KernelClass::other);
}

TEST(KernelNames, AreTakenApart) {
  using Parts = std::vector<std::string_view>;
  const KernelName name = parse_kernel_name(
      "std::enable_if<!(false), void>::type at::(anonymous namespace)::f<(int)4, a::b<c, d> >(e)");
  EXPECT_EQ(name.function, "f");
  EXPECT_EQ(name.scope, (Parts{"at"}));
  EXPECT_EQ(name.arguments, (Parts{"(int)4", "a::b<c, d>"}));
  const KernelName mangled = parse_kernel_name("_ZN2at12_GLOBAL__N_11fILi4EN1a1bEEEvi");
  EXPECT_EQ(mangled.function, "f");
  EXPECT_EQ(mangled.scope, (Parts{"at"}));
  EXPECT_EQ(mangled.arguments, (Parts{"a", "b"}));
  EXPECT_EQ(parse_kernel_name("_Z6kernelPf").function, "kernel");
  EXPECT_EQ(parse_kernel_name("backward pass").function, "backward pass");
  EXPECT_EQ(short_kernel_name("_ZN7deep_ep9intranode8dispatchILi8EEEvPi"), "dispatch");
}

TEST(CollectiveKinds, FollowFromNames) {
  const auto expect = [](const char* name, CollectiveKind kind) {
    EXPECT_EQ(collective_kind_of(name), kind) << name;
  };
  expect("void deep_ep::intranode::dispatch<8>(int*)", CollectiveKind::all_to_all);
  expect("void deep_ep::internode::combine<8>(int*)", CollectiveKind::all_to_all);
  expect("void vllm::cross_device_reduce_2stage<half, 8>()", CollectiveKind::all_reduce);
  expect("userbuffers_fp16_sum_inplace_gpu_rr_rs_oop", CollectiveKind::reduce_scatter);
  expect("userbuffers_fp16_sum_inplace_gpu_rw_ag", CollectiveKind::all_gather);
  expect("userbuffers_fp16_sum_inplace_gpu_mc", CollectiveKind::all_reduce);
  expect("kuserbuffers_pushsend", CollectiveKind::send_recv);
  expect("ncclDevKernel_Reduce_Sum_f32", CollectiveKind::reduce);
}

}  // namespace
}  // namespace rubato
