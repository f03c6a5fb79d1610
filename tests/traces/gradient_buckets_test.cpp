#include "traces/gradient_buckets.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "traces/transformer/parameters.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

void add_norm(std::vector<double>& tensors, double channels) {
  tensors.insert(tensors.end(), {channels, channels});
}

// torchvision's ResNet in the order of parameters(): blocks of `convolutions` kernels of these
// sizes, widening by `expansion`.
std::vector<double> resnet(const std::vector<int>& blocks, const std::vector<int>& sizes,
                           double expansion) {
  std::vector<double> tensors{64.0 * 3 * 49};
  add_norm(tensors, 64);
  double in = 64.0, width = 64.0;
  for (const int count : blocks) {
    for (int b = 0; b < count; ++b) {
      const double first_in = in;
      for (std::size_t c = 0; c < sizes.size(); ++c) {
        const double out = c + 1 == sizes.size() ? width * expansion : width;
        tensors.push_back(in * out * sizes[c] * sizes[c]);
        add_norm(tensors, out);
        in = out;
      }
      if (b == 0 && (first_in != in || width > 64.0)) {
        tensors.push_back(first_in * in);
        add_norm(tensors, in);
      }
    }
    width *= 2.0;
  }
  tensors.insert(tensors.end(), {in * 1000.0, 1000.0});
  std::ranges::reverse(tensors);
  return tensors;
}

std::vector<double> sizes_of(const std::vector<GradientBucket>& buckets) {
  std::vector<double> sizes;
  for (const GradientBucket& bucket : buckets) sizes.push_back(bucket.elements);
  return sizes;
}

// Elements of the all-reduces in captures of training: two A100 (fp32), and MI300X (bf16).
TEST(DdpBuckets, AreThoseOfCapturedTrainingToTheElement) {
  EXPECT_EQ(sizes_of(ddp_buckets(resnet({3, 4, 6, 3}, {1, 3, 1}, 4.0), 4.0)),
            (std::vector<double>{2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040}));
  EXPECT_EQ(sizes_of(ddp_buckets(resnet({2, 2, 2, 2}, {3, 3}, 1.0), 2.0)),
            (std::vector<double>{2'873'320, 8'816'192}));
}

// In order, nothing left out, and each but the last as short as its cap allows.
RC_GTEST_PROP(DdpBuckets, EachEndsWithTheTensorThatFillsIt, ()) {
  const auto counts =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 50)));
  const std::vector<double> elements(counts.begin(), counts.end());
  const BucketCaps caps{.first_bytes = 80.0, .other_bytes = 200.0};
  const auto buckets = ddp_buckets(elements, 4.0, caps);
  std::size_t next = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    RC_ASSERT(buckets[b].first == next);
    next += buckets[b].count;
    const double last = elements[next - 1];
    const double cap = b == 0 ? caps.first_bytes : caps.other_bytes;
    RC_ASSERT((buckets[b].elements - last) * 4.0 < cap);
    if (b + 1 < buckets.size()) RC_ASSERT(buckets[b].elements * 4.0 >= cap);
  }
  RC_ASSERT(next == elements.size());
}

// 40 million elements or a million a rank; chunks behind the first keep theirs together.
TEST(MegatronBuckets, AreLargeOnTheFirstStageAndWholeElsewhere) {
  const std::vector<ChunkGradients> chunks{{.elements = {30e6, 5e6, 90e6}, .of_first = false},
                                           {.elements = {30e6, 20e6, 10e6}, .of_first = true}};
  const auto few = megatron_buckets(chunks, 8.0);
  EXPECT_EQ(sizes_of(few), (std::vector<double>{125e6, 50e6, 10e6}));
  EXPECT_EQ(few[1].first, 3U);
  EXPECT_EQ(few[2].first, 5U);
  EXPECT_EQ(sizes_of(megatron_buckets(chunks, 60.0)), (std::vector<double>{125e6, 60e6}));
  EXPECT_EQ(sizes_of(megatron_buckets(chunks, 50.0)), (std::vector<double>{125e6, 50e6, 10e6}));
}

TEST(ReadyGradients, OfAllKernelsAreAllParameters) {
  TrainingStep shape = gpt_preset("gpt3-2.7b");
  for (const std::uint64_t tp : {1U, 4U}) {
    shape.tensor_parallel = tp;
    const GeneratedStep step = generate_training_step(shape);
    double sum = 0.0;
    for (const KernelId kernel : launches(step.trace.segments))
      sum += step.gradients[index(kernel)];
    EXPECT_NEAR(sum / parameters_per_rank(shape), 1.0, 1e-12);
  }
}

}  // namespace
}  // namespace rubato
