#pragma once
// Launches the kernels of a layer with the collectives of its tensor-, context- and expert-parallel
// groups: waited for, or beside the kernels that frameworks run them beside. docs/parallel.md.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/capture/step_writer.hpp"
#include "traces/parallel/rank_work.hpp"

namespace rubato {

/// What runs beside the collectives of tensor parallelism.
struct TensorOverlap {
  /// In the backward pass the all-gather of a layer's input runs beside the product of its input's
  /// gradient, the reduce-scatter of that gradient beside the product of the weights' gradient.
  /// As Megatron-LM without further options.
  bool bulk = true;
  /// Pieces in which a product and the all-gather before it, or the reduce-scatter behind it, are
  /// done, one beside the next; 1: the product waits for all of it.
  std::uint32_t chunks = 1;

  friend bool operator==(const TensorOverlap&, const TensorOverlap&) = default;
};

/// Writes lists of kernels of one rank.
class LayerWriter {
 public:
  using Launches = RankWork::Launches;

  /// @param work, step  must outlive the writer; kernels of `step` begin with those of `work`
  LayerWriter(const RankWork& work, const TensorOverlap& overlap, StepWriter& step)
      : work_(work), overlap_(overlap), step_(step) {}

  /// @param last  gradients are complete behind it: what sums them up is run
  /// @param launched  called for each kernel of the list when it is launched
  void run(const Launches& list, bool last = true,
           const std::function<void(KernelId)>& launched = {});

 private:
  // Of a list at a position: how many launches it wrote.
  std::size_t run_at(const Launches& list, std::size_t at);
  std::size_t run_bulk(const Launches& list, std::size_t at);
  std::size_t run_ring(const Launches& list, std::size_t at);
  void gather_in_chunks(KernelId gather, KernelId product);
  void scatter_in_chunks(KernelId product, KernelId scatter);
  void communicate_alone(KernelId kernel);

  void launch(KernelId kernel);
  [[nodiscard]] std::uint32_t begin(KernelId kernel);
  [[nodiscard]] KernelId chunk_of(KernelId kernel);
  [[nodiscard]] bool is_product(const Launches& list, std::size_t at) const;
  [[nodiscard]] bool sends(const Launches& list, std::size_t at, CollectiveKind kind) const;
  [[nodiscard]] bool sums(const Launches& list, std::size_t at) const;

  const RankWork& work_;
  TensorOverlap overlap_;
  StepWriter& step_;
  bool last_ = true;
  std::function<void(KernelId)> launched_;
};

}  // namespace rubato
