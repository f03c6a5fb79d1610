// Published experiments: stopped on their way no table of plans that were never found; what steps
// are made of.

#include <array>
#include <atomic>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "models/gpu/spec.hpp"
#include "models/table/gpu_model.hpp"
#include "tests/expect_error.hpp"
#include "tools/commands/published/perseus2024.hpp"
#include "tools/commands/published/spaan2026.hpp"
#include "tools/commands/published/steps.hpp"
#include "traces/transformer/training_step.hpp"

namespace rubato {
namespace {

TEST(PublishedExperiments, StopWithoutATableWhenInterrupted) {
  const std::atomic<bool> stop = true;
  const RunContext context{.cancelled = &stop};
  expect_error<InterruptedError>([&] { (void)reproduce_perseus2024(context); },
                                 "not all plans were found");
  expect_error<InterruptedError>([&] { (void)reproduce_spaan2026(context); },
                                 "not all plans were found");
  try {
    (void)reproduce_spaan2026(context);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::interrupted);
  }
}

// Global batches of the published configs: 256 sequences, 512 from 1.3B on, of 8 GPUs.
TEST(PublishedExperiments, StepsShareAnUpdateAmongTheBatchesBeforeIt) {
  const std::array made{training_steps()};
  const auto rows = nlohmann::json::parse(json_of(made))["flash_attention"];
  ASSERT_EQ(rows.size(), 5U);
  constexpr std::array accumulated{1, 2, 2, 8, 16};
  for (std::size_t row = 0; row < rows.size(); ++row)
    EXPECT_EQ(rows[row]["batches_an_update"], accumulated[row]) << rows[row]["step"];
  TrainingStep one{.model = load_model_shape("gpt3-2.7b"), .batch = 4, .seq = 2048};
  one.model.heads = one.model.kv_heads = 20;
  one.optimizer = false;
  const Trace alone = generate_training_step(one).trace;
  one.data_parallel = 8;
  one.optimizer = true;
  const Trace updated = generate_training_step(one).trace;
  const auto time_ms = [](const Trace& trace) {
    const GpuSpec spec = load_gpu_spec("a100-sxm4-80gb");
    const GpuModel model(spec, trace);
    double sum_s = 0.0;
    const auto counts = launch_counts(trace);
    for (std::size_t k = 0; k < counts.size(); ++k)
      sum_s += static_cast<double>(counts[k]) *
               model.evaluate(id_at<KernelId>(k), spec.default_clock).time_s;
    return sum_s * 1e3;
  };
  const double expected = time_ms(alone) + (time_ms(updated) - time_ms(alone)) / 16.0;
  EXPECT_NEAR(rows.back()["ours_ms"].get<double>() / expected, 1.0, 1e-6);
}

}  // namespace
}  // namespace rubato
