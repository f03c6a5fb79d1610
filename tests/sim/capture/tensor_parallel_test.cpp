#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "common/error.hpp"
#include "models/gpu/clock_grid.hpp"
#include "tests/expect_error.hpp"
#include "tests/sim/capture/parallel_input.hpp"
#include "traces/graph/capture_graph.hpp"

namespace rubato {
namespace {

constexpr double layer_count = 12.0;
constexpr double host_s = 4e-5;  // before the first launch, and rounding of all

ParallelStepInput on_tensor_ranks(double bus_gbs, const TensorOverlap& overlap = {}) {
  ParallelStepInput input = parallel_input(bus_gbs);
  input.shape.tensor_parallel = 4;
  input.tensor_overlap = overlap;
  return input;
}

// Megatron-LM: 2 all-gathers and 2 reduce-scatters of a layer's activations forward, 4 and 2
// backward; without sequence parallelism 2 and 2 all-reduces.
TEST(TensorParallel, SendsWhatMegatronDoes) {
  ParallelStepInput input = on_tensor_ranks(usual);
  const double activation_bytes = 2.0 * 4.0 * 1024.0 * 768.0;
  const Capture split = parallel_step(input).stages.front();
  EXPECT_EQ(sent(split, CollectiveKind::all_gather).launches, 6U * 12U);
  EXPECT_EQ(sent(split, CollectiveKind::reduce_scatter).launches, 4U * 12U);
  EXPECT_DOUBLE_EQ(sent(split, CollectiveKind::all_gather).bytes, 72.0 * activation_bytes);
  EXPECT_DOUBLE_EQ(sent(split, CollectiveKind::reduce_scatter).bytes, 48.0 * activation_bytes);
  input.shape.sequence_parallel = false;
  const Capture whole = parallel_step(input).stages.front();
  EXPECT_EQ(sent(whole, CollectiveKind::all_gather).launches, 0U);
  EXPECT_EQ(count_launches(whole, "c1_all_reduce_attproj"), 12U);
  EXPECT_DOUBLE_EQ(sent(whole, CollectiveKind::all_reduce).bytes, 48.0 * activation_bytes);
}

// Tensor-parallel ranks are neighbours, data-parallel ones lie a group of them apart.
TEST(TensorParallel, GroupsLieBesideEachOther) {
  ParallelStepInput input = on_tensor_ranks(usual);
  input.shape.data_parallel = 8;
  const Capture step = parallel_step(input).stages.front();
  for (const Kernel& kernel : step.kernels) {
    if (!kernel.collective) continue;
    const bool of_data = kernel.name.starts_with("d0_");
    EXPECT_EQ(kernel.collective->group_size, of_data ? 8U : 4U) << kernel.name;
    EXPECT_EQ(kernel.collective->stride, of_data ? 4U : 1U) << kernel.name;
  }
}

// What lies between products is done by every rank, or shared.
TEST(TensorParallel, SharesWhatLiesBetweenProductsWithSequenceParallelism) {
  ParallelStepInput input = on_tensor_ranks(usual);
  const auto bytes_of = [&](std::string_view name) {
    const Capture step = parallel_step(input).stages.front();
    return *std::ranges::find(step.kernels, name, &Kernel::name)->dram_bytes;
  };
  const double shared = bytes_of("09_residual_ln2"), gelu = bytes_of("11_gelu");
  input.shape.sequence_parallel = false;
  EXPECT_DOUBLE_EQ(bytes_of("09_residual_ln2"), 4.0 * shared);
  EXPECT_DOUBLE_EQ(bytes_of("11_gelu"), gelu);
}

TEST(TensorParallel, ExposesAllOfItWhereNothingRunsBeside) {
  for (const double bus_gbs : {fast, usual, 1.0}) {
    const ParallelStepTimes t = parallel_step(on_tensor_ranks(bus_gbs, {.bulk = false})).times;
    EXPECT_NEAR(t.exposed_s(), t.comm_s(), host_s);
    EXPECT_NEAR(t.step_s, t.compute_s() + t.comm_s(), host_s);
  }
}

// Backward: an all-gather beside the product of the input's gradient, the reduce-scatter beside
// that of the weights', each exposed by max(0, communication - computation).
TEST(TensorParallel, ExposesWhatTheProductsOfTheBackwardPassDoNotCover) {
  for (const double bus_gbs : {fast, usual, 5.0, 1.0}) {
    const ParallelStep step = parallel_step(on_tensor_ranks(bus_gbs));
    const auto time = [&](std::string_view kernel) { return time_of(step.stages[0], kernel); };
    double exposed_s = 0.0;
    for (const char* alone :
         {"c0_all_gather_qkv", "c1_reduce_scatter_attproj", "c2_all_gather_fc",
          "c3_reduce_scatter_fcproj", "c4_all_gather_dfcproj", "c7_all_gather_dattproj"})
      exposed_s += layer_count * time(alone);
    struct Beside {
      const char *collective, *product;
    };
    for (const Beside& pair : std::array{Beside{"c6_all_gather_fc_input", "26_gemm_dln2"},
                                         Beside{"c5_reduce_scatter_dln2", "27_gemm_dw_fc"},
                                         Beside{"c9_all_gather_qkv_input", "41_gemm_dln1"},
                                         Beside{"c8_reduce_scatter_dln1", "42_gemm_dw_qkv"}})
      exposed_s += layer_count * std::max(0.0, time(pair.collective) - time(pair.product));
    EXPECT_NEAR(step.times.exposed_s(), exposed_s, host_s) << bus_gbs;
    EXPECT_NEAR(step.times.step_s, step.times.compute_s() + exposed_s, host_s) << bus_gbs;
  }
}

// A product in n pieces behind an all-gather in n pieces: the first piece is waited for, then the
// slower of both sets the pace. Behind a product it is the other way round.
TEST(TensorParallel, PiecesRunBesideTheNextPieces) {
  for (const double bus_gbs : {fast, usual, 5.0, 1.0}) {
    ParallelStepInput input = on_tensor_ranks(bus_gbs, {.bulk = true, .chunks = 4});
    widen(input.shape.model, 1536);  // pieces take longer than the host's calls
    input.shape.batch = 16;
    const ParallelStep step = parallel_step(input);
    const auto time = [&](std::string_view kernel) { return time_of(step.stages[0], kernel); };
    double exposed_s = 0.0;
    struct InPieces {
      const char *collective, *product;
    };
    for (const InPieces& pair : std::array{InPieces{"c0_all_gather_qkv", "02_gemm_qkv"},
                                           InPieces{"c1_reduce_scatter_attproj", "08_gemm_attproj"},
                                           InPieces{"c2_all_gather_fc", "10_gemm_fc"},
                                           InPieces{"c3_reduce_scatter_fcproj", "12_gemm_fcproj"},
                                           InPieces{"c4_all_gather_dfcproj", "22_gemm_dgelu"},
                                           InPieces{"c7_all_gather_dattproj", "31_gemm_datt"}}) {
      const double comm_s = time(std::string(pair.collective) + "_of_4");
      const double product_s = time(std::string(pair.product) + "_of_4");
      exposed_s += layer_count * (comm_s + 3.0 * std::max(0.0, comm_s - product_s));
    }
    for (const InPieces& pair : std::array{InPieces{"c6_all_gather_fc_input", "26_gemm_dln2"},
                                           InPieces{"c5_reduce_scatter_dln2", "27_gemm_dw_fc"},
                                           InPieces{"c9_all_gather_qkv_input", "41_gemm_dln1"},
                                           InPieces{"c8_reduce_scatter_dln1", "42_gemm_dw_qkv"}})
      exposed_s += layer_count * std::max(0.0, time(pair.collective) - time(pair.product));
    EXPECT_NEAR(step.times.step_s, step.times.compute_s() + exposed_s, host_s) << bus_gbs;
  }
}

// The gradient of a layer's input is all-reduced beside the product of the weights' gradient.
TEST(TensorParallel, AllReducesBesideTheWeightsGradient) {
  for (const double bus_gbs : {usual, 1.0}) {
    ParallelStepInput input = on_tensor_ranks(bus_gbs);
    input.shape.sequence_parallel = false;
    const ParallelStep step = parallel_step(input);
    const auto time = [&](std::string_view kernel) { return time_of(step.stages[0], kernel); };
    double exposed_s = time("c1_all_reduce_attproj") + time("c3_all_reduce_fcproj") +
                       std::max(0.0, time("c5_all_reduce_dln2") - time("27_gemm_dw_fc")) +
                       std::max(0.0, time("c8_all_reduce_dln1") - time("42_gemm_dw_qkv"));
    exposed_s *= layer_count;
    EXPECT_NEAR(step.times.exposed_s(), exposed_s, host_s);
  }
}

TEST(TensorParallel, IsReadAsTheGraphItWasMadeAs) {
  for (const TensorOverlap& overlap :
       {TensorOverlap{.bulk = false}, TensorOverlap{}, TensorOverlap{.bulk = true, .chunks = 3}}) {
    ParallelStepInput input = on_tensor_ranks(5.0, overlap);
    input.shape.data_parallel = 2;
    const ParallelStep step = parallel_step(input);
    const CaptureGraph made = capture_graph(step.stages.front());
    for (const std::uint64_t inferred : made.graph.count_arcs().inferred) EXPECT_EQ(inferred, 0U);
    const double first_s =
        static_cast<double>(step.stages.front().launches.front().start_ns) * s_per_ns;
    std::vector<double> durations, starts(made.graph.size());
    for (const Activity& activity : made.graph.activities())
      durations.push_back(activity.duration_s);
    EXPECT_NEAR(earliest_starts(made.graph, durations, starts), step.times.step_s - first_s, 1e-8);
  }
}

TEST(TensorParallel, RefusesDegreesThatDoNotDivide) {
  ParallelStepInput input = on_tensor_ranks(usual);
  input.shape.tensor_parallel = 5;
  expect_error<UsageError>([&] { (void)parallel_step(input); }, "tp 5 does not divide heads 12");
  input.shape.tensor_parallel = 0;
  expect_error<UsageError>([&] { (void)parallel_step(input); }, "tp is 0;");
  input.shape.tensor_parallel = 4;
  input.shape.data_parallel = 18;
  expect_error<UsageError>([&] { (void)parallel_step(input); },
                           "tp 4 x cp 1 x dp 18 x pp 1 needs 72 GPUs; made-up has 64");
}

}  // namespace
}  // namespace rubato
