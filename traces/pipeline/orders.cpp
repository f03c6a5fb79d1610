#include "traces/pipeline/orders.hpp"

#include <algorithm>

namespace rubato {

namespace {

// Appends passes of one stage.
class Order {
 public:
  Order(const PipelineShape& shape, std::uint32_t stage) : shape_(shape), stage_(stage) {}

  void add(PassKind kind, std::uint32_t microbatch, std::uint32_t chunk = 0) {
    passes_.push_back({stage_, chunk, microbatch, kind});
  }
  [[nodiscard]] const PipelineShape& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t stage() const { return stage_; }
  [[nodiscard]] std::vector<PipelinePass> take() { return std::move(passes_); }

 private:
  const PipelineShape& shape_;
  std::uint32_t stage_;
  std::vector<PipelinePass> passes_;
};

void gpipe(Order& order) {
  const std::uint32_t count = order.shape().microbatches;
  for (std::uint32_t m = 0; m < count; ++m) order.add(PassKind::forward, m);
  for (std::uint32_t m = count; m-- > 0;) order.add(PassKind::backward, m);
}

// A stage holds the activations of at most stages - stage microbatches at a time.
void one_f_one_b(Order& order, bool recompute) {
  const std::uint32_t count = order.shape().microbatches;
  const std::uint32_t in_flight = order.shape().stages - order.stage();
  std::uint32_t next = 0;
  while (next < std::min(in_flight, count)) order.add(PassKind::forward, next++);
  for (std::uint32_t m = 0; m < count; ++m) {
    if (recompute) order.add(PassKind::recompute, m);
    order.add(PassKind::backward, m);
    if (next < count) order.add(PassKind::forward, next++);
  }
}

// Megatron-LM runs groups of `stages` microbatches through one chunk after the other.
void interleaved(Order& order) {
  const std::uint32_t stages = order.shape().stages;
  const std::uint32_t chunks = order.shape().chunks;
  const std::uint32_t total = order.shape().microbatches * chunks;
  const std::uint32_t group = stages * chunks;
  const auto add = [&](PassKind kind, std::uint32_t k) {
    const std::uint32_t chunk = k % group / stages;
    order.add(kind, k / group * stages + k % stages,
              kind == PassKind::forward ? chunk : chunks - 1 - chunk);
  };
  const std::uint32_t warmup =
      std::min(total, (stages - order.stage() - 1) * 2 + (chunks - 1) * stages);
  for (std::uint32_t k = 0; k < warmup; ++k) add(PassKind::forward, k);
  for (std::uint32_t k = warmup; k < total; ++k) {
    add(PassKind::forward, k);
    add(PassKind::backward, k - warmup);
  }
  for (std::uint32_t k = total - warmup; k < total; ++k) add(PassKind::backward, k);
}

// As 1F1B, but a weight gradient runs `stage` microbatches later than the input gradient. The last
// `stage` of them are left for the end, where the stage would wait.
void zb_h1(Order& order) {
  const std::uint32_t count = order.shape().microbatches;
  const std::uint32_t in_flight = order.shape().stages - order.stage();
  std::uint32_t next = 0, weight = 0;
  while (next < std::min(in_flight, count)) order.add(PassKind::forward, next++);
  for (std::uint32_t m = 0; m < count; ++m) {
    order.add(PassKind::input_gradient, m);
    if (m >= order.stage()) order.add(PassKind::weight_gradient, weight++);
    if (next < count) order.add(PassKind::forward, next++);
  }
  while (weight < count) order.add(PassKind::weight_gradient, weight++);
}

}  // namespace

std::vector<PipelinePass> stage_order(const PipelineShape& shape, std::uint32_t stage) {
  Order order(shape, stage);
  switch (shape.kind) {
    case ScheduleKind::gpipe: gpipe(order); break;
    case ScheduleKind::one_f_one_b: one_f_one_b(order, false); break;
    case ScheduleKind::interleaved:
      if (shape.chunks > 1) {
        interleaved(order);
      } else {
        one_f_one_b(order, false);  // as Megatron-LM runs it
      }
      break;
    case ScheduleKind::early_recompute: one_f_one_b(order, true); break;
    case ScheduleKind::zb_h1: zb_h1(order); break;
  }
  return order.take();
}

}  // namespace rubato
